// SPDX-License-Identifier: Apache-2.0
// Tests which arguments the calls that move rows refuse. Every argument is refused before CUDA is
// called.
#include <tmap/peer_exchange.hpp>
#include <tmap/peer_group.hpp>

#include <gtest/gtest.h>

#include <limits>

#include "kernels/peer/protocol_announce.hpp"
#include "support/refusal.hpp"

namespace tmap::testing {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t window_room = 1 << 20;
constexpr std::uint64_t row_size = 256;

class exchange_refusals : public ::testing::Test {
 protected:
  exchange_refusals() {
    auto group = peer_group::from_addresses(1, {0x10000000, 0x70000000}, window_room + peer_header_bytes);
    window_ = group->allocate(window_room).value();
    problem_.rows = at(0);
    problem_.sent_rows = 100;
    problem_.splits = static_cast<std::uint32_t*>(at(0x20000));
    problem_.out = at(0x40000);
    problem_.capacity = 50;
    problem_.out_splits = static_cast<std::uint32_t*>(at(0x30000));
    problem_.groups = 4;
    problem_.row_bytes = row_size;
  }

  void* at(std::uint64_t offset) const { return reinterpret_cast<void*>(window_.ref().address(1, offset)); }
  template <class T>
  T* at(std::uint64_t offset) const {
    return static_cast<T*>(at(offset));
  }
  result<void> exchanged() const { return exchange_rows_async(window_, problem_, run_); }
  void expect_problem_refused(const char* argument) const { expect_refused(exchanged(), argument); }

