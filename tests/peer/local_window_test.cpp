// SPDX-License-Identifier: Apache-2.0
// Tests windows that peers do not reach, as one rank sees them: the fake NCCL plays the other
// ranks, and kernels are noted.
#include <tmap/expert_parallel.hpp>
#include <tmap/peer_exchange.hpp>
#include <tmap/peer_maps.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "lib/peer/access.hpp"
#include "lib/peer/local_window.hpp"
#include "lib/peer/make_group.hpp"
#include "peer/fake_peers.hpp"
#include "support/refusal.hpp"

namespace tmap::testing {
namespace {

using peer::nccl_result;
using std::chrono::milliseconds;
using ::testing::ElementsAre;

class local_window : public ::testing::Test {
 protected:
  static constexpr std::uint64_t patience = 1000;

  result<peer_group> adopt() {
    return peer::group_from_nccl(machine.program_communicator(1, 3, 2), milliseconds{patience}, fake_peers::calls());
  }
  result<peer_group> create() {
    peer_start start{.rank = 1, .ranks = 3, .patience = milliseconds{patience}, .self_test = false};
    start.id.bytes[127] = 42;
    return peer::create_group(start, fake_peers::calls());
  }
  /// Returns a window, and forgets what was done for it.
  peer_memory made(result<peer_group>& group) {
    peer_memory window = group->allocate_local(1000, 100).value();
    machine.done.clear();
    return window;
  }
  static result<void> exchange(const peer_memory& window) {
    return peer::access::local(window)->exchange({}, 1, nullptr);
  }
  static result<void> meet(const peer_memory& window) { return peer::access::local(window)->meet(nullptr); }
  /// Returns the numbers that cross for each pair.
  static std::string numbers_of_a_parcel() {
    return std::to_string(kernels::peer::layout_of(3, 1000, 100).parcel_bytes() / 8);
  }

