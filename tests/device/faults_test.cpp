// SPDX-License-Identifier: Apache-2.0
// Tests that bad items of every public call are counted in its context and returned by checked
// calls.
#include "device/faults_on_device.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace tmap::testing {
namespace {

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
  EXPECT_EQ(report.first.call, batch_call::gemm_rows) << "the first bad item";
}

TEST_F(device_faults, a_checked_service_call_gives_its_slots_back) {
  world all;
  const own_stream stream;
  for (int round = 0; round < 100; ++round) {  // each round takes 100 of the 4096 slots
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
          ASSERT_EQ(done.error().found, 1u) << "it counts only its own item";
        }
      }
      EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
    });
  }
  // A reset loses nothing and counts nothing twice.
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
  TMAP_ASSERT_OK(encode_batch(*base, patch_array{patches.data()}, slots.data(), count, {cudaStream_t{}}));
  const fault_report report = taken();
  EXPECT_EQ(report.maps, count / 2);
  EXPECT_EQ(report.first.index % 2, 0u);
  EXPECT_EQ(report.first.index % 16, 0u) << "the lowest of its warp";
}

TEST_F(device_faults, reading_waits_for_no_other_stream) {
  world all;
  const own_stream stream;
  // The stream waits until the host opens the gate. faults() must return while it waits.
  struct gate {
    static void CUDART_CB wait(void* open) {
      while (!static_cast<std::atomic<bool>*>(open)->load()) std::this_thread::yield();
    }
  };
  std::atomic<bool> open{false};
  // Runs each call once first, so that nothing below has to load a kernel or allocate, which might
  // wait for the gate.
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

/// Returns the exit code of one disabled case of this program, run alone with this TMAP_CHECK.
int run_case(const std::string& name, const char* check) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("TMAP_TEST_CHECK", check, 1);
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
  /// Finds the records and makes the objects that read them while a stream is captured.
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