  peer_memory window_;
  exchange_problem problem_;
  exchange_run run_{cuda::stream_ref{cudaStream_t{}}};
};

TEST_F(exchange_refusals, a_good_problem_is_refused_by_nothing_but_the_machine) {
  const result<void> made = exchange_rows_async({}, problem_, run_);
  expect_refused(made, "window");
  problem_.row_bytes = 0;  // nothing may run on these addresses, also where there is a GPU
  expect_problem_refused("problem.row_bytes");
}

TEST_F(exchange_refusals, a_row_has_1_to_2_to_the_30_bytes) {
  problem_.row_bytes = 0;
  expect_problem_refused("problem.row_bytes");
  problem_.row_bytes = (1u << 30) + 1;
  expect_problem_refused("problem.row_bytes");
}

TEST_F(exchange_refusals, a_pitch_is_none_or_at_least_a_row) {
  for (const std::uint64_t bad : {std::uint64_t{1}, row_size - 1, std::uint64_t{1} << 32}) {
    problem_.rows_pitch_bytes = bad;
    expect_problem_refused("problem.rows_pitch_bytes");
    problem_.rows_pitch_bytes = 0;
    problem_.out_pitch_bytes = bad;
    expect_problem_refused("problem.out_pitch_bytes");
    problem_.out_pitch_bytes = 0;
  }
}

TEST_F(exchange_refusals, rows_with_a_pitch_lie_in_the_window_of_this_rank) {
  const exchange_problem good = problem_;
  problem_.rows_pitch_bytes = window_room / 98;  // the last of 100 rows does not fit
  expect_problem_refused("problem.rows");
  problem_ = good;
  problem_.out_pitch_bytes = window_room / 48;
  expect_problem_refused("problem.out");
  problem_ = good;
  problem_.rows_pitch_bytes = 0x40000 / 99 + 1;  // the last row lies in `out`
  expect_problem_refused("problem.out");
}

TEST_F(exchange_refusals, peers_read_whole_units_of_the_window) {
  auto group = peer_group::from_addresses(1, {0x10000000, 0x70000000}, window_room + peer_header_bytes);
  window_ = group->allocate(window_room - 8).value();
  problem_.row_bytes = 1;
  problem_.rows = problem_.out = at(window_room - 16 - 100);
  expect_problem_refused("problem.out");  // it overlaps; the end is good
  problem_.rows = at(window_room - 15 - 100);
  expect_refused(exchanged(), "problem.rows", window_room - 15, window_room - 16, "whole 16 bytes");
}

TEST_F(exchange_refusals, rows_are_counted_in_32_bits) {
  problem_.sent_rows = std::uint64_t{1} << 32;
  expect_problem_refused("problem.sent_rows");
  problem_.sent_rows = 100;
  problem_.capacity = std::uint64_t{1} << 32;
  expect_problem_refused("problem.capacity");
}

TEST_F(exchange_refusals, groups_fit_the_header) {
  problem_.groups = 0;
  expect_problem_refused("problem.groups");
  const std::uint32_t most = kernels::peer::most_groups(2);
  problem_.groups = most + 1;
  expect_refused(exchanged(), "problem.groups", most + 1, most, "too many");
  for (std::uint32_t ranks = 1; ranks <= max_group_ranks; ++ranks) {
    EXPECT_TRUE(kernels::peer::fits_header(ranks, kernels::peer::most_groups(ranks))) << ranks;
    EXPECT_FALSE(kernels::peer::fits_header(ranks, kernels::peer::most_groups(ranks) + 4)) << ranks;
  }
}

TEST_F(exchange_refusals, a_placement_is_one_of_two) {
  problem_.placed = static_cast<row_placement>(2);
  expect_problem_refused("problem.placed");
}

TEST_F(exchange_refusals, each_array_is_there_and_aligned) {
  const exchange_problem good = problem_;
  problem_.rows = nullptr;
  expect_problem_refused("problem.rows");
  problem_ = good;
  problem_.out = nullptr;
  expect_problem_refused("problem.out");
  problem_ = good;
  for (std::uint32_t* const bad : {static_cast<std::uint32_t*>(nullptr), at<std::uint32_t>(0x50002)}) {
    problem_.splits = bad;
    expect_problem_refused("problem.splits");
    problem_ = good;
    problem_.out_splits = bad;
    expect_problem_refused("problem.out_splits");
    problem_ = good;
  }
}

TEST_F(exchange_refusals, each_array_lies_in_the_window_of_this_rank) {
  const exchange_problem good = problem_;
  const std::uint64_t peers = window_.ref().address(0);
  problem_.rows = reinterpret_cast<void*>(peers);
  expect_problem_refused("problem.rows");
  problem_ = good;
  problem_.rows = at(window_room - 100 * row_size + 16);
  expect_problem_refused("problem.rows");
  problem_ = good;
  problem_.out = reinterpret_cast<void*>(window_.ref().address(1) - 256);  // in the header
  expect_problem_refused("problem.out");
  problem_ = good;
  problem_.splits = at<std::uint32_t>(window_room - 4);
  expect_problem_refused("problem.splits");
  problem_ = good;
  problem_.out_splits = at<std::uint32_t>(window_room);
  expect_problem_refused("problem.out_splits");
}

TEST_F(exchange_refusals, what_is_written_overlaps_nothing) {
  const exchange_problem good = problem_;
  problem_.out = at(99 * row_size);
  expect_problem_refused("problem.out");
  problem_ = good;
  problem_.out = at(0x20000);
  expect_problem_refused("problem.out");
  problem_ = good;
  problem_.out_splits = at<std::uint32_t>(0x20000 + 4);
  expect_problem_refused("problem.out_splits");
  problem_ = good;
  problem_.out_splits = at<std::uint32_t>(0x40000 + 50 * row_size - 4);
  expect_problem_refused("problem.out_splits");
}

TEST_F(exchange_refusals, blocks_and_patience_have_bounds) {
  for (const std::uint32_t blocks : {0u, 144u}) {
    run_.blocks = blocks;
    expect_problem_refused("run.blocks");
  }
  run_.blocks = 16;
  for (const milliseconds patience : {milliseconds{0}, milliseconds{-1}, milliseconds{86'400'001}}) {
    run_.patience = patience;
    expect_problem_refused("run.patience");
    expect_refused(barrier_async(window_, run_.stream, patience), "patience");
    expect_refused(await_pulls_async(window_, run_.stream, patience), "patience");
    expect_refused(self_test_async(window_, run_.stream, patience), "patience");
  }
}

TEST_F(exchange_refusals, every_call_needs_a_window) {
  const peer_memory empty;
  expect_refused(barrier_async(empty, run_.stream), "window");
  expect_refused(await_pulls_async(empty, run_.stream), "window");
  expect_refused(self_test_async(empty, run_.stream), "window");
  expect_refused(last_outcome(empty, run_.stream), "window");
  expect_refused(abort_group(empty), "window");
}

}  // namespace
}  // namespace tmap::testing
