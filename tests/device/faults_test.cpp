// SPDX-License-Identifier: Apache-2.0
// Bad items of every public call, counted in its context and told by checked calls.
#include <tmap/encode_batch.hpp>
#include <tmap/faults.hpp>
#include <tmap/grouped_gemm.hpp>
#include <tmap/map_service.hpp>
#include <tmap/ragged.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "service/rows_spec.hpp"

#include <sys/wait.h>
#include <unistd.h>

namespace tmap::testing {
namespace {

namespace rg = tmap::ragged;

constexpr std::uint64_t item_count = 100;
constexpr std::uint64_t bad_at = 41;
constexpr std::uint32_t group_count = 3;

class own_stream {
 public:
  own_stream() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess); }
  own_stream(const own_stream&) = delete;
  own_stream& operator=(const own_stream&) = delete;
  ~own_stream() { cudaStreamDestroy(stream_); }
  cudaStream_t get() const { return stream_; }
  cuda::stream_ref ref() const { return cuda::stream_ref{stream_}; }

 private:
  cudaStream_t stream_{};
};

/// Tensors of 8 x 8 floats; one of them can be bad: its address is odd.
class tensors_on_device {
 public:
  explicit tensors_on_device(std::uint32_t rank, std::uint64_t inner = 8) : rank_(rank), bytes_(item_count * 256) {
    bytes_.upload(std::vector<unsigned char>(item_count * 256, 0));
    for (std::uint64_t i = 0; i < item_count; ++i) {
      map_patch patch{};
      patch.global_address = bytes_.address() + 256 * i;
      for (std::uint32_t axis = 0; axis < max_rank; ++axis) patch.global_dim[axis] = 1;
      patch.global_dim[0] = inner;
      if (rank > 1) patch.global_dim[1] = 8;
      patch.global_stride_bytes[0] = 32;
      patches_.push_back(patch);
    }
    good_.upload(patches_);
    patches_[bad_at].global_address += 1;
    bad_.upload(patches_);
  }

  tensor_batch good() const { return batch(good_); }
  tensor_batch bad() const { return batch(bad_); }
  std::uint64_t address() const { return bytes_.address(); }
  std::uint64_t bytes() const { return bytes_.bytes(); }

 private:
  tensor_batch batch(const device_array<map_patch>& patches) const {
    tensor_batch made;
    made.tensors = patch_array{patches.data()};
    made.count = item_count;
    made.element_bytes = 4;
    made.rank = rank_;
    return made;
  }

  std::uint32_t rank_;
  device_array<unsigned char> bytes_;
  std::vector<map_patch> patches_;
  device_array<map_patch> good_{item_count};
  device_array<map_patch> bad_{item_count};
};

/// All that the calls below work on, each of which has exactly one bad item, or none.
class world {
 public:
  world() {
    base_.emplace(make_template(rows_spec(), patch_address | patch_dim(1)).value());
    std::vector<map_patch> patches(item_count);
    for (std::uint64_t i = 0; i < item_count; ++i) {
      patches[i].global_address = maps_memory_.address() + 256 * i;
      patches[i].global_dim[1] = 1;
    }
    good_patches_.upload(patches);
    patches[bad_at].global_address += 8;
    bad_patches_.upload(patches);
    std::vector<std::int64_t> rows(item_count, 5);
    good_index_.upload(rows);
    rows[bad_at] = -1;
    bad_index_.upload(rows);
    changed_.upload({3, static_cast<std::uint32_t>(bad_at), 99});
    good_ends_.upload({16, 32, 48});
    bad_ends_.upload({16, 32, 49});
    make_pointers();
    service_.emplace(map_service::create({.capacity = 4096, .self_test = false}).value());
  }

