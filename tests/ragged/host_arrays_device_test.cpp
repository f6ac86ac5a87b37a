// SPDX-License-Identifier: Apache-2.0
// Tests host arrays in captured operations on a GPU. Every operation refuses pageable arrays, and
// the capture continues. Each replay reads pinned arrays again.
#include <tmap/ragged.hpp>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/gpu_fixture.hpp"

namespace tmap::ragged::testing {
namespace {

using namespace tmap::testing;

constexpr std::uint64_t edge = 64;
constexpr std::uint64_t square_bytes = edge * edge * sizeof(float);

map_patch square_at(const device_array<unsigned char>& memory) {
  map_patch patch{};
  patch.global_address = memory.address();
  patch.global_dim[0] = patch.global_dim[1] = edge;
  patch.global_stride_bytes[0] = edge * sizeof(float);
  return patch;
}

tensor_batch one_square(const map_patch* patch, array_side side = array_side::host) {
  tensor_batch batch;
  batch.tensors = patch_array{patch};
  batch.count = 1;
  batch.element_bytes = sizeof(float);
  batch.rank = 2;
  batch.side = side;
  return batch;
}

dense_batch dense_square(const device_array<unsigned char>& memory) {
  dense_batch dense;
  dense.address = memory.address();
  dense.dim[0] = dense.dim[1] = edge;
  return dense;
}

/// Owns a patch in memory that CUDA pinned.
class pinned_patch {
 public:
  pinned_patch() { EXPECT_EQ(cudaMallocHost(reinterpret_cast<void**>(&patch_), sizeof *patch_), cudaSuccess); }
  pinned_patch(const pinned_patch&) = delete;
  pinned_patch& operator=(const pinned_patch&) = delete;
  ~pinned_patch() { cudaFreeHost(patch_); }
  map_patch* get() const { return patch_; }

 private:
  map_patch* patch_{};
};

class captured_host_arrays : public gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    TMAP_ASSERT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  void TearDown() override {
    if (stream_ != nullptr) {
      EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    }
    gpu_test::TearDown();
  }

  /// Returns the graph of the work that `work` enqueues on the stream; null if the capture broke.
  cudaGraph_t capture(const std::function<void()>& work) const {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
    work();
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    return graph;
  }

