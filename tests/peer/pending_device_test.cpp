// SPDX-License-Identifier: Apache-2.0
// Runs products while the dispatch brings their rows, and compares every bit with the same product
// after the dispatch. Virtual ranks and two GPUs run the same tests.
#include <tmap/encode.hpp>
#include <tmap/expert_parallel.hpp>
#include <tmap/grouped_gemm.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "kernels/gemm_launch.hpp"
#include "lib/gemm/checks.hpp"
#include "peer/ranks_on_gpus.hpp"
#include "support/run_seed.hpp"

namespace tmap::testing::pending {
namespace {

using expert_parallel::dispatch_problem;
using expert_parallel::shape;

constexpr std::uint64_t window_bytes = 24 << 20;
constexpr std::uint64_t x_begin = 0, out_begin = 2 << 20, scratch_begin = 14 << 20;
constexpr std::uint32_t width = 512, columns = 256, experts_of_rank = 8;
constexpr std::uint32_t poison = 0x7fc07fc0;  // two NaNs of bf16
constexpr std::uint64_t operand_size = 2;

/// Returns bf16 numbers of small magnitude, two to a word.
std::vector<std::uint32_t> draw_words(std::mt19937_64& random, std::uint64_t count) {
  std::vector<std::uint32_t> made(count);
  for (std::uint32_t& each : made) each = static_cast<std::uint32_t>(random()) & 0xbf7fbf7f;
  return made;
}

/// An event that is not timed.
class own_event {
 public:
  own_event() { EXPECT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess); }
  ~own_event() { cudaEventDestroy(event_); }
  own_event(const own_event&) = delete;
  own_event& operator=(const own_event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_{};
};

/// Holds what one rank needs outside its window.
struct rank_memory {
  rank_memory(const shape& sizes, std::uint32_t ranks)
      : ids(sizes.tokens * sizes.k),
        begins(experts_of_rank + 1),
        pending(experts_of_rank + 1),
        b(std::uint64_t{experts_of_rank} * columns * width / 2),
        c(row_count(sizes, ranks) * columns / 2),
        scratch(gemm::workspace_bytes(experts_of_rank).value()) {}
  device_array<std::int32_t> ids, begins;
  device_array<std::uint32_t> pending, b, c;
  device_array<unsigned char> scratch;
  own_stream side;
  own_event ready, done;
};

class products_of_dispatches : public ranks_on_gpus {
 protected:
  products_of_dispatches() : ranks_on_gpus(window_bytes) {}

  void SetUp() override {
    ranks_on_gpus::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    static_cast<void>(on(0));
    const auto limits = query_device_limits();
    if (!limits || !gemm::check_gpu(*limits, kernels::has_gemm_kernels())) GTEST_SKIP() << "no GPU with products";
  }
  void TearDown() override {
    memory_.clear();
    ranks_on_gpus::TearDown();
  }

  bool share_a_gpu() const { return count() > 1 && GetParam().gpus[0] == GetParam().gpus[1]; }

  /// Allocates for `tokens` of all ranks together.
  void prepare(std::uint64_t tokens) {
    sizes_.experts = experts_of_rank * count();
    sizes_.tokens = tokens / count();
    sizes_.arrivals = sizes_.tokens * count();
    memory_.clear();
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      static_cast<void>(on(rank));
      memory_.push_back(std::make_unique<rank_memory>(sizes_, count()));
      memory_[rank]->b.upload(draw_words(random_, memory_[rank]->b.size()));
    }
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  }
  std::uint64_t rows() const { return row_count(sizes_, count()); }