  result<void> run(batch_call call, bool is_bad, fault_check check, cudaStream_t stream) {
    const cuda::stream_ref on{stream};
    const rg::options with{.check = check};
    const tensor_batch one = is_bad ? line_.bad() : line_.good();
    const tensor_batch square = is_bad ? square_.bad() : square_.good();
    const rg::packed_buffer packed{packed_.data(), packed_.bytes(), 256, nullptr};
    const patch_array patches{(is_bad ? bad_patches_ : good_patches_).data()};
    const encode_request request{.check = check};
    switch (call) {
      case batch_call::encode_batch:
        return encode_batch_async(*base_, patches, slots_.data(), item_count, on, {.check = check});
      case batch_call::service_encode: return without_batch(service_->encode(*base_, patches, item_count, on, request));
      case batch_call::service_update: {
        const auto old =
            service_->encode(*base_, patch_array{good_patches_.data()}, item_count, on, {.check = fault_check::off});
        if (!old) return failure(old.error());
        return without_batch(service_->update(*old, {changed_.data(), 3}, *base_, patches, on, request));
      }
      case batch_call::ragged_copy: return rg::copy_async(one, line_to_.good(), scratch(), on, with);
      case batch_call::ragged_pack: return rg::pack_async(one, packed, scratch(), on, with);
      case batch_call::ragged_unpack: return rg::unpack_async(packed, one, scratch(), on, with);
      case batch_call::ragged_pad: return rg::pad_async(one, dense(), {}, scratch(), on, with);
      case batch_call::ragged_unpad: return rg::unpad_async(dense(), one, scratch(), on, with);
      case batch_call::ragged_gather_rows: return rg::gather_rows_async(matrix(), index(is_bad), matrix_to(), on, with);
      case batch_call::ragged_scatter_rows:
        return rg::scatter_rows_async(matrix(), index(is_bad), matrix_to(), on, with);
      case batch_call::ragged_transpose: return rg::transpose_async(square, square_to_.good(), scratch(), on, with);
      case batch_call::ragged_cast:
        return rg::cast_async(one, line_to_.good(), {rg::value_type::f32, rg::value_type::f32}, scratch(), on, with);
      case batch_call::ragged_saxpy: return rg::saxpy_async(2, one, line_to_.good(), scratch(), on, with);
      case batch_call::ragged_max_pool_1d: return rg::max_pool_1d_async(one, line_to_.good(), 1, scratch(), on, with);
      case batch_call::ragged_reduce_rows:
        return rg::reduce_rows_async(one, rg::value_type::f32, rg::row_reduction::sum, sums_.good(), scratch(), on,
                                     with);
      case batch_call::gemm_rows:
        return gemm::multiply_async(row_problem(is_bad), gemm_scratch(), on, {.check = check});
      case batch_call::gemm_weights:
        return gemm::multiply_async(weight_problem(is_bad), gemm_scratch(), on, {.check = check});
      case batch_call::gemm_pointers:
        return gemm::multiply_async(pointer_problem(is_bad), gemm_scratch(), on, {.check = check});
      case batch_call::none: break;
    }
    ADD_FAILURE() << "a call that this table does not know: " << name(call);
    return {};
  }

  /// The bad item of a call, but for the call's number.
  static bad_item item_of(batch_call call) {
    switch (items_of(call)) {
      case item_kind::map:
        return {call, 0, bad_at, std::uint64_t{1} << static_cast<std::uint32_t>(rule::t06_address_multiple_of_16)};
      case item_kind::tensor: return {call, 0, bad_at, static_cast<std::uint64_t>(rg::fault::address)};
      case item_kind::row: return {call, 0, bad_at, static_cast<std::uint64_t>(rg::fault::index)};
      default: return {call, 0, 2, static_cast<std::uint64_t>(gemm::fault::rows)};
    }
  }
  static std::uint64_t items_in(batch_call call) {
    return items_of(call) == item_kind::group ? group_count : item_count;
  }

 private:
  static result<void> without_batch(const result<map_batch>& made) {
    return made ? result<void>{} : failure(made.error());
  }
  rg::workspace scratch() const { return {scratch_.data(), scratch_.bytes()}; }
  gemm::workspace gemm_scratch() const { return {scratch_.data(), scratch_.bytes()}; }
  dense_batch dense() const {
    return {.address = dense_.address(), .dim = {8}, .stride_bytes = {}, .tensor_pitch_bytes = 0};
  }
  rg::row_matrix matrix() const { return {line_.address(), item_count, 64, 256}; }
  rg::row_matrix matrix_to() const { return {line_to_.address(), item_count, 64, 256}; }
  rg::row_index index(bool is_bad) const { return {(is_bad ? bad_index_ : good_index_).data(), item_count, 8}; }
  gemm::group_offsets offsets(bool is_bad) const {
    return {(is_bad ? bad_ends_ : good_ends_).data(), offset_format::ends, 4};
  }

