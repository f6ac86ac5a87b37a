// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "lib/pool/pool_calls.hpp"
#include "lib/pool/slab_layout.hpp"
#include "pool/device_streams.hpp"

// Checks on a real device that CUDA does what the fake streams assume.

namespace tmap::testing {
namespace {

using pool::real_pool_calls;

class real_pool_calls_test : public gpu_test {};

TEST_F(real_pool_calls_test, allocated_memory_is_zeroed) {
  constexpr std::size_t bytes = pool::slab_bytes(16384);
  for (int round = 0; round < 3; ++round) {
    void* data{};
    TMAP_ASSERT_CUDA(real_pool_calls().allocate(&data, bytes));
    std::vector<unsigned char> seen(bytes, 0xff);
    TMAP_ASSERT_CUDA(cudaMemcpy(seen.data(), data, bytes, cudaMemcpyDeviceToHost));
    EXPECT_EQ(seen, std::vector<unsigned char>(bytes));
    TMAP_ASSERT_CUDA(cudaMemset(data, 0xa5, bytes));
    TMAP_ASSERT_CUDA(real_pool_calls().free(data));
  }
}

TEST_F(real_pool_calls_test, not_ready_is_no_last_error) {
  const stream_owner stream;
  cudaEvent_t event{};
  TMAP_ASSERT_CUDA(real_pool_calls().create_event(&event));
  gate closed{stream.get()};
  TMAP_ASSERT_CUDA(real_pool_calls().record_event(event, stream.get()));
  EXPECT_EQ(real_pool_calls().query_event(event), cudaErrorNotReady);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  closed.open();
  TMAP_ASSERT_CUDA(cudaStreamSynchronize(stream.get()));
  EXPECT_EQ(real_pool_calls().query_event(event), cudaSuccess);
  TMAP_ASSERT_CUDA(real_pool_calls().destroy_event(event));
}

TEST_F(real_pool_calls_test, stream_ids_are_never_used_again) {
  unsigned long long last = 0;
  for (int round = 0; round < 100; ++round) {
    const stream_owner stream;
    unsigned long long id{};
    TMAP_ASSERT_CUDA(real_pool_calls().stream_id(stream.get(), &id));
    EXPECT_NE(id, last);
    EXPECT_LT(id, 1ull << 63) << "the pool uses the ids above for itself";
    last = id;
  }
  unsigned long long null_id{}, legacy_id{}, here{}, there{};
  TMAP_ASSERT_CUDA(real_pool_calls().stream_id(nullptr, &null_id));
  TMAP_ASSERT_CUDA(real_pool_calls().stream_id(cudaStreamLegacy, &legacy_id));
  EXPECT_EQ(null_id, legacy_id);
  TMAP_ASSERT_CUDA(real_pool_calls().stream_id(cudaStreamPerThread, &here));
  std::thread{[&] { EXPECT_EQ(real_pool_calls().stream_id(cudaStreamPerThread, &there), cudaSuccess); }}.join();
  EXPECT_NE(here, legacy_id);
  EXPECT_NE(here, there);
  for (const unsigned long long id : {legacy_id, here, there}) EXPECT_LT(id, 1ull << 63);
}

TEST_F(real_pool_calls_test, captures_have_ids_and_forbid_the_legacy_stream) {
  const stream_owner stream{cudaStreamDefault};
  unsigned long long id{1}, last{};
  TMAP_ASSERT_CUDA(real_pool_calls().capture_id(stream.get(), &id));
  EXPECT_EQ(id, 0u);
  for (int round = 0; round < 3; ++round) {
    TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
    TMAP_ASSERT_CUDA(real_pool_calls().capture_id(stream.get(), &id));
    EXPECT_NE(id, 0u);
    EXPECT_NE(id, last);
    last = id;
    cudaGraph_t found{}, graph{};
    TMAP_ASSERT_CUDA(real_pool_calls().captured_graph(stream.get(), &found));
    EXPECT_EQ(real_pool_calls().capture_id(nullptr, &id), cudaErrorStreamCaptureImplicit);
    cudaGetLastError();
    TMAP_ASSERT_CUDA(cudaStreamEndCapture(stream.get(), &graph));
    EXPECT_EQ(graph, found);
    TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  }
}

TEST_F(real_pool_calls_test, a_broken_capture_says_so) {
  const stream_owner stream;
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
  EXPECT_NE(cudaStreamSynchronize(stream.get()), cudaSuccess) << "forbidden, and breaks the capture";
  cudaGetLastError();
  unsigned long long id{};
  EXPECT_EQ(real_pool_calls().capture_id(stream.get(), &id), cudaErrorStreamCaptureInvalidated);
  cudaGraph_t graph{};
  EXPECT_NE(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
  cudaGetLastError();
  TMAP_ASSERT_CUDA(real_pool_calls().capture_id(stream.get(), &id));
  EXPECT_EQ(id, 0u);
}

TEST_F(real_pool_calls_test, a_graph_drops_once_when_all_of_it_is_gone) {
  const stream_owner stream;
  const auto drops = std::make_unique<std::atomic<int>>(0);
  const auto drop = [](void* object) { ++*static_cast<std::atomic<int>*>(object); };
  cudaUserObject_t held{};
  EXPECT_NE(real_pool_calls().retain_in_graph(nullptr, drops.get(), drop, &held), cudaSuccess);
  cudaGetLastError();
  EXPECT_TRUE(comes_true([&] { return *drops == (held == nullptr ? 0 : 1); }));
  drops->store(0);

  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
  cudaGraph_t graph{};
  TMAP_ASSERT_CUDA(real_pool_calls().captured_graph(stream.get(), &graph));
  TMAP_ASSERT_CUDA(real_pool_calls().retain_in_graph(graph, drops.get(), drop, &held));
  TMAP_ASSERT_CUDA(cudaStreamEndCapture(stream.get(), &graph));
  cudaGraphExec_t exec{};
  TMAP_ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  TMAP_ASSERT_CUDA(cudaGraphLaunch(exec, stream.get()));
  TMAP_ASSERT_CUDA(cudaStreamSynchronize(stream.get()));
  std::this_thread::sleep_for(std::chrono::milliseconds{50});
  EXPECT_EQ(*drops, 0) << "the executable still exists";
  TMAP_ASSERT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_TRUE(comes_true([&] { return *drops == 1; }));
}

TEST_F(real_pool_calls_test, an_event_of_an_ended_capture_says_so) {
  const stream_owner captured, other;
  cudaEvent_t event{};
  TMAP_ASSERT_CUDA(real_pool_calls().create_event(&event));
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(captured.get(), cudaStreamCaptureModeRelaxed));
  TMAP_ASSERT_CUDA(real_pool_calls().record_event(event, captured.get()));
  cudaGraph_t graph{};
  TMAP_ASSERT_CUDA(cudaStreamEndCapture(captured.get(), &graph));
  TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  EXPECT_EQ(real_pool_calls().query_event(event), cudaErrorInvalidValue);
  EXPECT_EQ(real_pool_calls().wait_event(other.get(), event), cudaErrorInvalidValue);
  cudaGetLastError();
  unsigned long long capture{};
  TMAP_ASSERT_CUDA(real_pool_calls().capture_id(other.get(), &capture));
  EXPECT_EQ(capture, 0u) << "the wait did not bring it into a capture";
  TMAP_ASSERT_CUDA(real_pool_calls().record_event(event, other.get()));
  TMAP_ASSERT_CUDA(cudaStreamSynchronize(other.get()));
  EXPECT_EQ(real_pool_calls().query_event(event), cudaSuccess) << "an eager record makes it usable again";
  TMAP_ASSERT_CUDA(real_pool_calls().destroy_event(event));
}

/// Graphs that hold an object, and the time of its drop.
class user_objects : public gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    owner_.emplace();
    stream = owner_->get();
    TMAP_ASSERT_CUDA(cudaMalloc(&memory, 4));
  }
  void TearDown() override {
    gpu_test::TearDown();
    cudaFree(memory);
  }

