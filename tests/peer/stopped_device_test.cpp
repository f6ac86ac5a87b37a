// SPDX-License-Identifier: Apache-2.0
// Stops a rank before each step of its exchange in turn. The other one must end with a status by
// its deadline, and a new group of both must work. `protocol_death` does the same in the model.
#include <tmap/peer_exchange.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>

#include "lib/peer/call_checks.hpp"
#include "peer/ranks_on_gpus.hpp"
#include "peer/stopped_kernel.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t splits_at = 0, out_splits_at = 4096, rows_at = 8192, out_at = 10 << 20;
constexpr std::uint32_t stopped_rank = 1, living_rank = 0;
constexpr milliseconds short_patience{20}, slack{2000};  // the host may be late

/// Each rank sends as many rows to each group of each rank.
struct stopped_call {
  std::uint32_t groups;
  std::uint32_t rows;
  std::uint32_t row_bytes;
  std::uint32_t blocks;
};

class stopped_ranks : public ranks_on_gpus {
 protected:
  stopped_ranks() : ranks_on_gpus(20 << 20) {}

  void SetUp() override {
    ranks_on_gpus::SetUp();
    if (IsSkipped()) return;
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      on(rank);  // CUDA may wait for the GPU when it loads a kernel
      TMAP_ASSERT_CUDA(load_stopped_exchange());
    }
  }

  /// Stops the rank before each of its steps, or before every so many, until it has no more.
  /// Returns how many it has at least.
  std::uint32_t stop_at_each_step(const stopped_call& call, std::uint32_t apart = 1) {
    for (std::uint32_t stop = 0;; stop += apart) {
      SCOPED_TRACE("stops before step " + std::to_string(stop));
      expect_whole_call(call);
      const bool has_stopped = expect_end_without(call, stop);
      if (HasFailure() || !has_stopped) {
        std::printf("%u steps, %u of the stops ended the living rank's call\n", stop, timeouts_);
        return stop;
      }
      rebuild();
    }
  }

 private:
  std::uint32_t rows_of_call(const stopped_call& call) const { return count() * call.groups * call.rows; }
  std::uint64_t words_of(const stopped_call& call, std::uint64_t rows) const { return rows * call.row_bytes / 4; }
  /// Returns words that differ from rank to rank.
  static words counted(std::uint32_t rank, std::uint64_t count) {
    words made(count);
    std::iota(made.begin(), made.end(), (rank + 1) << 24);
    return made;
  }

  void write(std::uint32_t rank, const stopped_call& call) const {
    upload(rank, splits_at, words(count() * call.groups, call.rows));
    upload(rank, rows_at, counted(rank, words_of(call, rows_of_call(call))));
    upload(rank, out_at, words(words_of(call, rows_of_call(call)), 0x5a5a5a5a));
  }
  /// Compares what rank 0 got: the first rows of each rank.
  void expect_rows(const stopped_call& call) const {
    words rows;
    for (std::uint32_t from = 0; from < count(); ++from) {
      const words part = counted(from, words_of(call, std::uint64_t{call.groups} * call.rows));
      rows.insert(rows.end(), part.begin(), part.end());
    }
    EXPECT_EQ(download(living_rank, out_splits_at, count() * call.groups), words(count() * call.groups, call.rows));
    EXPECT_TRUE(download(living_rank, out_at, rows.size()) == rows) << "wrong rows";
  }

  void exchange(std::uint32_t rank, const stopped_call& call, milliseconds how_long) const {
    const rank_on_gpu& at = on(rank);
    const auto place = [&](std::uint64_t offset) { return at.window.ref().address(rank, offset); };
    exchange_problem given;
    given.rows = reinterpret_cast<const void*>(place(rows_at));
    given.splits = reinterpret_cast<const std::uint32_t*>(place(splits_at));
    given.out = reinterpret_cast<void*>(place(out_at));
    given.out_splits = reinterpret_cast<std::uint32_t*>(place(out_splits_at));
    given.groups = call.groups;
    given.row_bytes = call.row_bytes;
    given.sent_rows = given.capacity = rows_of_call(call);
    TMAP_ASSERT_OK(exchange_rows_async(at.window, given, {at.stream->ref(), call.blocks, how_long}));
  }
  /// Makes the same call as `exchange` does, in one thread that may stop.
  void exchange_until(std::uint32_t stop, const stopped_call& call, taken_steps* steps) const {
    const rank_on_gpu& at = on(stopped_rank);
    kernels::peer::exchange_request request{};
    request.rows = peer_header_bytes + rows_at;
    request.splits = peer_header_bytes + splits_at;
    request.out = peer_header_bytes + out_at;
    request.out_splits = peer_header_bytes + out_splits_at;
    request.groups = call.groups;
    request.row_bytes = call.row_bytes;
    request.sent_rows = request.capacity = rows_of_call(call);
    request.staging_bytes = peer::staging_bytes;
    request.stages = peer::stages;
    request.blocks = 1;
    request.is_eager = request.pushes = call.groups == 1;
    request.pushed_bytes = call.groups == 1 ? peer::pushed_bytes : 0;
    TMAP_ASSERT_CUDA(launch_stopped_exchange(at.window.ref(), request, stop, peer::nanoseconds(short_patience), steps,
                                             at.stream->get()));
  }

  void expect_whole_call(const stopped_call& call) const {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      TMAP_ASSERT_OK(await_pulls_async(on(rank).window, on(rank).stream->ref(), patience));
      write(rank, call);
      exchange(rank, call, patience);
    }
    for (std::uint32_t rank = 0; rank < count(); ++rank) expect_ok(rank);
    expect_rows(call);
  }

  /// Runs a call in which one rank may stop. Returns whether it did.
  bool expect_end_without(const stopped_call& call, std::uint32_t stop) {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      EXPECT_TRUE(await_pulls_async(on(rank).window, on(rank).stream->ref(), patience).has_value());
      write(rank, call);
    }
    on(stopped_rank);
    const device_array<taken_steps> steps(std::vector<taken_steps>(1));
    for (std::uint32_t rank = 0; rank < count(); ++rank)
      EXPECT_EQ(cudaStreamSynchronize(on(rank).stream->get()), cudaSuccess);
    const auto begin = std::chrono::steady_clock::now();
    exchange_until(stop, call, steps.data());
    exchange(living_rank, call, short_patience);
    const result<void> ended = outcome(living_rank);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, short_patience + slack);
    expect_named(ended, call);
    on(stopped_rank);
    const taken_steps taken = steps.download()[0];
    if (taken.has_stopped == 0) {
      EXPECT_TRUE(ended.has_value()) << to_string(ended.error());
      expect_ok(stopped_rank);
    } else {
      expect_no_later_call();
    }
    return taken.has_stopped != 0;
  }
  /// Expects whole rows, or a status that names the rank which has stopped.
  void expect_named(const result<void>& ended, const stopped_call& call) {
    if (ended.has_value()) return expect_rows(call);
    ++timeouts_;
    EXPECT_EQ(ended.error().code, status::peer_timeout) << to_string(ended.error());
    EXPECT_EQ(ended.error().found, stopped_rank) << to_string(ended.error());
  }
  /// Expects that the living rank learns it in its next call at the latest.
  void expect_no_later_call() const {
    const rank_on_gpu& at = on(living_rank);
    TMAP_ASSERT_OK(barrier_async(at.window, at.stream->ref(), short_patience));
    const result<void> later = outcome(living_rank);
    ASSERT_FALSE(later.has_value());
    EXPECT_TRUE(later.error().code == status::peer_timeout || later.error().code == status::group_broken);
  }

  std::uint32_t timeouts_{};
};

