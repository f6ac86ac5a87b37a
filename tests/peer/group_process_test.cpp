// SPDX-License-Identifier: Apache-2.0
// Tests groups of GPUs of one process over GPUs made of functions.
#include <tmap/detail/peer_window.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "lib/peer/make_group.hpp"
#include "peer/fake_peers.hpp"
#include "support/refusal.hpp"

namespace tmap::testing {
namespace {

class group_of_process : public ::testing::Test {
 protected:
  result<std::vector<peer_group>> make(const std::vector<int>& devices) {
    return peer::group_of_process(devices, fake_peers::calls());
  }
  static const unsigned char* header_of(const peer_memory& memory, std::uint32_t rank) {
    return reinterpret_cast<const unsigned char*>(memory.ref().windows[rank].value());
  }
  int current_gpu() const {
    int device = -1;
    EXPECT_EQ(fake_peers::calls().current_device(&device), cudaSuccess);
    return device;
  }

  fake_peers machine;
};

TEST_F(group_of_process, every_rank_sees_the_same_windows_on_its_own_gpus) {
  auto groups = make({2, 0, 3});
  ASSERT_TRUE(groups.has_value());
  std::vector<peer_memory> windows;
  for (peer_group& each : *groups) windows.push_back(each.allocate(1000).value());
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ((*groups)[rank].rank(), rank);
    EXPECT_EQ(windows[rank].ref().rank, rank);
    EXPECT_EQ(windows[rank].ref().ranks, 3u);
    EXPECT_TRUE(std::equal(std::begin(windows[0].ref().windows), std::end(windows[0].ref().windows),
                           std::begin(windows[rank].ref().windows)));
  }
  EXPECT_EQ(machine.device_of(header_of(windows[0], 0)), 2);
  EXPECT_EQ(machine.device_of(header_of(windows[0], 1)), 0);
  EXPECT_EQ(machine.device_of(header_of(windows[0], 2)), 3);
  EXPECT_EQ(machine.memory.size(), 3u);
  EXPECT_EQ(current_gpu(), 0);
}

TEST_F(group_of_process, headers_are_zero_and_the_users_bytes_are_not_set) {
  auto groups = make({0, 1});
  const peer_memory memory = (*groups)[1].allocate(1000).value();
  for (const std::uint32_t rank : {0u, 1u}) {
    const unsigned char* const header = header_of(memory, rank);
    EXPECT_TRUE(std::all_of(header, header + peer_header_bytes, [](unsigned char byte) { return byte == 0; }));
    EXPECT_EQ(header[peer_header_bytes], 0xab);
    EXPECT_EQ(header[peer_header_bytes + 999], 0xab);
  }
}

TEST_F(group_of_process, opens_every_gpu_to_every_other) {
  const std::set<std::pair<int, int>> all{{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}};
  machine.opened.insert({1, 0});  // by the program
  EXPECT_TRUE(make({0, 1, 2}).has_value());
  EXPECT_EQ(machine.opened, all);
  EXPECT_EQ(current_gpu(), 0);
}

TEST_F(group_of_process, names_two_gpus_without_peer_access) {
  machine.unreachable.insert({2, 1});
  const auto groups = make({0, 1, 2});
  ASSERT_FALSE(groups.has_value());
  EXPECT_EQ(groups.error().code, status::no_peer_access);
  EXPECT_EQ(to_string(groups.error()), "GPU 2 cannot reach the memory of GPU 1");
}

TEST_F(group_of_process, refuses_gpus_that_are_not_there_or_come_twice) {
  expect_refused(make({}), "devices.size()");
  expect_refused(make(std::vector<int>(max_group_ranks + 1, 0)), "devices.size()");
  expect_refused(make({0, 4}), "devices[1]", 4, 4, "four GPUs");
  expect_refused(make({-1}), "devices[0]");
  expect_refused(make({1, 3, 1}), "devices[2]");
  EXPECT_TRUE(make({3}).has_value()) << "a group of one";
}

TEST_F(group_of_process, memory_ends_with_the_last_ranks_window) {
  auto groups = make({0, 1});
  peer_memory first = (*groups)[0].allocate(1000).value();
  peer_memory second = (*groups)[1].allocate(1000).value();
  groups->clear();
  first = peer_memory{};
  EXPECT_EQ(machine.memory.size(), 2u);
  second = peer_memory{};
  EXPECT_TRUE(machine.is_clean());
  EXPECT_EQ(current_gpu(), 0);
}

TEST_F(group_of_process, windows_that_a_rank_never_takes_end_with_its_group) {
  auto groups = make({0, 1});
  { const peer_memory first = (*groups)[0].allocate(1000).value(); }
  EXPECT_EQ(machine.memory.size(), 2u) << "rank 1 may still take it";
  groups->pop_back();
  EXPECT_TRUE(machine.is_clean());
  { const peer_memory alone = (*groups)[0].allocate(1000).value(); }
  EXPECT_TRUE(machine.is_clean()) << "rank 1 is gone";
}

TEST_F(group_of_process, compares_sizes_and_changes_nothing_when_they_differ) {
  auto groups = make({0, 1});
  const peer_memory first = (*groups)[0].allocate(1000).value();
  const auto other = (*groups)[1].allocate(1001);
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, status::windows_differ);
  EXPECT_EQ(to_string(other.error()), "`bytes` is 1001; another rank of the group asked for 1000");
  const auto again = (*groups)[1].allocate(1000);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->ref().windows[0], first.ref().windows[0]);
}