  using counter = std::atomic<int>;

  void capture(counter& drops, counter* open, cudaGraph_t* graph) {
    TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    retain(drops);
    if (open != nullptr) TMAP_ASSERT_CUDA(cudaLaunchHostFunc(stream, wait_until_open, open));
    TMAP_ASSERT_CUDA(cudaMemsetAsync(memory, 0, 4, stream));
    TMAP_ASSERT_CUDA(cudaStreamEndCapture(stream, graph));
  }
  void retain(counter& drops) {
    const auto drop = [](void* object) { ++*static_cast<counter*>(object); };
    cudaGraph_t graph{};
    TMAP_ASSERT_CUDA(real_pool_calls().captured_graph(stream, &graph));
    TMAP_ASSERT_CUDA(real_pool_calls().retain_in_graph(graph, &drops, drop, &held));
  }
  static void instantiate(cudaGraph_t graph, cudaGraphExec_t* exec) {
    TMAP_ASSERT_CUDA(cudaGraphInstantiate(exec, graph, 0));
    TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  }
  void run(cudaGraphExec_t exec) {
    TMAP_ASSERT_CUDA(cudaGraphLaunch(exec, stream));
    TMAP_ASSERT_CUDA(cudaStreamSynchronize(stream));
  }

  /// Reads the drops after a while, because a thread of CUDA drops objects some time later.
  static int after_a_while(const counter& drops) {
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
    return drops;
  }
  static bool dropped(const counter& drops) {
    return comes_true([&] { return drops == 1; });
  }

