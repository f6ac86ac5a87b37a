// SPDX-License-Identifier: Apache-2.0
// Replays a graph of an exchange again and again. A kernel of the graph draws other sizes each
// time, and another one compares every word.
#include <tmap/peer_exchange.hpp>

#include "peer/ranks_on_gpus.hpp"
#include "peer/replay_kernels.hpp"
#include "support/scaled.hpp"

namespace tmap::testing {
namespace {

constexpr replayed_exchange layout{
    .splits = 0, .out_splits = 4096, .rows = 8192, .out = 8 << 20, .groups = 4, .row_words = 520, .most_rows = 128};

class exchange_replays : public ranks_on_gpus {
 protected:
  exchange_replays() : ranks_on_gpus(16 << 20) {}

  void SetUp() override {
    ranks_on_gpus::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      static_cast<void>(on(rank));
      counts_.push_back(std::make_unique<device_array<replay_counts>>(1));
      TMAP_ASSERT_CUDA(cudaMemset(counts_.back()->data(), 0, sizeof(replay_counts)));
      TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    }
  }
  void TearDown() override {
    for (const cudaGraphExec_t graph : graphs_) EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
    counts_.clear();
    ranks_on_gpus::TearDown();
  }

  exchange_problem problem(std::uint32_t rank) const {
    const peer_memory_ref& ref = on(rank).window.ref();
    const auto address = [&](std::uint64_t offset) { return reinterpret_cast<void*>(ref.address(rank, offset)); };
    exchange_problem made;
    made.rows = address(layout.rows);
    made.out = address(layout.out);
    made.splits = static_cast<const std::uint32_t*>(address(layout.splits));
    made.out_splits = static_cast<std::uint32_t*>(address(layout.out_splits));
    made.sent_rows = made.capacity = std::uint64_t{count()} * layout.groups * layout.most_rows;
    made.groups = layout.groups;
    made.row_bytes = 4 * layout.row_words;
    return made;
  }

  void capture(std::uint32_t rank) {
    const rank_on_gpu& here = on(rank);
    cudaGraph_t graph{};
    TMAP_ASSERT_CUDA(cudaStreamBeginCapture(here.stream->get(), cudaStreamCaptureModeRelaxed));
    launch_draw(here.window.ref(), layout, counts_[rank]->data(), here.stream->get());
    const auto exchanged = exchange_rows_async(here.window, problem(rank), {here.stream->ref(), 8, patience});
    EXPECT_TRUE(exchanged.has_value()) << to_string(exchanged.error());
    launch_compare(here.window.ref(), layout, counts_[rank]->data(), here.stream->get());
    const auto pulled = await_pulls_async(here.window, here.stream->ref(), patience);
    EXPECT_TRUE(pulled.has_value()) << to_string(pulled.error());
    TMAP_ASSERT_CUDA(cudaStreamEndCapture(here.stream->get(), &graph));
    graphs_.emplace_back();
    TMAP_ASSERT_CUDA(cudaGraphInstantiate(&graphs_.back(), graph, 0));
    TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
    TMAP_ASSERT_CUDA(cudaGraphUpload(graphs_.back(), here.stream->get()));
    TMAP_ASSERT_CUDA(cudaStreamSynchronize(here.stream->get()));
  }
  void capture_all() {
    for (std::uint32_t rank = 0; rank < count(); ++rank) capture(rank);
  }
  void replay(std::uint64_t times) {
    constexpr std::uint64_t most_ahead = 200;  // of launches that wait for their rank's GPU
    for (std::uint64_t i = 0; i < times; ++i) {
      for (std::uint32_t rank = 0; rank < count(); ++rank) {
        TMAP_ASSERT_CUDA(cudaGraphLaunch(graphs_[rank], on(rank).stream->get()));
      }
      if (i % most_ahead != 0) continue;
      for (std::uint32_t rank = 0; rank < count(); ++rank) expect_ok(rank);
      if (HasFailure()) return;
    }
    for (std::uint32_t rank = 0; rank < count(); ++rank) expect_ok(rank);
  }
  replay_counts counts(std::uint32_t rank) const {
    static_cast<void>(on(rank));
    return counts_[rank]->download().front();
  }

  std::vector<std::unique_ptr<device_array<replay_counts>>> counts_;
  std::vector<cudaGraphExec_t> graphs_;
};

TEST_P(exchange_replays, a_hundred_thousand_with_other_sizes_bring_every_byte) {
  const std::uint64_t times = scaled(100000);
  capture_all();
  replay(times);
  std::uint64_t bytes = 0;
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    const replay_counts found = counts(rank);
    EXPECT_EQ(found.calls, times);
    EXPECT_EQ(found.wrong_words, 0u);
    EXPECT_EQ(found.wrong_counts, 0u);
    bytes += found.bytes;
  }
  EXPECT_GT(bytes, times * 1000000) << "10^11 bytes in all replays";
}

/// The comparison sees one word.
TEST_P(exchange_replays, a_word_that_is_changed_on_its_way_is_seen) {
  capture_all();
  const std::uint32_t last = count() - 1;
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    const rank_on_gpu& here = on(rank);
    launch_draw(here.window.ref(), layout, counts_[rank]->data(), here.stream->get());
    TMAP_ASSERT_CUDA(cudaStreamSynchronize(here.stream->get()));
  }
  const words splits = download(0, layout.splits, std::uint64_t{count()} * layout.groups);
  std::uint64_t word = 0;
  for (std::uint32_t i = 0; i < last * layout.groups; ++i) word += std::uint64_t{splits[i]} * layout.row_words;
  upload(0, layout.rows + 4 * word,
         words{download(0, layout.rows + 4 * word, 1).front() ^ 1});  // the first one for the last
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    const rank_on_gpu& here = on(rank);
    TMAP_ASSERT_OK(exchange_rows_async(here.window, problem(rank), {here.stream->ref(), 8, patience}));
  }
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    const rank_on_gpu& here = on(rank);
    launch_compare(here.window.ref(), layout, counts_[rank]->data(), here.stream->get());
    expect_ok(rank);
    EXPECT_EQ(counts(rank).wrong_words, rank == last ? 1u : 0u) << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(two_virtual_ranks, exchange_replays, ::testing::Values(virtual_ranks(2)));
INSTANTIATE_TEST_SUITE_P(two_gpus, exchange_replays, ::testing::Values(ranks_of_process({0, 1})));
INSTANTIATE_TEST_SUITE_P(two_ranks_over_nccl, exchange_replays, ::testing::Values(ranks_over_nccl({0, 0})));
INSTANTIATE_TEST_SUITE_P(two_gpus_over_nccl, exchange_replays, ::testing::Values(ranks_over_nccl({0, 1})));

}  // namespace
}  // namespace tmap::testing