  gemm::row_problem row_problem(bool is_bad) const {
    gemm::row_problem made;
    made.groups = group_count;
    made.rows = 48;
    made.n = made.k = 64;
    made.offsets = offsets(is_bad);
    made.a = {a_.address(), 128};
    made.b = {b_.address(), 128};
    made.b_group_pitch_bytes = 64 * 128;
    made.c = {c_.address(), 128};
    return made;
  }
  gemm::weight_problem weight_problem(bool is_bad) const {
    gemm::weight_problem made;
    made.groups = group_count;
    made.rows = 48;
    made.m = made.n = 64;
    made.offsets = offsets(is_bad);
    made.a = {a_.address(), 128};
    made.b = {b_.address(), 128};
    made.c = {c_.address(), 128};
    made.c_group_pitch_bytes = 64 * 128;
    return made;
  }
  gemm::pointer_problem pointer_problem(bool is_bad) const {
    gemm::pointer_problem made;
    made.groups = group_count;
    made.a = addresses_.data();
    made.b = addresses_.data() + group_count;
    made.c = addresses_.data() + 2 * group_count;
    made.a_pitch_bytes = made.b_pitch_bytes = made.c_pitch_bytes = pitches_.data();
    made.m = (is_bad ? bad_m_ : good_m_).data();
    made.n = made.k = extents_.data();
    return made;
  }
  void make_pointers() {
    std::vector<std::uint64_t> addresses;
    for (const auto* const side : {&a_, &b_, &c_}) {
      for (std::uint64_t g = 0; g < group_count; ++g) addresses.push_back(side->address() + g * 64 * 128);
    }
    addresses_.upload(addresses);
    pitches_.upload(std::vector<std::int64_t>(group_count, 128));
    extents_.upload(std::vector<std::int64_t>(group_count, 64));
    good_m_.upload({16, 16, 16});
    bad_m_.upload({16, 16, -1});
  }

  tensors_on_device line_{1};
  tensors_on_device line_to_{1};
  tensors_on_device sums_{1, 1};
  tensors_on_device square_{2};
  tensors_on_device square_to_{2};
  device_array<unsigned char> packed_{item_count * 256};
  device_array<unsigned char> dense_{item_count * 256};
  device_array<unsigned char> scratch_{
      std::max(rg::workspace_bytes(item_count, 2).value(), gemm::workspace_bytes(group_count).value())};
  device_array<unsigned char> maps_memory_{item_count * 256};
  device_array<map_patch> good_patches_{item_count};
  device_array<map_patch> bad_patches_{item_count};
  device_array<tensor_map> slots_{item_count};
  device_array<std::int64_t> good_index_{item_count};
  device_array<std::int64_t> bad_index_{item_count};
  device_array<std::uint32_t> changed_{3};
  device_array<std::int32_t> good_ends_{group_count};
  device_array<std::int32_t> bad_ends_{group_count};
  device_array<unsigned char> a_{group_count * 64 * 128};
  device_array<unsigned char> b_{group_count * 64 * 128};
  device_array<unsigned char> c_{group_count * 64 * 128};
  device_array<std::uint64_t> addresses_{3 * group_count};
  device_array<std::int64_t> pitches_{group_count};
  device_array<std::int64_t> extents_{group_count};
  device_array<std::int64_t> good_m_{group_count};
  device_array<std::int64_t> bad_m_{group_count};
  std::optional<map_template> base_;
  std::optional<map_service> service_;
};

/// Every call there is: one that is added to `batch_call` is in, and `world::run` fails where it does not know it.
std::vector<batch_call> all_calls() {
  std::vector<batch_call> calls;
  for (std::uint32_t call = 1; call < batch_call_count; ++call) calls.push_back(static_cast<batch_call>(call));
  return calls;
}

std::uint64_t count_of(const fault_report& report, item_kind kind) {
  const std::uint64_t counts[]{report.maps, report.tensors, report.rows, report.groups};
  return counts[static_cast<std::size_t>(kind)];
}

void expect_item(const bad_item& got, const bad_item& want) {
  EXPECT_EQ(got.call, want.call) << to_string(got);
  EXPECT_EQ(got.index, want.index);
  EXPECT_EQ(got.bits, want.bits);
  EXPECT_NE(got.number, 0u);
}

class device_faults : public gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    TMAP_ASSERT_OK(reset_faults());
  }
  static fault_report taken() {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const result<fault_report> report = reset_faults();
    EXPECT_TRUE(report.has_value()) << to_string(report.error());
    return report ? *report : fault_report{};
  }
};