  cudaStream_t stream{};
  void* memory{};
  cudaUserObject_t held{};  ///< by the last capture

 private:
  std::optional<stream_owner> owner_;

  static void CUDART_CB wait_until_open(void* open) {
    comes_true([&] { return *static_cast<counter*>(open) != 0; });
  }
};

/// A failed call of the pool does this.
TEST_F(user_objects, released_inside_the_capture_drop_once_and_the_graph_is_whole) {
  counter released{}, kept{};
  std::size_t nodes{1};
  cudaGraph_t graph{};
  cudaGraphExec_t exec{};
  TMAP_ASSERT_CUDA(cudaMemset(memory, 1, 4));
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  retain(kept);
  retain(released);
  TMAP_ASSERT_CUDA(real_pool_calls().captured_graph(stream, &graph));
  TMAP_ASSERT_CUDA(real_pool_calls().graph_nodes(graph, &nodes));
  EXPECT_EQ(nodes, 0u);
  TMAP_ASSERT_CUDA(real_pool_calls().release_from_graph(graph, held));
  EXPECT_TRUE(dropped(released)) << "while the capture goes on";
  TMAP_ASSERT_CUDA(cudaMemsetAsync(memory, 0, 4, stream));
  TMAP_ASSERT_CUDA(real_pool_calls().graph_nodes(graph, &nodes));
  EXPECT_EQ(nodes, 1u);
  TMAP_ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
  instantiate(graph, &exec);
  run(exec);
  int seen{-1};
  TMAP_ASSERT_CUDA(cudaMemcpy(&seen, memory, 4, cudaMemcpyDeviceToHost));
  EXPECT_EQ(seen, 0);
  EXPECT_EQ(after_a_while(kept), 0);
  TMAP_ASSERT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_TRUE(dropped(kept));
  EXPECT_EQ(after_a_while(released), 1);
}

/// Opens a gate some time later, no matter what waits, and records the drops up to then.
class late_opener {
 public:
  late_opener(std::atomic<int>& open, const std::atomic<int>& drops)
      : thread_{[this, &open, &drops] {
          std::this_thread::sleep_for(std::chrono::milliseconds{300});
          early_ = drops;
          open = 1;
        }} {}
  int early_drops() {
    thread_.join();
    return early_;
  }

 private:
  int early_{-1};
  std::thread thread_;
};

