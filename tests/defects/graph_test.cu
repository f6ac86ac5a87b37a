// SPDX-License-Identifier: Apache-2.0
// Tests graphs that encode and consume. They are replayed back to back, each time with new
// addresses and shapes, and must not show one stale tile. Further cases capture while other threads
// encode eagerly, replay several graphs at once, and follow the slots of a destroyed graph.
#include <tmap/encode_batch.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "defects/defect_fixture.hpp"
#include "defects/graph_topologies.cuh"

namespace tmap::testing {
namespace {

class graph : public defect_test {
 protected:
  static constexpr std::uint64_t capacity = 1 << 18;

  void SetUp() override {
    defect_test::SetUp();
    if (IsSkipped()) return;
    make_service({.capacity = capacity});
    const result<map_template> base = line_template();
    TMAP_ASSERT_OK(base);
    base_ = *base;
  }

  void make_service(const service_options& options) {
    result<map_service> made = map_service::create(options);
    TMAP_ASSERT_OK(made);
    service_ = std::make_unique<map_service>(std::move(*made));
  }

  void enqueue(const topology& kind, const graph_workload& work, cudaStream_t stream) {
    TMAP_ASSERT_OK(kind.enqueue(*service_, base_, work, stream));
  }
  captured_graph capture(const topology& kind, const graph_workload& work, const own_stream& stream) {
    return captured_graph(stream, [&](cudaStream_t capturing) { enqueue(kind, work, capturing); });
  }

  /// Loads every kernel before anything is captured.
  void run_eagerly(const topology& kind) {
    const graph_workload work;
    const own_stream stream;
    enqueue(kind, work, stream.get());
    expect_clean(kind, work, 1);
  }

  static void expect_clean(const topology& kind, const graph_workload& work, std::uint64_t replays) {
    const consumed_lines found = work.found();
    EXPECT_EQ(found.foreign, 0u) << kind.name;
    EXPECT_EQ(found.tiles, replays * kind.tiles) << kind.name;
    EXPECT_EQ(work.replays(), replays) << kind.name;
  }