TEST_P(stopped_ranks, others_end_by_their_deadline_with_rows_that_are_pulled) {
  EXPECT_GT(stop_at_each_step({.groups = 3, .rows = 2, .row_bytes = 1040, .blocks = 4}), 20u);
}

TEST_P(stopped_ranks, others_end_by_their_deadline_with_rows_that_come_with_the_announcement) {
  EXPECT_GT(stop_at_each_step({.groups = 1, .rows = 3, .row_bytes = 16, .blocks = 4}), 15u);
}

/// Each piece takes a few steps, which the stops meet in turn.
TEST_P(stopped_ranks, others_end_by_their_deadline_with_rows_that_are_pushed) {
  constexpr std::uint32_t row_bytes = 16384, apart = 13;
  const stopped_call call{.groups = 1, .rows = peer::pushed_bytes / row_bytes, .row_bytes = row_bytes, .blocks = 16};
  EXPECT_GT(stop_at_each_step(call, apart), peer::pushed_bytes / peer::staging_bytes);
}

INSTANTIATE_TEST_SUITE_P(two_virtual_ranks, stopped_ranks, ::testing::Values(virtual_ranks(2)));
INSTANTIATE_TEST_SUITE_P(two_gpus, stopped_ranks, ::testing::Values(ranks_of_process({0, 1})));
INSTANTIATE_TEST_SUITE_P(two_ranks_over_nccl, stopped_ranks, ::testing::Values(ranks_over_nccl({0, 0})));
INSTANTIATE_TEST_SUITE_P(two_gpus_over_nccl, stopped_ranks, ::testing::Values(ranks_over_nccl({0, 1})));

}  // namespace
}  // namespace tmap::testing