TEST_F(device_faults, good_batches_count_nothing) {
  world all;
  const own_stream stream;
  for (const batch_call call : all_calls()) {
    for (const fault_check check : {fault_check::off, fault_check::sync}) {
      TMAP_ASSERT_OK(all.run(call, false, check, stream.get()));
      const fault_report report = taken();
      EXPECT_EQ(report.all(), 0u) << name(call);
      EXPECT_EQ(report.first.call, batch_call::none) << name(call);
    }
  }
}

TEST_F(device_faults, every_call_counts_its_bad_item) {
  world all;
  const own_stream stream;
  std::uint64_t latest = 0;
  for (const batch_call call : all_calls()) {
    SCOPED_TRACE(name(call));
    TMAP_ASSERT_OK(all.run(call, true, fault_check::off, stream.get()));
    const fault_report report = taken();
    EXPECT_EQ(report.all(), 1u);
    EXPECT_EQ(count_of(report, items_of(call)), 1u);
    expect_item(report.first, world::item_of(call));
    EXPECT_GT(report.first.number, latest) << "numbers rise";
    latest = report.first.number;
  }
}

TEST_F(device_faults, every_checked_call_fails_with_its_bad_item) {
  world all;
  const own_stream stream;
  TMAP_ASSERT_OK(all.run(batch_call::gemm_rows, true, fault_check::off, stream.get()));
  for (const batch_call call : all_calls()) {
    SCOPED_TRACE(name(call));
    const result<void> done = all.run(call, true, fault_check::sync, stream.get());
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().code, status::bad_items) << to_string(done.error());
    EXPECT_EQ(done.error().found, 1u);
    EXPECT_EQ(done.error().allowed, world::items_in(call));
    expect_item(done.error().bad, world::item_of(call));
    EXPECT_EQ(cudaStreamQuery(stream.get()), cudaSuccess) << "it has waited";
    EXPECT_NE(to_string(done.error()).find(name(call)), std::string::npos);
  }
  const fault_report report = taken();
  EXPECT_EQ(report.all(), batch_call_count - 1 + 1) << "each in the context's counts, and the one that was not checked";
  EXPECT_EQ(report.first.call, batch_call::gemm_rows) << "which came first";
}

TEST_F(device_faults, a_checked_service_call_gives_its_slots_back) {
  world all;
  const own_stream stream;
  for (int round = 0; round < 100; ++round) {  // of 4096 slots for 100 maps each
    const result<void> done = all.run(batch_call::service_encode, true, fault_check::sync, stream.get());
    ASSERT_FALSE(done.has_value());
    ASSERT_EQ(done.error().code, status::bad_items) << round << ": " << to_string(done.error());
  }
  EXPECT_EQ(taken().maps, 100u);
}

TEST_F(device_faults, streams_and_threads_count_together) {
  constexpr int threads = 4;
  constexpr int rounds = 200;
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([t] {
      ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
      world all;
      const own_stream stream;
      const fault_check check = t == 0 ? fault_check::sync : fault_check::off;
      for (int round = 0; round < rounds; ++round) {
        const result<void> done = all.run(batch_call::ragged_copy, true, check, stream.get());
        ASSERT_EQ(done.has_value(), t != 0);
        if (t == 0) {
          ASSERT_EQ(done.error().found, 1u) << "nobody else's";
        }
      }
      EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
    });
  }
  // Resets lose nothing and count nothing twice.
  std::uint64_t counted = 0;
  for (int reset = 0; reset < 300; ++reset) {
    const result<fault_report> report = reset_faults();
    ASSERT_TRUE(report.has_value()) << to_string(report.error());
    counted += report->tensors;
    if (report->first.call != batch_call::none) expect_item(report->first, world::item_of(batch_call::ragged_copy));
  }
  for (std::thread& thread : pool) thread.join();
  counted += taken().tensors;
  EXPECT_EQ(counted, std::uint64_t{threads} * rounds);
}