TEST_F(group_of_process, each_rank_gets_its_windows_in_order) {
  auto groups = make({0, 1});
  std::vector<peer_memory> first;
  for (const std::uint64_t bytes : {100, 200, 300}) first.push_back((*groups)[0].allocate(bytes).value());
  for (const peer_memory& each : first) {
    const peer_memory same = (*groups)[1].allocate(each.bytes()).value();
    EXPECT_EQ(same.ref().windows[1], each.ref().windows[1]);
  }
}

TEST_F(group_of_process, ranks_may_run_in_threads) {
  constexpr std::uint64_t rounds = 50;
  auto groups = make({0, 1, 2, 3});
  std::vector<std::vector<std::uint64_t>> seen(4);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<peer_memory> windows;
      for (std::uint64_t i = 1; i <= rounds; ++i) windows.push_back((*groups)[rank].allocate(i).value());
      for (const peer_memory& each : windows) seen[rank].push_back(each.ref().windows[3]);
    });
  }
  for (std::thread& each : threads) each.join();
  for (const auto& each : seen) EXPECT_EQ(each.size(), rounds);
  EXPECT_TRUE(machine.is_clean());
}

TEST_F(group_of_process, each_failure_of_cuda_leaves_nothing_behind) {
  std::uint64_t failures = 0;
  for (std::uint64_t n = 1;; ++n) {
    auto groups = make({0, 1});
    machine.fail_cuda(n, cudaErrorMemoryAllocation);
    const auto memory = (*groups)[0].allocate(1000);
    const bool was_reached = machine.cuda_calls() >= n;
    machine.fail_cuda(0);
    if (!memory) {
      EXPECT_EQ(memory.error().code, status::out_of_memory) << n;
      EXPECT_TRUE(machine.memory.empty()) << n;
      EXPECT_TRUE((*groups)[1].allocate(77).has_value()) << "the group is whole";
      ++failures;
    }
    if (!was_reached) break;
  }
  EXPECT_GE(failures, 10u);
}

TEST_F(group_of_process, each_failure_of_cuda_is_reported_by_the_making) {
  for (std::uint64_t n = 1;; ++n) {
    machine.opened.clear();
    machine.fail_cuda(n, cudaErrorUnknown);
    const auto groups = make({0, 1});
    const bool was_reached = machine.cuda_calls() >= n;
    machine.fail_cuda(0);
    EXPECT_TRUE(fake_peers::calls().set_device(0) == cudaSuccess);
    if (!groups) {
      EXPECT_EQ(groups.error().code, status::cuda_failure) << n;
    }
    if (!was_reached) break;
  }
}

TEST_F(group_of_process, nothing_is_freed_in_a_forked_child_or_while_the_process_exits) {
  for (const bool forks : {true, false}) {
    auto groups = make({0, 1});
    {
      const peer_memory memory = (*groups)[0].allocate(1000).value();
      const std::uint64_t calls_before = machine.cuda_calls();
      if (forks) ++machine.process;
      machine.is_exiting = !forks;
      if (forks) {
        EXPECT_EQ((*groups)[1].allocate(1000).error().code, status::forked);
        EXPECT_EQ((*groups)[1].check().error().code, status::forked);
      }
      groups->clear();
      EXPECT_EQ(machine.cuda_calls(), calls_before);
    }
    EXPECT_EQ(machine.memory.size(), forks ? 2u : 4u);
    machine.is_exiting = false;
  }
}

TEST_F(group_of_process, an_aborted_group_is_broken_on_every_rank_and_no_other_word_changes) {
  auto groups = make({0, 2, 3});
  ASSERT_TRUE(groups.has_value());
  const peer_memory window = (*groups)[1].allocate(100).value();
  ASSERT_TRUE(peer::abort_group(window, fake_peers::calls()).has_value());
  detail::peer::window_header expected{};
  expected.broken = 1;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(std::memcmp(header_of(window, rank), &expected, sizeof(expected)), 0) << rank;
  }
  EXPECT_EQ(machine.open_streams, 0);
}

TEST_F(group_of_process, an_abort_reaches_the_other_ranks_although_one_copy_fails) {
  auto groups = make({0, 1});
  ASSERT_TRUE(groups.has_value());
  const peer_memory window = (*groups)[0].allocate(100).value();
  constexpr std::uint64_t open = 1, first_copy = 2, close = 5;
  for (std::uint64_t n = open; n <= close; ++n) {
    machine.fail_cuda(n);
    EXPECT_FALSE(peer::abort_group(window, fake_peers::calls()).has_value()) << n;
    EXPECT_EQ(machine.open_streams, n == close ? 1 : 0) << n;
    if (n != first_copy) continue;
    const auto* const header = reinterpret_cast<const detail::peer::window_header*>(header_of(window, 1));
    EXPECT_EQ(header->broken, 1u);
  }
  machine.open_streams = 0;
}

}  // namespace
}  // namespace tmap::testing