  /// Draws tokens and choices. All results become poison.
  void draw() {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      std::vector<std::int32_t> ids(sizes_.tokens * sizes_.k);
      for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random_() % sizes_.experts);
      static_cast<void>(on(rank));
      memory_[rank]->ids.upload(ids);
      upload(rank, x_begin, draw_words(random_, sizes_.tokens * width / 2));
    }
    poison_results();
  }
  void poison_results() const {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      upload(rank, out_begin, words(rows() * width / 2, poison));
      memory_[rank]->c.upload(words(memory_[rank]->c.size(), poison));
      TMAP_ASSERT_CUDA(cudaStreamSynchronize(on(rank).stream->get()));
    }
  }

  gemm::matrix rows_at(std::uint32_t rank, std::uint64_t offset) const {
    return {on(rank).window.ref().address(rank, offset), width * operand_size};
  }
  dispatch_problem dispatched(std::uint32_t rank) const {
    dispatch_problem made;
    made.sizes = sizes_;
    made.x = rows_at(rank, x_begin);
    made.ids = memory_[rank]->ids.data();
    made.out = rows_at(rank, out_begin);
    made.begins = memory_[rank]->begins.data();
    return made;
  }
  expert_parallel::run run_of(std::uint32_t rank) const {
    void* const memory = reinterpret_cast<void*>(on(rank).window.ref().address(rank, scratch_begin));
    return {.stream = on(rank).stream->ref(),
            .scratch = {memory, window_bytes - scratch_begin},
            .blocks = blocks_,
            .patience = patience};
  }
  gemm::row_problem product(std::uint32_t rank) const {
    const rank_memory& at = *memory_[rank];
    gemm::row_problem made;
    made.type = gemm::operand_type::bf16;
    made.groups = experts_of_rank;
    made.rows = rows();
    made.n = columns;
    made.k = width;
    made.offsets = {at.begins.data(), offset_format::prefix, 4};
    made.a = rows_at(rank, out_begin);
    made.b = {at.b.address(), width * operand_size};
    made.b_group_pitch_bytes = std::uint64_t{columns} * width * operand_size;
    made.c = {at.c.address(), columns * operand_size};
    return made;
  }
  /// Ranks of one GPU must not take all multiprocessors from each other.
  gemm::run run_on(std::uint32_t rank, cuda::stream_ref stream) const {
    gemm::run made{{stream, {memory_[rank]->scratch.data(), memory_[rank]->scratch.size()}}};
    if (share_a_gpu()) made.choices.blocks = 8;
    return made;
  }

  void enqueue_after(std::uint32_t rank) const {
    TMAP_ASSERT_OK(dispatch_async(on(rank).window, dispatched(rank), run_of(rank)));
    TMAP_ASSERT_OK(gemm::multiply(product(rank), run_on(rank, on(rank).stream->ref())));
  }
  /// Enqueues the product on a second stream, which joins that of the dispatch.
  void enqueue_meanwhile(std::uint32_t rank) const {
    const rank_memory& at = *memory_[rank];
    dispatch_problem sent = dispatched(rank);
    sent.pending = at.pending.data();
    sent.ready = at.ready.get();
    TMAP_ASSERT_OK(dispatch_async(on(rank).window, sent, run_of(rank)));
    TMAP_ASSERT_CUDA(cudaStreamWaitEvent(at.side.get(), at.ready.get(), 0));
    gemm::row_problem multiplied = product(rank);
    multiplied.pending = at.pending.data();
    TMAP_ASSERT_OK(gemm::multiply(multiplied, run_on(rank, at.side.ref())));
    TMAP_ASSERT_CUDA(cudaEventRecord(at.done.get(), at.side.get()));
    TMAP_ASSERT_CUDA(cudaStreamWaitEvent(on(rank).stream->get(), at.done.get(), 0));
  }
  template <class Enqueue>
  std::vector<words> results_of(const Enqueue& enqueue) const {
    for (std::uint32_t rank = 0; rank < count(); ++rank) enqueue(rank);
    std::vector<words> results;
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      expect_ok(rank);
      results.push_back(memory_[rank]->c.download());
    }
    return results;
  }
  void expect_words_are_0() const {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      static_cast<void>(on(rank));
      TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
      EXPECT_EQ(memory_[rank]->pending.download(), words(experts_of_rank + 1, 0)) << rank;
    }
  }

  /// Runs calls both ways, with other tokens in each.
  void compare(std::uint32_t calls) {
    for (std::uint32_t call = 0; call < calls; ++call) {
      SCOPED_TRACE("call " + std::to_string(call));
      draw();
      const auto wanted = results_of([&](std::uint32_t rank) { enqueue_after(rank); });
      EXPECT_NE(wanted[0], words(wanted[0].size(), poison));
      poison_results();
      const auto found = results_of([&](std::uint32_t rank) { enqueue_meanwhile(rank); });
      EXPECT_TRUE(found == wanted) << "the product read rows that were not there";
      expect_words_are_0();
    }
  }

  shape sizes_{.k = 2, .row_bytes = width * operand_size, .columns = width, .result_type = moe::float_type::bf16};
  std::uint32_t blocks_{4};
  std::vector<std::unique_ptr<rank_memory>> memory_;

 private:
  std::mt19937_64 random_{run_random(37)};
};