TEST_F(device_faults, many_bad_maps_are_all_counted) {
  constexpr std::uint64_t count = 1 << 18;
  std::vector<map_patch> values(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    values[i].global_dim[1] = 1;
    values[i].global_address = i % 2 == 0 ? 8 : 4096;
  }
  const device_array<map_patch> patches(values);
  const device_array<tensor_map> slots(count);
  const result<map_template> base = make_template(rows_spec(), patch_address | patch_dim(1));
  TMAP_ASSERT_OK(base);
  TMAP_ASSERT_OK(
      encode_batch_async(*base, patch_array{patches.data()}, slots.data(), count, cuda::stream_ref{cudaStream_t{}}));
  const fault_report report = taken();
  EXPECT_EQ(report.maps, count / 2);
  EXPECT_EQ(report.first.index % 2, 0u);
  EXPECT_EQ(report.first.index % 16, 0u) << "the lowest of its warp";
}

TEST_F(device_faults, reading_waits_for_no_other_stream) {
  world all;
  const own_stream stream;
  // Held back until the host says so, beside which faults() must return.
  struct gate {
    static void CUDART_CB wait(void* open) {
      while (!static_cast<std::atomic<bool>*>(open)->load()) std::this_thread::yield();
    }
  };
  std::atomic<bool> open{false};
  // So that nothing is loaded or made below, which might wait for the gate.
  TMAP_ASSERT_OK(all.run(batch_call::ragged_copy, false, fault_check::off, stream.get()));
  TMAP_ASSERT_OK(faults());
  TMAP_ASSERT_CUDA(cudaLaunchHostFunc(stream.get(), gate::wait, &open));
  TMAP_ASSERT_OK(all.run(batch_call::ragged_copy, true, fault_check::off, stream.get()));
  const result<fault_report> early = faults();
  EXPECT_EQ(cudaStreamQuery(stream.get()), cudaErrorNotReady);
  static_cast<void>(cudaGetLastError());
  open = true;
  TMAP_ASSERT_OK(early);
  EXPECT_EQ(early->all(), 0u);
  EXPECT_EQ(taken().tensors, 1u);
}

class device_faults_in_graphs : public device_faults, public ::testing::WithParamInterface<cudaStreamCaptureMode> {};

TEST_P(device_faults_in_graphs, replays_count_by_the_captured_call) {
  world all;
  const own_stream stream;
  for (const batch_call call :
       {batch_call::encode_batch, batch_call::ragged_copy, batch_call::ragged_gather_rows, batch_call::gemm_rows}) {
    SCOPED_TRACE(name(call));
    // CUDA loads the kernels outside the capture.
    TMAP_ASSERT_OK(all.run(call, false, fault_check::off, stream.get()));
    TMAP_ASSERT_CUDA(cudaStreamSynchronize(stream.get()));
    TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream.get(), GetParam()));
    const result<void> captured = all.run(call, true, fault_check::sync, stream.get());
    const result<fault_report> meanwhile = faults();
    cudaGraph_t graph{};
    TMAP_ASSERT_CUDA(cudaStreamEndCapture(stream.get(), &graph));
    TMAP_ASSERT_OK(captured);
    TMAP_ASSERT_OK(meanwhile);
    EXPECT_EQ(meanwhile->all(), 0u);
    cudaGraphExec_t executable{};
    TMAP_ASSERT_CUDA(cudaGraphInstantiate(&executable, graph, 0));
    bad_item first;
    for (int replay = 0; replay < 3; ++replay) {
      TMAP_ASSERT_CUDA(cudaGraphLaunch(executable, stream.get()));
      const fault_report report = taken();
      EXPECT_EQ(count_of(report, items_of(call)), 1u);
      expect_item(report.first, world::item_of(call));
      if (replay > 0) {
        EXPECT_EQ(report.first.number, first.number);
      }
      first = report.first;
    }
    TMAP_ASSERT_CUDA(cudaGraphExecDestroy(executable));
    TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  }
}

INSTANTIATE_TEST_SUITE_P(modes, device_faults_in_graphs,
                         ::testing::Values(cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                                           cudaStreamCaptureModeRelaxed));

/// The exit code of one disabled case of this program, run alone with this TMAP_CHECK.
int run_case(const std::string& name, const char* check) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("TMAP_CHECK", check, 1);
    const std::string filter = "--gtest_filter=" + name;
    execl("/proc/self/exe", "child", "--gtest_also_run_disabled_tests", filter.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int outcome = 0;
  if (child < 0 || waitpid(child, &outcome, 0) != child || !WIFEXITED(outcome)) return -1;
  return WEXITSTATUS(outcome);
}

