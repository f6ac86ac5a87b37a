// SPDX-License-Identifier: Apache-2.0
// Tests groups over NCCL as one rank sees them: the fake NCCL plays the other ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lib/peer/make_group.hpp"
#include "peer/fake_peers.hpp"
#include "support/refusal.hpp"

namespace tmap::testing {
namespace {

using peer::nccl_result;
using std::chrono::milliseconds;
using ::testing::ElementsAre;

class group_over_nccl : public ::testing::Test {
 protected:
  result<peer_group> adopt(int rank = 1, int ranks = 3, int device = 2) {
    return peer::group_from_nccl(machine.program_communicator(rank, ranks, device), milliseconds{1000},
                                 fake_peers::calls());
  }
  result<peer_group> create(const peer_start& start) { return peer::create_group(start, fake_peers::calls()); }
  static peer_start rank_1_of_3() {
    peer_start start{.rank = 1, .ranks = 3, .patience = milliseconds{1000}};
    start.id.bytes[127] = 42;
    return start;
  }
  /// Expects that no later call reaches NCCL.
  void expect_broken(peer_group& group) {
    const std::uint64_t before = machine.nccl_calls();
    EXPECT_EQ(group.allocate(100).error().code, status::group_broken);
    EXPECT_EQ(group.check().error().code, status::group_broken);
    EXPECT_EQ(machine.nccl_calls(), before);
  }