TEST_F(user_objects, an_executable_destroyed_in_flight_drops_behind_its_launch) {
  counter drops{}, open{};
  cudaGraph_t graph{};
  cudaGraphExec_t exec{};
  capture(drops, &open, &graph);
  instantiate(graph, &exec);
  TMAP_ASSERT_CUDA(cudaGraphLaunch(exec, stream));
  late_opener opener{open, drops};
  TMAP_ASSERT_CUDA(cudaGraphExecDestroy(exec));
  TMAP_ASSERT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(opener.early_drops(), 0) << "slots would be lent while the replay runs";
  EXPECT_TRUE(dropped(drops));
}

TEST_F(user_objects, an_updated_executable_holds_the_new_graphs_and_the_old_until_its_launch_has_ended) {
  counter first{}, second{}, open{};
  cudaGraph_t old_graph{}, new_graph{};
  cudaGraphExec_t exec{};
  capture(first, &open, &old_graph);
  capture(second, &open, &new_graph);
  instantiate(old_graph, &exec);
  TMAP_ASSERT_CUDA(cudaGraphLaunch(exec, stream));
  late_opener opener{open, first};
  cudaGraphExecUpdateResultInfo info{};
  TMAP_ASSERT_CUDA(cudaGraphExecUpdate(exec, new_graph, &info));
  TMAP_ASSERT_CUDA(cudaGraphDestroy(new_graph));
  TMAP_ASSERT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(opener.early_drops(), 0);
  run(exec);
  EXPECT_EQ(after_a_while(second), 0) << "the executable has it now";
  TMAP_ASSERT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_TRUE(dropped(first));
  EXPECT_TRUE(dropped(second));
}

TEST_F(user_objects, a_parent_of_the_graph_holds_them) {
  counter drops{};
  cudaGraph_t graph{}, parent{};
  cudaGraphNode_t node{};
  cudaGraphExec_t exec{};
  capture(drops, nullptr, &graph);
  TMAP_ASSERT_CUDA(cudaGraphCreate(&parent, 0));
  TMAP_ASSERT_CUDA(cudaGraphAddChildGraphNode(&node, parent, nullptr, 0, graph));
  TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  EXPECT_EQ(after_a_while(drops), 0);
  instantiate(parent, &exec);
  run(exec);
  EXPECT_EQ(after_a_while(drops), 0);
  TMAP_ASSERT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_TRUE(dropped(drops));
}

TEST_F(user_objects, of_the_body_of_a_conditional_node_the_executable_holds_them) {
  counter drops{};
  cudaGraph_t graph{}, body{};
  cudaGraphNode_t node{};
  cudaGraphExec_t exec{};
  TMAP_ASSERT_CUDA(cudaGraphCreate(&graph, 0));
  cudaGraphNodeParams branch{};
  branch.type = cudaGraphNodeTypeConditional;
  branch.conditional.type = cudaGraphCondTypeIf;
  branch.conditional.size = 1;
  TMAP_ASSERT_CUDA(cudaGraphConditionalHandleCreate(&branch.conditional.handle, graph, 1, cudaGraphCondAssignDefault));
  TMAP_ASSERT_CUDA(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &branch));
  TMAP_ASSERT_CUDA(cudaStreamBeginCaptureToGraph(stream, branch.conditional.phGraph_out[0], nullptr, nullptr, 0,
                                                 cudaStreamCaptureModeGlobal));
  retain(drops);
  TMAP_ASSERT_CUDA(cudaMemsetAsync(memory, 0, 4, stream));
  TMAP_ASSERT_CUDA(cudaStreamEndCapture(stream, &body));
  instantiate(graph, &exec);
  run(exec);
  EXPECT_EQ(after_a_while(drops), 0) << "slots would come back while the executable still exists";
  TMAP_ASSERT_CUDA(cudaGraphExecDestroy(exec));
  EXPECT_TRUE(dropped(drops));
}

}  // namespace
}  // namespace tmap::testing