constexpr std::uint64_t few_tokens = 160, many_tokens = 1200;

TEST_P(products_of_dispatches, begin_while_rows_come_and_have_the_same_bits) {
  prepare(many_tokens);
  compare(10);
}

TEST_P(products_of_dispatches, of_few_tokens_have_the_same_bits) {
  prepare(few_tokens);
  compare(5);
}

TEST_P(products_of_dispatches, leave_the_dispatch_its_multiprocessors) {
  if (share_a_gpu()) GTEST_SKIP() << "ranks of one GPU need bounded products";
  blocks_ = 64;
  prepare(many_tokens);
  compare(10);
}

TEST_P(products_of_dispatches, are_replayed_as_a_graph) {
  prepare(many_tokens);
  draw();
  results_of([&](std::uint32_t rank) { enqueue_meanwhile(rank); });  // loads all kernels
  std::vector<cudaGraphExec_t> graphs(count());
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    cudaGraph_t graph{};
    TMAP_ASSERT_CUDA(cudaStreamBeginCapture(on(rank).stream->get(), cudaStreamCaptureModeGlobal));
    enqueue_meanwhile(rank);
    TMAP_ASSERT_CUDA(cudaStreamEndCapture(on(rank).stream->get(), &graph));
    TMAP_ASSERT_CUDA(cudaGraphInstantiate(&graphs[rank], graph, 0));
    TMAP_ASSERT_CUDA(cudaGraphUpload(graphs[rank], on(rank).stream->get()));
    TMAP_ASSERT_CUDA(cudaStreamSynchronize(on(rank).stream->get()));
    TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  }
  for (std::uint32_t call = 0; call < 5; ++call) {
    draw();
    const auto wanted = results_of([&](std::uint32_t rank) { enqueue_after(rank); });
    poison_results();
    const auto found = results_of(
        [&](std::uint32_t rank) { EXPECT_EQ(cudaGraphLaunch(graphs[rank], on(rank).stream->get()), cudaSuccess); });
    EXPECT_TRUE(found == wanted) << "replay " << call;
  }
  for (const cudaGraphExec_t graph : graphs) EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
}

TEST_P(products_of_dispatches, end_when_a_rank_has_too_little_room) {
  for (const std::uint64_t tokens : {few_tokens, many_tokens}) {
    SCOPED_TRACE(tokens);
    sizes_.rows = 0;
    prepare(tokens);
    draw();
    results_of([&](std::uint32_t rank) { enqueue_after(rank); });
    sizes_.rows = 8;
    for (std::uint32_t rank = 0; rank < count(); ++rank) enqueue_meanwhile(rank);
    for (std::uint32_t rank = 0; rank < count(); ++rank) expect_status(rank, status::peer_overflow);
    expect_words_are_0();
  }
}

TEST_P(products_of_dispatches, end_when_a_rank_does_not_come) {
  if (count() == 1) GTEST_SKIP() << "needs two ranks";
  prepare(many_tokens);
  draw();
  results_of([&](std::uint32_t rank) { enqueue_after(rank); });
  const std::uint32_t late = count() - 1;
  for (std::uint32_t rank = 0; rank < late; ++rank) enqueue_meanwhile(rank);
  for (std::uint32_t rank = 0; rank < late; ++rank) EXPECT_FALSE(outcome(rank).has_value()) << rank;
  memory_[late]->pending.upload(words(experts_of_rank + 1, 0));
  expect_words_are_0();
}

INSTANTIATE_TEST_SUITE_P(one_rank, products_of_dispatches, ::testing::Values(virtual_ranks(1)));
INSTANTIATE_TEST_SUITE_P(two_virtual_ranks, products_of_dispatches, ::testing::Values(virtual_ranks(2)));
INSTANTIATE_TEST_SUITE_P(four_virtual_ranks, products_of_dispatches, ::testing::Values(virtual_ranks(4)));
INSTANTIATE_TEST_SUITE_P(two_gpus, products_of_dispatches, ::testing::Values(ranks_of_process({0, 1})));
INSTANTIATE_TEST_SUITE_P(two_gpus_over_nccl, products_of_dispatches, ::testing::Values(ranks_over_nccl({0, 1})));

}  // namespace
}  // namespace tmap::testing::pending