  /// Waits until the destroyed graphs have returned their slots. A thread of the driver returns
  /// them.
  slot_counts await_no_captured_slots() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < end) {
      const own_stream stream;
      const result<map_batch> any = service_->reserve(1, stream.get());
      if (service_->statistics().slots.captured == 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return service_->statistics().slots;
  }

  std::unique_ptr<map_service> service_;
  map_template base_;
};

TEST_F(graph, a_hundred_thousand_replays_with_new_addresses_and_shapes) {
  const std::uint64_t replays = scaled(34'000);
  for (const topology& kind : topologies) {
    run_eagerly(kind);
    const graph_workload work;
    const own_stream stream;
    const captured_graph replayed = capture(kind, work, stream);
    if (HasFailure()) return;
    for (std::uint64_t i = 0; i < replays; ++i) replayed.launch(stream);
    stream.wait();
    expect_clean(kind, work, replays);
    note(std::string("tiles_") + kind.name, work.found().tiles);
  }
}

// Runs the same replays over maps that were encoded once, before the capture.
TEST_F(graph, seeded_maps_outside_the_graph_are_stale) {
  const graph_workload work;
  const own_stream stream;
  const graph_arrays arrays = work.arrays();
  const device_array<tensor_map> slots(graph_maps);
  map_batch_ref ref;
  ref.slots = slots.data();
  ref.count = graph_maps;
  begin_replay<<<1, graph_maps, 0, stream.get()>>>(arrays);
  TMAP_ASSERT_OK(encode_batch(base_, patch_array{arrays.patches_of(0)}, slots.data(), graph_maps, {stream.get()}));
  launch_consume_lines({ref, arrays.uses_of(0)}, 0, graph_maps, arrays.found, stream.get());
  stream.wait();
  ASSERT_EQ(work.found().foreign, 0u);
  const captured_graph replayed(stream, [&](cudaStream_t capturing) {
    begin_replay<<<1, graph_maps, 0, capturing>>>(arrays);
    launch_consume_lines({ref, arrays.uses_of(0)}, 0, graph_maps, arrays.found, capturing);
  });
  for (int i = 0; i < 100; ++i) replayed.launch(stream);
  stream.wait();
  note("foreign_when_seeded", work.found().foreign);
  EXPECT_GT(work.found().foreign, 0u);
}

TEST_F(graph, several_at_once) {
  const std::uint64_t replays = scaled(500);
  for (const topology& kind : topologies) run_eagerly(kind);
  constexpr std::uint32_t copies = 2;
  std::vector<std::unique_ptr<graph_workload>> works;
  std::vector<std::unique_ptr<own_stream>> streams;
  std::vector<captured_graph> graphs;
  for (std::uint32_t i = 0; i < copies * std::size(topologies); ++i) {
    works.push_back(std::make_unique<graph_workload>());
    streams.push_back(std::make_unique<own_stream>());
    graphs.push_back(capture(topologies[i / copies], *works.back(), *streams.back()));
  }
  if (HasFailure()) return;
  for (std::uint64_t replay = 0; replay < replays; ++replay) {
    for (std::uint32_t i = 0; i < graphs.size(); ++i) graphs[i].launch(*streams[i]);
  }
  for (std::uint32_t i = 0; i < graphs.size(); ++i) {
    streams[i]->wait();
    expect_clean(topologies[i / copies], *works[i], replays);
  }
}

// The eager threads together use fewer slots than there are. A capture may not ask which slots are
// free again, so it needs some that were never lent.
TEST_F(graph, captured_while_other_threads_encode) {
  constexpr std::uint32_t threads = 4;
  const std::uint64_t eager_batches = scaled(600);
  const std::uint32_t captures = static_cast<std::uint32_t>(scaled(50));
  for (const topology& kind : topologies) run_eagerly(kind);
  std::vector<std::unique_ptr<graph_workload>> works;
  for (std::uint32_t i = 0; i < threads + captures; ++i) works.push_back(std::make_unique<graph_workload>());
  std::vector<std::unique_ptr<own_stream>> streams;
  for (std::uint32_t i = 0; i <= threads; ++i) streams.push_back(std::make_unique<own_stream>());
  std::vector<std::thread> eager;
  for (std::uint32_t t = 0; t < threads; ++t) {
    eager.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < eager_batches; ++i) enqueue(topologies[t % 3], *works[t], streams[t]->get());
    });
  }
  std::vector<captured_graph> graphs;
  for (std::uint32_t i = 0; i < captures; ++i) {
    graphs.push_back(capture(topologies[i % 3], *works[threads + i], *streams[threads]));
    if (HasFailure()) break;
    for (int replay = 0; replay < 20; ++replay) graphs.back().launch(*streams[threads]);
  }
  for (std::thread& each : eager) each.join();
  if (HasFailure()) return;
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  for (std::uint32_t t = 0; t < threads; ++t) expect_clean(topologies[t % 3], *works[t], eager_batches);
  for (std::uint32_t i = 0; i < captures; ++i) expect_clean(topologies[i % 3], *works[threads + i], 20);
}

TEST_F(graph, destroyed_gives_its_slots_back) {
  for (const topology& kind : topologies) {
    make_service({.capacity = 512});
    run_eagerly(kind);
    const graph_workload work;
    const own_stream stream;
    std::optional<captured_graph> replayed(capture(kind, work, stream));
    EXPECT_GE(service_->statistics().slots.captured, kind.slots) << kind.name;
    replayed->launch(stream);
    stream.wait();
    expect_clean(kind, work, 1);
    EXPECT_GE(service_->statistics().slots.captured, kind.slots) << kind.name;
    replayed.reset();
    const slot_counts left = await_no_captured_slots();
    EXPECT_EQ(left.captured, 0u) << kind.name;
    EXPECT_EQ(left.leased, 0u) << kind.name;
    TMAP_ASSERT_OK(service_->reserve(512, stream.get()));
  }
}

TEST_F(graph, outlives_its_service_and_batches) {
  for (const topology& kind : topologies) {
    make_service({.capacity = 512});
    run_eagerly(kind);
    const graph_workload work;
    const own_stream stream;
    const captured_graph replayed = capture(kind, work, stream);
    service_.reset();
    // This allocation takes and overwrites the memory that the service would have freed.
    const device_array<unsigned char> other(std::uint64_t{64} << 20);
    for (int i = 0; i < 100; ++i) replayed.launch(stream);
    stream.wait();
    expect_clean(kind, work, 100);
  }
}

}  // namespace
}  // namespace tmap::testing