TEST_F(device_faults, the_environment_checks_every_call) {
  EXPECT_EQ(run_case("device_faults.DISABLED_checked_by_the_environment", "sync"), 0);
  EXPECT_NE(run_case("device_faults.DISABLED_checked_by_the_environment", "off"), 0);
  EXPECT_EQ(run_case("device_faults.DISABLED_refused_for_the_environment", "always"), 0);
  EXPECT_EQ(run_case("device_faults.DISABLED_context_made_anew", "off"), 0);
  EXPECT_EQ(run_case("first_use.DISABLED_in_a_capture_global", "off"), 0);
  EXPECT_EQ(run_case("first_use.DISABLED_in_a_capture_of_this_thread", "off"), 0);
}

TEST_F(device_faults, DISABLED_checked_by_the_environment) {
  world all;
  const own_stream stream;
  for (const batch_call call : all_calls()) {
    const result<void> done = all.run(call, true, fault_check::environment, stream.get());
    ASSERT_FALSE(done.has_value()) << name(call);
    EXPECT_EQ(done.error().code, status::bad_items);
    TMAP_ASSERT_OK(all.run(call, false, fault_check::environment, stream.get()));
    TMAP_ASSERT_OK(all.run(call, true, fault_check::off, stream.get()));
  }
}

TEST_F(device_faults, DISABLED_refused_for_the_environment) {
  world all;
  const own_stream stream;
  for (const batch_call call : all_calls()) {
    const result<void> done = all.run(call, false, fault_check::environment, stream.get());
    ASSERT_FALSE(done.has_value()) << name(call);
    EXPECT_EQ(done.error().code, status::invalid_argument);
    EXPECT_NE(to_string(done.error()).find("TMAP_CHECK"), std::string::npos);
  }
}

class first_use : public gpu_test {
 protected:
  /// The records are found, and what reads them is made, while a stream is captured.
  static void ask_in_a_capture(cudaStreamCaptureMode mode) {
    const own_stream stream;
    TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream.get(), mode));
    const result<fault_report> read = faults();
    const result<fault_report> reset = reset_faults();
    cudaGraph_t graph{};
    TMAP_ASSERT_CUDA(cudaStreamEndCapture(stream.get(), &graph));
    TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
    TMAP_ASSERT_OK(read);
    TMAP_ASSERT_OK(reset);
  }
};

TEST_F(first_use, DISABLED_in_a_capture_global) {
  ask_in_a_capture(cudaStreamCaptureModeGlobal);
}

TEST_F(first_use, DISABLED_in_a_capture_of_this_thread) {
  ask_in_a_capture(cudaStreamCaptureModeThreadLocal);
}

TEST_F(device_faults, DISABLED_context_made_anew) {
  for (int round = 0; round < 3; ++round) {
    {
      world all;
      const own_stream stream;
      TMAP_ASSERT_OK(all.run(batch_call::ragged_copy, true, fault_check::off, stream.get()));
      ASSERT_FALSE(all.run(batch_call::ragged_copy, true, fault_check::sync, stream.get()).has_value());
      TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
      const result<fault_report> report = faults();
      TMAP_ASSERT_OK(report);
      EXPECT_EQ(report->tensors, 2u) << "of this context alone";
    }
    TMAP_ASSERT_CUDA(cudaDeviceReset());
  }
}

TEST_F(device_faults, each_device_has_its_own) {
  int devices = 0;
  TMAP_ASSERT_CUDA(cudaGetDeviceCount(&devices));
  if (devices < 2) GTEST_SKIP() << "one GPU";
  for (int device = 0; device < devices; ++device) {
    TMAP_ASSERT_CUDA(cudaSetDevice(device));
    TMAP_ASSERT_OK(reset_faults());
  }
  for (int device = 0; device < devices; ++device) {
    TMAP_ASSERT_CUDA(cudaSetDevice(device));
    world all;
    const own_stream stream;
    for (int i = 0; i <= device; ++i) {
      TMAP_ASSERT_OK(all.run(batch_call::ragged_copy, true, fault_check::off, stream.get()));
    }
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  }
  for (int device = 0; device < devices; ++device) {
    TMAP_ASSERT_CUDA(cudaSetDevice(device));
    EXPECT_EQ(taken().tensors, static_cast<std::uint64_t>(device) + 1);
  }
  TMAP_ASSERT_CUDA(cudaSetDevice(0));
}

}  // namespace
}  // namespace tmap::testing
