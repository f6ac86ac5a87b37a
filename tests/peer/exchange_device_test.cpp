// SPDX-License-Identifier: Apache-2.0
// Runs the kernels of kernels/peer: exchanges, barriers and credits. The same tests run on two GPUs
// where there are two.
#include <tmap/peer_exchange.hpp>

#include <vector>

#include "peer/ranks_on_gpus.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t user_bytes = 8 << 20;
constexpr std::uint64_t splits_at = 0, out_splits_at = 4096, rows_at = 8192, out_at = 4 << 20;
constexpr std::uint32_t sent_rows = 2048;
constexpr std::uint32_t capacity = 4000;

/// Returns how many rows `from` sends to `group` of `to` in a call. Some are none.
std::uint32_t rows_of(std::uint32_t call, std::uint32_t from, std::uint32_t to, std::uint32_t group) {
  return (7 * call + 5 * from + 3 * to + 11 * group) % 13 * (call % 3);
}

class exchange_on_gpus : public ranks_on_gpus {
 protected:
  exchange_on_gpus() : ranks_on_gpus(user_bytes) {}

  exchange_problem problem(std::uint32_t rank) const {
    const peer_memory_ref& ref = on(rank).window.ref();
    const auto at = [&](std::uint64_t offset) { return reinterpret_cast<void*>(ref.address(rank, offset)); };
    exchange_problem made;
    made.rows = at(rows_at);
    made.sent_rows = sent_rows;
    made.splits = static_cast<const std::uint32_t*>(at(splits_at));
    made.out = at(out_at);
    made.capacity = capacity;
    made.out_splits = static_cast<std::uint32_t*>(at(out_splits_at));
    made.groups = groups_;
    made.row_bytes = row_bytes_;
    made.placed = placed_;
    return made;
  }

  static std::uint32_t value(std::uint32_t call, std::uint32_t from, std::uint32_t to, std::uint32_t group,
                             std::uint32_t row, std::uint32_t word) {
    const std::uint64_t key = (((((std::uint64_t{call} * 64 + from) * 64 + to) * 16 + group) * 64 + row) << 9) + word;
    return static_cast<std::uint32_t>(key * 0x9E3779B97F4A7C15u >> 32);
  }
  void append_rows(words& to_words, std::uint32_t call, std::uint32_t from, std::uint32_t to,
                   std::uint32_t group) const {
    for (std::uint32_t row = 0; row < rows_of(call, from, to, group); ++row) {
      for (std::uint32_t word = 0; word < row_bytes_ / 4; ++word)
        to_words.push_back(value(call, from, to, group, row, word));
    }
  }

  /// Writes what a rank sends in a call.
  void write(std::uint32_t rank, std::uint32_t call) const {
    words splits, rows;
    for (std::uint32_t to = 0; to < count(); ++to) {
      for (std::uint32_t group = 0; group < groups_; ++group) {
        splits.push_back(rows_of(call, rank, to, group));
        append_rows(rows, call, rank, to, group);
      }
    }
    ASSERT_LE(rows.size() * 4, std::uint64_t{sent_rows} * row_bytes_);
    upload(rank, splits_at, splits);
    if (!rows.empty()) upload(rank, rows_at, rows);
  }

  /// Compares what a rank got in a call with the definition.
  void expect_rows(std::uint32_t rank, std::uint32_t call) const {
    SCOPED_TRACE("rank " + std::to_string(rank) + ", call " + std::to_string(call));
    words splits, rows;
    for (std::uint32_t from = 0; from < count(); ++from) {
      for (std::uint32_t group = 0; group < groups_; ++group) splits.push_back(rows_of(call, from, rank, group));
    }
    const bool by_rank = placed_ == row_placement::rank_major;
    const std::uint32_t outer = by_rank ? count() : groups_, inner = by_rank ? groups_ : count();
    for (std::uint32_t i = 0; i < outer; ++i) {
      for (std::uint32_t j = 0; j < inner; ++j) append_rows(rows, call, by_rank ? i : j, rank, by_rank ? j : i);
    }
    EXPECT_EQ(download(rank, out_splits_at, splits.size()), splits);
    EXPECT_TRUE(download(rank, out_at, rows.size()) == rows) << "wrong rows";
  }