  cudaStream_t stream_{};
};

/// Makes a call with these two sides.
using two_sided = std::function<result<void>(const tensor_batch& source, const tensor_batch& destination)>;

TEST_F(captured_host_arrays, pageable_ones_are_refused_by_every_operation_and_the_capture_goes_on) {
  const device_array<unsigned char> from(square_bytes);
  const device_array<unsigned char> to(square_bytes);
  const device_array<unsigned char> room(workspace_bytes(1, 2).value());
  const workspace scratch{room.data(), room.bytes()};
  const map_patch source_patch = square_at(from);
  const map_patch destination_patch = square_at(to);
  const device_array<map_patch> on_device(std::vector<map_patch>{source_patch, destination_patch});
  packed_buffer packed;
  packed.memory = to.data();
  packed.bytes = square_bytes;
  const dense_batch dense = dense_square(to);
  const std::pair<const char*, two_sided> operations[] = {
      {"copy",
       [&](const auto& a, const auto& b) {
         return copy(a, b, {on_stream{stream_, scratch}});
       }},
      {"transpose",
       [&](const auto& a, const auto& b) {
         return transpose(a, b, {on_stream{stream_, scratch}});
       }},
      {"saxpy",
       [&](const auto& a, const auto& b) {
         return saxpy(2, a, b, {on_stream{stream_, scratch}});
       }},
      {"max_pool_1d",
       [&](const auto& a, const auto& b) {
         return max_pool_1d(a, b, 1, {on_stream{stream_, scratch}});
       }},
      {"cast",
       [&](const auto& a, const auto& b) {
         return cast(a, b, {value_type::f32, value_type::f32}, {on_stream{stream_, scratch}});
       }},
      {"reduce_rows",
       [&](const auto& a, const auto& b) {
         return reduce_rows(a, value_type::f32, row_reduction::sum, b, {on_stream{stream_, scratch}});
       }},
      {"column_sums",
       [&](const auto& a, const auto& b) {
         return column_sums(a, value_type::f32, b, value_type::f32, {on_stream{stream_, scratch}});
       }},
  };
  const auto expect_refused = [](const result<void>& answer, const std::string& side, const void* array) {
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().code, status::pageable_memory_in_capture) << to_string(answer.error());
    EXPECT_EQ(answer.error().argument.view(), side);
    EXPECT_EQ(answer.error().found, reinterpret_cast<std::uint64_t>(array));
  };
  const tensor_batch device_source = one_square(on_device.data(), array_side::device);
  const tensor_batch device_destination = one_square(on_device.data() + 1, array_side::device);
  const cudaGraph_t graph = capture([&] {
    for (const auto& [name, operation] : operations) {
      SCOPED_TRACE(name);
      expect_refused(operation(one_square(&source_patch), device_destination), "source", &source_patch);
      expect_refused(operation(device_source, one_square(&destination_patch)), "destination", &destination_patch);
    }
    expect_refused(pack(one_square(&source_patch), packed, {on_stream{stream_, scratch}}), "source", &source_patch);
    expect_refused(unpack(packed, one_square(&source_patch), {on_stream{stream_, scratch}}), "destination",
                   &source_patch);
    expect_refused(pad(one_square(&source_patch), dense, {}, {on_stream{stream_, scratch}}), "source", &source_patch);
    expect_refused(unpad(dense, one_square(&source_patch), {on_stream{stream_, scratch}}), "destination",
                   &source_patch);
  });
  ASSERT_NE(graph, nullptr);
  std::size_t nodes = 1;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 0u) << "a refused call enqueued something";
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(captured_host_arrays, pinned_ones_are_read_anew_at_each_replay) {
  const device_array<unsigned char> sources[] = {
      device_array<unsigned char>(std::vector<unsigned char>(square_bytes, 1)),
      device_array<unsigned char>(std::vector<unsigned char>(square_bytes, 2))};
  const device_array<unsigned char> to(square_bytes);
  const device_array<unsigned char> room(workspace_bytes(1, 2).value());
  const pinned_patch source;
  const pinned_patch destination;
  *source.get() = square_at(sources[0]);
  *destination.get() = square_at(to);
  const cudaGraph_t graph = capture([&] {
    TMAP_ASSERT_OK(copy(one_square(source.get()), one_square(destination.get()),
                        {on_stream{stream_, {room.data(), room.bytes()}}}));
  });
  ASSERT_NE(graph, nullptr);
  cudaGraphExec_t executable = nullptr;
  TMAP_ASSERT_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  for (const unsigned char expected : std::vector<unsigned char>{1, 2, 1}) {
    *source.get() = square_at(sources[expected - 1]);
    to.fill_poison();
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    TMAP_ASSERT_CUDA(cudaGraphLaunch(executable, stream_));
    TMAP_ASSERT_CUDA(cudaStreamSynchronize(stream_));
    EXPECT_EQ(to.download(), std::vector<unsigned char>(square_bytes, expected));
  }
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

/// One thread captures a stream that waits for the legacy one, while another calls with host
/// arrays.
class beside_a_capture : public captured_host_arrays, public ::testing::WithParamInterface<cudaStreamCaptureMode> {
 protected:
  /// Expects that both the call and the capture succeed.
  void expect_whole(const tensor_batch& source, const tensor_batch& destination) const {
    const device_array<unsigned char> room(workspace_bytes(1, 2).value());
    const workspace scratch{room.data(), room.bytes()};
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());  // the stream does not wait for the one that fills the arrays
    TMAP_ASSERT_OK(copy(source, destination, {on_stream{stream_, scratch}}));  // loads the kernels
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    cudaStream_t captured = nullptr;
    cudaGraph_t graph = nullptr;
    TMAP_ASSERT_CUDA(cudaStreamCreate(&captured));
    TMAP_ASSERT_CUDA(cudaStreamBeginCapture(captured, GetParam()));
    result<void> answer;
    std::thread([&] { answer = copy(source, destination, {on_stream{stream_, scratch}}); }).join();
    EXPECT_EQ(cudaStreamEndCapture(captured, &graph), cudaSuccess) << "the capture broke";
    TMAP_ASSERT_OK(answer);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(captured), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }
};

TEST_P(beside_a_capture, pinned_arrays_break_nothing) {
  const device_array<unsigned char> from(std::vector<unsigned char>(square_bytes, 7));
  const device_array<unsigned char> to(square_bytes);
  const pinned_patch source;
  const pinned_patch destination;
  *source.get() = square_at(from);
  *destination.get() = square_at(to);
  expect_whole(one_square(source.get()), one_square(destination.get()));
  EXPECT_EQ(to.download(), from.download());
}

TEST_P(beside_a_capture, pageable_arrays_break_nothing) {
  const device_array<unsigned char> from(std::vector<unsigned char>(square_bytes, 7));
  const device_array<unsigned char> to(square_bytes);
  const map_patch source = square_at(from);
  const map_patch destination = square_at(to);
  expect_whole(one_square(&source), one_square(&destination));
  EXPECT_EQ(to.download(), from.download());
}

/// The library refuses before the copy, which would have broken the capture.
TEST_P(beside_a_capture, a_call_on_the_legacy_stream_is_refused_and_the_capture_goes_on) {
  const device_array<unsigned char> from(square_bytes);
  const device_array<unsigned char> to(square_bytes);
  const device_array<unsigned char> room(workspace_bytes(1, 2).value());
  const map_patch source = square_at(from);
  const map_patch destination = square_at(to);
  cudaStream_t captured = nullptr;
  cudaGraph_t graph = nullptr;
  TMAP_ASSERT_CUDA(cudaStreamCreate(&captured));
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(captured, GetParam()));
  result<void> answer;
  std::thread([&] {
    answer =
        copy(one_square(&source), one_square(&destination), {on_stream{cudaStream_t{}, {room.data(), room.bytes()}}});
  }).join();
  EXPECT_EQ(cudaStreamEndCapture(captured, &graph), cudaSuccess) << "the capture broke";
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().cuda_code, cudaErrorStreamCaptureImplicit) << to_string(answer.error());
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(captured), cudaSuccess);
}

INSTANTIATE_TEST_SUITE_P(host_arrays, beside_a_capture,
                         ::testing::Values(cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                                           cudaStreamCaptureModeRelaxed));

}  // namespace
}  // namespace tmap::ragged::testing