  fake_peers machine;
};

TEST_F(local_window, sizes_are_compared_and_parcels_carried_once) {
  machine.are_windows_refused = true;  // as without peer access
  result<peer_group> group = adopt();
  const result<peer_memory> window = group->allocate_local(1000, 100);
  ASSERT_TRUE(window.has_value()) << to_string(window.error());
  EXPECT_THAT(machine.done, ElementsAre("gather 1000", "gather 100", "all to all of " + numbers_of_a_parcel()));
  EXPECT_EQ(group->allocate(1000).error().code, status::no_peer_access);
}

TEST_F(local_window, has_the_address_of_its_own_rank_alone) {
  result<peer_group> group = adopt();
  const peer_memory window = made(group);
  EXPECT_FALSE(window.reaches_peers());
  EXPECT_TRUE(group->allocate(1000)->reaches_peers());
  const peer_memory_ref& ref = window.ref();
  EXPECT_EQ(ref.rank, 1u);
  EXPECT_EQ(ref.ranks, 3u);
  EXPECT_EQ(ref.bytes, 1000u);
  EXPECT_EQ(ref.windows[0], 0u);
  EXPECT_EQ(ref.windows[2], 0u);
  EXPECT_EQ(machine.device_of(reinterpret_cast<void*>(std::uint64_t{ref.windows[1]})), 2);
  const auto* const header = reinterpret_cast<const unsigned char*>(std::uint64_t{ref.windows[1]});
  EXPECT_TRUE(std::all_of(header, header + peer_header_bytes, [](unsigned char byte) { return byte == 0; }));
}

TEST_F(local_window, stays_what_it_is_when_it_is_moved) {
  result<peer_group> group = adopt();
  peer_memory window = made(group);
  peer_memory moved{std::move(window)};
  EXPECT_FALSE(moved.reaches_peers());
  window = std::move(moved);
  EXPECT_FALSE(window.reaches_peers());
  EXPECT_TRUE(meet(window).has_value());
}

TEST_F(local_window, sizes_that_differ_are_refused_and_the_group_stays_whole) {
  result<peer_group> group = adopt();
  for (const int odd : {0, 1}) {
    int first = 0;
    machine.other_ranks = [&, odd](int n, int rank, std::uint64_t mine) {
      if (mine == 1000) first = n;
      return n == first + odd && rank == 2 ? mine + 1 : mine;
    };
    const result<peer_memory> window = group->allocate_local(1000, 100);
    ASSERT_FALSE(window.has_value());
    EXPECT_EQ(window.error().code, status::windows_differ);
    EXPECT_EQ(to_string(window.error()), odd == 0 ? "`bytes` is 1000; another rank of the group asked for 1001"
                                                  : "`pair_bytes` is 100; another rank of the group asked for 101");
    machine.other_ranks = {};
    EXPECT_TRUE(group->allocate_local(1000, 100).has_value());
  }
}

TEST_F(local_window, lack_of_memory_is_told_to_the_others) {
  result<peer_group> group = adopt();
  machine.fail_cuda(3, cudaErrorMemoryAllocation);
  const result<peer_memory> window = group->allocate_local(1000, 100);
  ASSERT_FALSE(window.has_value());
  EXPECT_EQ(window.error().code, status::out_of_memory) << to_string(window.error());
  EXPECT_THAT(machine.done, ElementsAre("gather 0"));
  EXPECT_TRUE(group->allocate_local(1000, 100).has_value());
}

TEST_F(local_window, needs_a_group_with_a_communicator) {
  result<peer_group> given = peer_group::from_addresses(0, {1 << 20, 1 << 21}, 1 << 20);
  expect_refused(given->allocate_local(1000, 100), "peer_group");
  auto of_process = peer::group_of_process({0, 1}, fake_peers::calls());
  expect_refused((*of_process)[0].allocate_local(1000, 100), "peer_group");
  result<peer_group> group = adopt();
  for (const std::uint64_t bad : {std::uint64_t{0}, (std::uint64_t{1} << 40) + 1}) {
    expect_refused(group->allocate_local(bad, 100), "bytes");
    expect_refused(group->allocate_local(1000, bad), "pair_bytes");
  }
}

TEST_F(local_window, an_nccl_without_the_call_is_too_old) {
  machine.missing_functions = {"ncclAlltoAll"};
  EXPECT_EQ(adopt().error().code, status::nccl_version);
}

TEST_F(local_window, an_exchange_packs_carries_delivers_and_moves) {
  result<peer_group> group = adopt();
  const peer_memory window = made(group);
  EXPECT_TRUE(exchange(window).has_value());
  EXPECT_THAT(machine.done, ElementsAre("pack", "all to all of " + numbers_of_a_parcel(), "deliver", "exchange"));
}

TEST_F(local_window, a_barrier_carries_a_number) {
  result<peer_group> group = adopt();
  const peer_memory window = made(group);
  EXPECT_TRUE(meet(window).has_value());
  EXPECT_THAT(machine.done, ElementsAre("all to all of 1"));
}

TEST_F(local_window, a_call_that_takes_its_time_is_waited_for) {
  result<peer_group> group = adopt();
  const peer_memory window = made(group);
  machine.polls_in_progress = 3;
  EXPECT_TRUE(exchange(window).has_value());
  EXPECT_EQ(machine.polls_in_progress, 0);
  EXPECT_EQ(machine.done.back(), "exchange");
}

TEST_F(local_window, a_failure_of_nccl_breaks_the_group) {
  result<peer_group> group = adopt();
  const peer_memory window = made(group);
  machine.fail_nccl(1, nccl_result::invalid_usage);
  EXPECT_EQ(exchange(window).error().code, status::nccl_failure);
  machine.fail_nccl(0, nccl_result::success);
  EXPECT_THAT(machine.done, ElementsAre("pack"));
  EXPECT_EQ(exchange(window).error().code, status::group_broken);
  EXPECT_EQ(meet(window).error().code, status::group_broken);
  EXPECT_EQ(group->allocate_local(1000, 100).error().code, status::group_broken);
  EXPECT_THAT(machine.done, ElementsAre("pack")) << "nothing more runs";
}

TEST_F(local_window, a_kernel_that_is_not_launched_is_reported) {
  result<peer_group> group = adopt();
  const peer_memory window = made(group);
  for (std::uint64_t n = 1; n <= 3; ++n) {
    machine.fail_cuda(n);
    EXPECT_EQ(exchange(window).error().code, status::cuda_failure) << n;
  }
  machine.fail_cuda(0);
  EXPECT_TRUE(exchange(window).has_value());
}

TEST_F(local_window, a_lost_peer_is_reported_before_anything_runs) {
  result<peer_group> group = adopt();
  const peer_memory window = made(group);
  machine.state = nccl_result::remote_error;
  EXPECT_EQ(exchange(window).error().code, status::peer_lost);
  EXPECT_TRUE(machine.done.empty());
}

TEST_F(local_window, a_failure_to_connect_breaks_the_group_and_keeps_what_nccl_may_use) {
  result<peer_group> group = adopt();
  machine.fail_nccl(3, nccl_result::remote_error);  // two gathers come before
  EXPECT_EQ(group->allocate_local(1000, 100).error().code, status::peer_lost);
  EXPECT_EQ(group->check().error().code, status::group_broken);
  EXPECT_EQ(machine.memory.size(), 2u) << "the numbers of the communicator, and the window";
}

TEST_F(local_window, an_own_communicator_ends_with_the_window) {
  peer_memory window;
  {
    result<peer_group> group = create();
    window = made(group);
  }
  EXPECT_EQ(machine.communicators.size(), 1u);
  EXPECT_TRUE(exchange(window).has_value());
  window = peer_memory{};
  EXPECT_TRUE(machine.is_clean());
  EXPECT_EQ(machine.done.back(), "abort");
}

TEST_F(local_window, each_failure_of_cuda_is_reported_and_leaves_no_memory) {
  std::uint64_t failures = 0;
  for (std::uint64_t n = 1;; ++n) {
    SCOPED_TRACE(n);
    fake_peers fresh;
    fresh.fail_cuda(n);
    bool is_reported = false, is_broken = false;
    {
      result<peer_group> group = create();
      const result<peer_memory> window = group ? group->allocate_local(1000, 100) : failure{group.error()};
      is_reported = !window;
      is_broken = group && !group->check();
    }
    failures += is_reported ? 1 : 0;
    EXPECT_TRUE(fresh.communicators.empty());
    if (is_reported && !is_broken) {
      EXPECT_TRUE(fresh.memory.empty());
    }
    if (fresh.cuda_calls() < n) break;
  }
  EXPECT_GE(failures, 15u);
}

TEST_F(local_window, each_failure_of_nccl_is_reported_and_leaves_no_communicator) {
  std::uint64_t failures = 0;
  for (std::uint64_t n = 1;; ++n) {
    SCOPED_TRACE(n);
    fake_peers fresh;
    fresh.fail_nccl(n, nccl_result::invalid_usage);
    bool is_reported = false;
    {
      result<peer_group> group = create();
      const result<peer_memory> window = group ? group->allocate_local(1000, 100) : failure{group.error()};
      is_reported = !window;
    }
    failures += is_reported ? 1 : 0;
    if (is_reported) {
      EXPECT_TRUE(fresh.communicators.empty());
    }
    if (fresh.nccl_calls() < n) break;
  }
  EXPECT_GE(failures, 8u);
}

TEST_F(local_window, nothing_is_called_in_a_forked_child) {
  result<peer_group> group = create();
  {
    const peer_memory window = made(group);
    const std::uint64_t before = machine.nccl_calls() + machine.cuda_calls();
    ++machine.process;
    EXPECT_EQ(exchange(window).error().code, status::forked);
    EXPECT_EQ(meet(window).error().code, status::forked);
    { const peer_group ended = std::move(*group); }
    EXPECT_EQ(machine.nccl_calls() + machine.cuda_calls(), before);
  }
  EXPECT_EQ(machine.memory.size(), 2u) << "the numbers of the communicator, and the window";
  --machine.process;
}

/// Expects that a call refuses the window because it needs an address on another rank.
template <class T>
void expect_out_of_reach(const result<T>& answer) {
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, status::no_peer_access) << to_string(answer.error());
  EXPECT_EQ(answer.error().argument.view(), "window");
  EXPECT_NE(to_string(answer.error()).find("needs one of `allocate`"), std::string::npos) << to_string(answer.error());
}

TEST_F(local_window, calls_that_need_an_address_of_a_peer_refuse_it) {
  result<peer_group> group = adopt();
  const peer_memory window = made(group);
  const cuda::stream_ref stream{cudaStream_t{}};
  expect_out_of_reach(self_test_async(window, stream));
  expect_out_of_reach(peer::abort_group(window, fake_peers::calls()));
  expect_out_of_reach(expert_parallel::dispatch_async(window, {}, {stream}));
  expect_out_of_reach(expert_parallel::combine_async(window, {}, {stream}));
  expect_out_of_reach(all_ranks_spec({}, window));
}

TEST_F(local_window, exchanges_check_their_arguments_as_with_any_window) {
  result<peer_group> group = adopt();
  const peer_memory window = made(group);
  const cuda::stream_ref stream{cudaStream_t{}};
  expect_refused(exchange_rows_async(window, {}, {stream}), "problem.row_bytes");
  expect_refused(await_pulls_async(window, stream, milliseconds{0}), "patience");
  expect_refused(barrier_async(window, stream, milliseconds{0}), "patience");
  EXPECT_TRUE(machine.done.empty());
}

}  // namespace
}  // namespace tmap::testing