  void exchange(std::uint32_t rank, const exchange_problem& given) const {
    const rank_on_gpu& at = on(rank);
    const auto enqueued = exchange_rows_async(at.window, given, {at.stream->ref(), blocks_, patience});
    EXPECT_TRUE(enqueued.has_value()) << to_string(enqueued.error());
  }
  void run_calls(std::uint32_t calls) const {
    for (std::uint32_t call = 0; call < calls; ++call) {
      for (std::uint32_t rank = 0; rank < count(); ++rank) {
        const rank_on_gpu& at = on(rank);
        TMAP_ASSERT_OK(await_pulls_async(at.window, at.stream->ref(), patience));
        write(rank, call);
        exchange(rank, problem(rank));
      }
      for (std::uint32_t rank = 0; rank < count(); ++rank) expect_ok(rank);
      for (std::uint32_t rank = 0; rank < count(); ++rank) expect_rows(rank, call);
    }
  }

  /// Runs the same graphs again and again, with other rows.
  void replay(std::uint32_t calls) const {
    std::vector<cudaGraphExec_t> graphs(count());
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      const rank_on_gpu& at = on(rank);
      cudaGraph_t graph{};
      TMAP_ASSERT_CUDA(cudaStreamBeginCapture(at.stream->get(), cudaStreamCaptureModeGlobal));
      exchange(rank, problem(rank));
      TMAP_ASSERT_OK(await_pulls_async(at.window, at.stream->ref(), patience));
      TMAP_ASSERT_CUDA(cudaStreamEndCapture(at.stream->get(), &graph));
      TMAP_ASSERT_CUDA(cudaGraphInstantiate(&graphs[rank], graph, 0));
      TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
    }
    for (std::uint32_t call = 0; call < calls; ++call) {
      for (std::uint32_t rank = 0; rank < count(); ++rank) {
        write(rank, call);
        TMAP_ASSERT_CUDA(cudaGraphLaunch(graphs[rank], on(rank).stream->get()));
      }
      for (std::uint32_t rank = 0; rank < count(); ++rank) expect_ok(rank);
      for (std::uint32_t rank = 0; rank < count(); ++rank) expect_rows(rank, call);
    }
    for (const cudaGraphExec_t graph : graphs) EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
  }

  std::uint32_t groups_{3};
  std::uint32_t row_bytes_{1040};
  std::uint32_t blocks_{4};
  row_placement placed_{row_placement::rank_major};
};

TEST_P(exchange_on_gpus, the_self_test_passes_again_and_again) {
  for (int i = 0; i < 20; ++i) {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      const rank_on_gpu& at = on(rank);
      TMAP_ASSERT_OK(self_test_async(at.window, at.stream->ref(), patience));
    }
    for (std::uint32_t rank = 0; rank < count(); ++rank) expect_ok(rank);
  }
  run_calls(3);
}