  fake_peers machine;
};

TEST_F(group_over_nccl, knows_its_rank_and_where_each_window_lies) {
  result<peer_group> group = adopt();
  ASSERT_TRUE(group.has_value()) << to_string(group.error());
  EXPECT_EQ(group->rank(), 1u);
  EXPECT_EQ(group->ranks(), 3u);
  const result<peer_memory> memory = group->allocate(1000);
  ASSERT_TRUE(memory.has_value()) << to_string(memory.error());
  const peer_memory_ref& ref = memory->ref();
  EXPECT_EQ(ref.windows[1] - ref.windows[0], fake_peers::stride);
  EXPECT_EQ(ref.windows[2] - ref.windows[1], fake_peers::stride);
  EXPECT_EQ(ref.ranks, 3u);
  EXPECT_EQ(ref.bytes, 1000u);
  EXPECT_TRUE(group->check().has_value());
}

TEST_F(group_over_nccl, sizes_are_compared_before_windows_are_opened_without_flags) {
  result<peer_group> group = adopt();
  const result<peer_memory> memory = group->allocate(1000);
  EXPECT_THAT(machine.done, ElementsAre("gather 1000", "open window of 266240, flags 0", "gather 1"));
}

TEST_F(group_over_nccl, a_new_group_is_tested_over_a_window_of_its_own) {
  const result<peer_group> group = create(rank_1_of_3());
  ASSERT_TRUE(group.has_value()) << to_string(group.error());
  EXPECT_THAT(machine.done, ElementsAre("init with id 42, not blocking", "gather 1", "open window of 266240, flags 0",
                                        "gather 1", "test"));
  EXPECT_TRUE(machine.windows.empty());
}

TEST_F(group_over_nccl, a_group_whose_bytes_come_wrong_is_not_made) {
  machine.has_bad_links = true;
  const result<peer_group> group = create(rank_1_of_3());
  ASSERT_FALSE(group.has_value());
  EXPECT_EQ(group.error().code, status::self_test_failed);
  EXPECT_EQ(group.error().found, 2u);
  EXPECT_TRUE(machine.is_clean());
}

TEST_F(group_over_nccl, a_start_may_leave_out_the_self_test) {
  machine.has_bad_links = true;
  peer_start start = rank_1_of_3();
  start.self_test = false;
  const result<peer_group> group = create(start);
  EXPECT_TRUE(group.has_value());
  EXPECT_THAT(machine.done, ElementsAre("init with id 42, not blocking"));
}

TEST_F(group_over_nccl, a_group_whose_ranks_do_not_reach_each_other_is_made_without_a_self_test) {
  machine.ranks_out_of_reach = {0};
  machine.has_bad_links = true;
  result<peer_group> group = create(rank_1_of_3());
  ASSERT_TRUE(group.has_value()) << to_string(group.error());
  EXPECT_EQ(group->allocate(100).error().code, status::no_peer_access);
  EXPECT_TRUE(group->check().has_value());
}

TEST_F(group_over_nccl, headers_are_zero_before_another_rank_can_know) {
  bool is_zero = false;
  machine.other_ranks = [&](int n, int, std::uint64_t mine) {
    const auto* const header = static_cast<const unsigned char*>(*machine.nccl_memory.begin());
    if (n == 0) is_zero = std::all_of(header, header + peer_header_bytes, [](unsigned char byte) { return byte == 0; });
    return mine;
  };
  result<peer_group> group = adopt();
  EXPECT_TRUE(group->allocate(1000).has_value());
  EXPECT_TRUE(is_zero);
}

TEST_F(group_over_nccl, windows_of_different_sizes_are_refused_and_the_group_stays_whole) {
  result<peer_group> group = adopt();
  machine.other_ranks = [](int n, int rank, std::uint64_t mine) { return n == 0 && rank == 2 ? 1001 : mine; };
  const result<peer_memory> memory = group->allocate(1000);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(memory.error().code, status::windows_differ);
  EXPECT_EQ(to_string(memory.error()), "`bytes` is 1000; another rank of the group asked for 1001");
  EXPECT_TRUE(machine.windows.empty() && machine.nccl_memory.empty());
  EXPECT_TRUE(group->allocate(1000).has_value());
}

TEST_F(group_over_nccl, a_rank_without_memory_ends_the_call_on_all_ranks) {
  result<peer_group> group = adopt();
  machine.other_ranks = [](int n, int rank, std::uint64_t mine) { return n == 0 && rank == 2 ? 0 : mine; };
  const result<peer_memory> memory = group->allocate(1000);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(memory.error().code, status::out_of_memory);
  EXPECT_EQ(to_string(memory.error()), "`bytes` is 1000; rank 2 could not allocate its window");
  EXPECT_TRUE(machine.nccl_memory.empty());
  EXPECT_TRUE(group->allocate(1000).has_value());
}

TEST_F(group_over_nccl, its_own_lack_of_memory_is_told_to_the_others) {
  result<peer_group> group = adopt();
  machine.fail_nccl(1, nccl_result::unhandled_cuda_error);
  const result<peer_memory> memory = group->allocate(1000);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(memory.error().code, status::nccl_failure);
  EXPECT_EQ(memory.error().found, 1u);
  EXPECT_THAT(machine.done, ElementsAre("gather 0"));
  EXPECT_TRUE(group->allocate(1000).has_value());
}

TEST_F(group_over_nccl, an_unreachable_window_is_refused_on_all_ranks) {
  machine.ranks_out_of_reach = {2};
  result<peer_group> group = adopt();
  const result<peer_memory> memory = group->allocate(1000);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(memory.error().code, status::no_peer_access);
  EXPECT_EQ(to_string(memory.error()), "this GPU cannot reach the window of rank 2");
  EXPECT_EQ(machine.done.back(), "gather 0");
  EXPECT_TRUE(machine.windows.empty() && machine.nccl_memory.empty());
}

TEST_F(group_over_nccl, another_rank_that_reaches_not_all_ends_the_call_here) {
  machine.other_ranks = [](int n, int rank, std::uint64_t mine) { return n == 1 && rank == 0 ? 0 : mine; };
  result<peer_group> group = adopt();
  const result<peer_memory> memory = group->allocate(1000);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(to_string(memory.error()), "rank 0 of the group cannot reach the windows of all ranks");
  EXPECT_TRUE(machine.windows.empty() && machine.nccl_memory.empty());
}

TEST_F(group_over_nccl, a_buffer_of_another_kind_is_no_window) {
  machine.are_windows_refused = true;
  for (const int version : {23007, 22809}) {
    machine.nccl_version = machine.kernel_version = version;
    result<peer_group> group = adopt();
    const result<peer_memory> memory = group->allocate(1000);
    ASSERT_FALSE(memory.has_value());
    EXPECT_EQ(memory.error().code, status::no_peer_access) << version;
    EXPECT_TRUE(machine.nccl_memory.empty());
  }
}

TEST_F(group_over_nccl, an_older_nccl_is_asked_by_the_kernel_built_for_it) {
  machine.nccl_version = machine.kernel_version = 22809;
  result<peer_group> group = adopt();
  ASSERT_TRUE(group.has_value());
  const result<peer_memory> memory = group->allocate(1000);
  ASSERT_TRUE(memory.has_value()) << to_string(memory.error());
  EXPECT_EQ(memory->ref().windows[2] - memory->ref().windows[1], fake_peers::stride);
}

TEST_F(group_over_nccl, needs_a_version_that_knows_addresses) {
  machine.nccl_version = 22809;
  machine.kernel_version = 22807;
  const result<peer_group> group = adopt();
  ASSERT_FALSE(group.has_value());
  EXPECT_EQ(group.error().code, status::nccl_version);
  EXPECT_EQ(group.error().found, 22809u);
  EXPECT_EQ(group.error().allowed, 22902u);
}

TEST_F(group_over_nccl, needs_every_function) {
  for (const char* const name :
       {"ncclGetVersion", "ncclCommWindowRegister", "ncclMemAlloc", "ncclCommInitRankConfig"}) {
    machine.missing_functions = {name};
    EXPECT_EQ(adopt().error().code, status::nccl_version) << name;
  }
}

TEST_F(group_over_nccl, takes_the_copy_that_is_loaded_or_loads_one) {
  machine.is_nccl_installed = false;
  EXPECT_TRUE(adopt().has_value());
  machine.is_nccl_loaded = false;
  EXPECT_EQ(adopt().error().code, status::nccl_missing);
  machine.is_nccl_installed = true;
  EXPECT_TRUE(adopt().has_value());
}

TEST_F(group_over_nccl, multicast_must_be_off) {
  for (const auto& setting : {std::optional<std::string>{}, std::optional<std::string>{"1"},
                              std::optional<std::string>{""}, std::optional<std::string>{"00"}}) {
    machine.multicast = setting;
    EXPECT_EQ(adopt().error().code, status::multicast_not_off);
    EXPECT_EQ(create(rank_1_of_3()).error().code, status::multicast_not_off);
    EXPECT_EQ(peer::new_id(fake_peers::calls()).error().code, status::multicast_not_off);
  }
  EXPECT_EQ(machine.nccl_calls(), 0u);
}

TEST_F(group_over_nccl, a_start_that_cannot_be_does_not_wait_for_the_file) {
  machine.multicast = "1";
  peer_start start = rank_1_of_3();
  start.id_file = "/no folder/id";
  EXPECT_EQ(create(start).error().code, status::multicast_not_off);
  EXPECT_EQ(machine.clock, 0u);
}

TEST_F(group_over_nccl, refuses_what_cannot_be) {
  expect_refused(peer::group_from_nccl(nullptr, milliseconds{1}, fake_peers::calls()), "communicator");
  expect_refused(adopt(0, max_group_ranks + 1), "communicator");
  expect_refused(peer::group_from_nccl(machine.program_communicator(0, 1, 0), milliseconds{0}, fake_peers::calls()),
                 "patience");
  expect_refused(create({.rank = 0, .ranks = 0}), "start.ranks");
  expect_refused(create({.rank = 0, .ranks = max_group_ranks + 1}), "start.ranks");
  expect_refused(create({.rank = 2, .ranks = 2}), "start.rank");
  expect_refused(create({.rank = 0, .ranks = 2, .patience = milliseconds{-1}}), "start.patience");
  EXPECT_TRUE(machine.is_clean());
}

TEST_F(group_over_nccl, a_rank_that_does_not_come_breaks_the_group) {
  result<peer_group> group = adopt();
  const peer_memory before = group->allocate(1000).value();
  machine.is_stream_stuck = true;
  const result<peer_memory> memory = group->allocate(1000);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(memory.error().code, status::peer_timeout);
  EXPECT_EQ(to_string(memory.error()), "another rank of the group did not come within 1000 ms");
  EXPECT_LT(machine.clock, 1100u);
  expect_broken(*group);
}

TEST_F(group_over_nccl, a_window_that_is_never_opened_breaks_the_group_and_is_kept) {
  result<peer_group> group = adopt();
  machine.other_ranks = [&](int n, int, std::uint64_t mine) {
    if (n == 0) machine.polls_in_progress = 1;  // of the gather itself
    return mine;
  };
  EXPECT_TRUE(group->allocate(1000).has_value()) << "what takes its time";
  machine.fail_nccl(3, nccl_result::in_progress);
  machine.state = nccl_result::in_progress;
  const result<peer_memory> memory = group->allocate(1000);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(memory.error().code, status::peer_timeout);
  EXPECT_EQ(machine.nccl_memory.size(), 1u) << "NCCL may still use it";
  expect_broken(*group);
}

TEST_F(group_over_nccl, a_peer_that_ended_is_lost) {
  result<peer_group> group = adopt();
  machine.is_stream_stuck = true;
  machine.state = nccl_result::remote_error;
  const result<peer_memory> memory = group->allocate(1000);
  ASSERT_FALSE(memory.has_value());
  EXPECT_EQ(memory.error().code, status::peer_lost);
  EXPECT_EQ(machine.clock, 0u) << "without waiting";
  expect_broken(*group);
}

TEST_F(group_over_nccl, check_reports_a_lost_peer_once_and_then_a_broken_group) {
  result<peer_group> group = adopt();
  machine.state = nccl_result::in_progress;
  EXPECT_TRUE(group->check().has_value());
  machine.state = nccl_result::remote_error;
  EXPECT_EQ(group->check().error().code, status::peer_lost);
  expect_broken(*group);
}

TEST_F(group_over_nccl, a_broken_group_frees_no_memory_that_peers_may_use) {
  {
    result<peer_group> group = adopt();
    const peer_memory memory = group->allocate(1000).value();
    machine.state = nccl_result::remote_error;
    EXPECT_FALSE(group->check().has_value());
  }
  EXPECT_EQ(machine.nccl_memory.size(), 1u);
  EXPECT_EQ(machine.windows.size(), 1u);
}

TEST_F(group_over_nccl, a_program_keeps_its_communicator) {
  {
    result<peer_group> group = adopt();
    const peer_memory memory = group->allocate(1000).value();
  }
  EXPECT_TRUE(machine.is_clean());
  EXPECT_EQ(std::count(machine.done.begin(), machine.done.end(), "abort"), 0);
}

TEST_F(group_over_nccl, an_own_communicator_ends_with_the_last_window) {
  peer_memory memory;
  {
    result<peer_group> group = create(rank_1_of_3());
    ASSERT_TRUE(group.has_value()) << to_string(group.error());
    EXPECT_EQ(machine.done.front(), "init with id 42, not blocking");
    EXPECT_EQ(group->rank(), 1u);
    memory = group->allocate(1000).value();
  }
  EXPECT_EQ(machine.communicators.size(), 1u);
  memory = peer_memory{};
  EXPECT_TRUE(machine.is_clean());
  EXPECT_EQ(machine.done.back(), "abort");
}

TEST_F(group_over_nccl, an_own_broken_communicator_ends_too) {
  {
    result<peer_group> group = create(rank_1_of_3());
    machine.state = nccl_result::remote_error;
    EXPECT_FALSE(group->check().has_value());
  }
  EXPECT_EQ(machine.done.back(), "abort");
  EXPECT_TRUE(machine.is_clean());
}

TEST_F(group_over_nccl, a_start_that_not_all_ranks_join_ends_at_the_deadline) {
  machine.state = nccl_result::in_progress;
  machine.polls_in_progress = 1;
  const result<peer_group> group = create(rank_1_of_3());
  ASSERT_FALSE(group.has_value());
  EXPECT_EQ(group.error().code, status::peer_timeout);
  EXPECT_EQ(machine.done.back(), "abort");
  EXPECT_TRUE(machine.is_clean());
}

TEST_F(group_over_nccl, each_failure_of_cuda_is_reported_and_leaves_no_memory) {
  std::uint64_t failures = 0;
  for (std::uint64_t n = 1;; ++n) {
    SCOPED_TRACE(n);
    bool is_reported = false;
    machine.fail_cuda(n);
    {
      result<peer_group> group = create(rank_1_of_3());
      const result<peer_memory> memory = group ? group->allocate(1000) : failure{group.error()};
      is_reported = !memory;
      if (is_reported) {
        EXPECT_EQ(memory.error().code, status::cuda_failure);
      }
    }
    const bool was_reached = machine.cuda_calls() >= n;
    machine.fail_cuda(0);
    EXPECT_EQ(fake_peers::calls().set_device(0), cudaSuccess);
    failures += is_reported ? 1 : 0;
    EXPECT_TRUE(machine.communicators.empty());
    if (!was_reached) break;
  }
  EXPECT_GE(failures, 15u);
}

TEST_F(group_over_nccl, each_failure_of_nccl_is_reported_and_leaves_no_communicator) {
  std::uint64_t failures = 0;
  for (std::uint64_t n = 1;; ++n) {
    SCOPED_TRACE(n);
    fake_peers fresh;
    fresh.fail_nccl(n, nccl_result::invalid_usage);
    bool is_reported = false;
    {
      result<peer_group> group = create(rank_1_of_3());
      const result<peer_memory> memory = group ? group->allocate(1000) : failure{group.error()};
      is_reported = !memory;
    }
    failures += is_reported ? 1 : 0;
    // NCCL may still use the memory of a window that did not open: the self-test's, or this one.
    const bool is_first = fresh.done.size() == 2 && fresh.done.back() == "gather 1";
    const bool is_kept = is_first || (!fresh.done.empty() && fresh.done.back() == "gather 1000");
    if (is_reported) {
      EXPECT_EQ(fresh.communicators.empty() && fresh.open_streams == 0 && fresh.memory.empty(), !is_kept);
    }
    if (fresh.nccl_calls() < n) break;
  }
  EXPECT_GE(failures, 11u);
}

TEST_F(group_over_nccl, nothing_is_called_in_a_forked_child_or_while_the_process_exits) {
  for (const bool forks : {true, false}) {
    result<peer_group> group = create(rank_1_of_3());
    {
      const peer_memory memory = group->allocate(1000).value();
      const std::uint64_t before = machine.nccl_calls() + machine.cuda_calls();
      machine.process += forks ? 1 : 0;
      machine.is_exiting = !forks;
      if (forks) {
        EXPECT_EQ(group->allocate(1000).error().code, status::forked);
      }
      { const peer_group ended = std::move(*group); }
      EXPECT_EQ(machine.nccl_calls() + machine.cuda_calls(), before);
    }
    EXPECT_EQ(machine.communicators.size(), forks ? 1u : 2u);
    machine.is_exiting = false;
  }
}

}  // namespace
}  // namespace tmap::testing