TEST_P(exchange_on_gpus, an_aborted_group_ends_waiting_kernels) {
  const rank_on_gpu& waiting = on(0);
  TMAP_ASSERT_OK(barrier_async(waiting.window, waiting.stream->ref(), milliseconds{60'000}));
  const auto begin = std::chrono::steady_clock::now();
  TMAP_ASSERT_OK(abort_group(on(1).window));
  expect_status(0, status::group_broken);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{5});
}

TEST_P(exchange_on_gpus, rows_come_by_rank) {
  run_calls(6);
}

TEST_P(exchange_on_gpus, rows_come_by_group) {
  placed_ = row_placement::group_major;
  groups_ = 5;
  run_calls(6);
}

TEST_P(exchange_on_gpus, rows_of_16_bytes_and_one_block) {
  row_bytes_ = 16;
  blocks_ = 1;
  run_calls(6);
}

TEST_P(exchange_on_gpus, barriers_come_as_often_as_called) {
  for (int i = 0; i < 100; ++i) {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      const rank_on_gpu& at = on(rank);
      TMAP_ASSERT_OK(barrier_async(at.window, at.stream->ref(), patience));
    }
  }
  for (std::uint32_t rank = 0; rank < count(); ++rank) expect_ok(rank);
}

TEST_P(exchange_on_gpus, a_graph_is_replayed_with_other_sizes) {
  replay(20);
}

/// Rows of a rank that have more bytes are pulled, so both ways take turns.
TEST_P(exchange_on_gpus, few_rows_of_one_group_come_with_the_announcement) {
  groups_ = 1;
  run_calls(6);
  replay(20);
  row_bytes_ = 12;
  run_calls(6);
}

TEST_P(exchange_on_gpus, too_many_rows_move_nothing_and_the_group_goes_on) {
  const words before(capacity, 0x5a5a5a5a);
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    write(rank, 1);
    upload(rank, out_at, before);
    exchange_problem tight = problem(rank);
    if (rank == 1) tight.capacity = 1;
    exchange(rank, tight);
  }
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    expect_status(rank, status::peer_overflow);
    EXPECT_EQ(outcome(rank).error().found, 1u);
    EXPECT_EQ(download(rank, out_at, before.size()), before);
  }
  run_calls(3);
}

TEST_P(exchange_on_gpus, more_rows_than_a_rank_has_are_refused_by_all) {
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    write(rank, 1);
    if (rank == 1) upload(rank, splits_at, {sent_rows + 1});
    exchange(rank, problem(rank));
  }
  for (std::uint32_t rank = 0; rank < count(); ++rank) expect_status(rank, status::invalid_argument);
  run_calls(3);
}

TEST_P(exchange_on_gpus, ranks_that_disagree_learn_it) {
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    write(rank, 1);
    exchange_problem given = problem(rank);
    if (rank == 1) given.row_bytes = 32;
    exchange(rank, given);
  }
  expect_mismatch();
}

TEST_P(exchange_on_gpus, a_rank_that_does_not_come_is_named_and_the_context_lives) {
  const std::uint32_t late = count() - 1;
  for (std::uint32_t rank = 0; rank < late; ++rank) {
    const rank_on_gpu& at = on(rank);
    TMAP_ASSERT_OK(barrier_async(at.window, at.stream->ref(), milliseconds{50}));
  }
  bool is_named = false;
  for (std::uint32_t rank = 0; rank < late; ++rank) {
    const result<void> ended = outcome(rank);
    ASSERT_FALSE(ended.has_value()) << rank;
    is_named |= ended.error().code == status::peer_timeout && ended.error().found == late;
  }
  EXPECT_TRUE(is_named);
  const rank_on_gpu& at = on(late);  // comes at last
  TMAP_ASSERT_OK(barrier_async(at.window, at.stream->ref(), patience));
  expect_status(late, status::group_broken);
}

INSTANTIATE_TEST_SUITE_P(two_virtual_ranks, exchange_on_gpus, ::testing::Values(virtual_ranks(2)));
INSTANTIATE_TEST_SUITE_P(four_virtual_ranks, exchange_on_gpus, ::testing::Values(virtual_ranks(4)));
INSTANTIATE_TEST_SUITE_P(eight_virtual_ranks, exchange_on_gpus, ::testing::Values(virtual_ranks(8)));
INSTANTIATE_TEST_SUITE_P(most_virtual_ranks, exchange_on_gpus, ::testing::Values(virtual_ranks(max_group_ranks)));
INSTANTIATE_TEST_SUITE_P(two_gpus, exchange_on_gpus, ::testing::Values(ranks_of_process({0, 1})));
INSTANTIATE_TEST_SUITE_P(two_ranks_over_nccl, exchange_on_gpus, ::testing::Values(ranks_over_nccl({0, 0})));
INSTANTIATE_TEST_SUITE_P(two_gpus_over_nccl, exchange_on_gpus, ::testing::Values(ranks_over_nccl({0, 1})));

}  // namespace
}  // namespace tmap::testing
