// SPDX-License-Identifier: Apache-2.0
// Runs single calls of tmap/device/peer.cuh that wait for a rank that never comes. Each ends by its
// deadline and names the rank, and the context lives.
#include <tmap/peer_exchange.hpp>

#include <memory>
#include <vector>

#include "peer/operations_kernels.hpp"
#include "peer/ranks_on_gpus.hpp"

namespace tmap::testing::operations {
namespace {

using std::chrono::nanoseconds;

constexpr std::uint64_t lone_bytes = 64 << 10;
constexpr std::uint64_t signal_at = 0, other_signal_at = 4, piece_at = 4096;
constexpr std::uint32_t not_put = 0x5a5a5a5a;
constexpr nanoseconds brief = milliseconds{200};
constexpr nanoseconds slack = milliseconds{1500};  // a deadline may be missed by so much
constexpr nanoseconds forever = milliseconds{60'000};

class lone_calls : public ranks_on_gpus {
 protected:
  lone_calls() : ranks_on_gpus(lone_bytes) {}

  void SetUp() override {
    ranks_on_gpus::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      upload(rank, 0, words(piece_at / 4));
      upload(rank, piece_at, words((lone_bytes - piece_at) / 4, not_put));
      results_.push_back(std::make_unique<device_array<lone_result>>(1));
      TMAP_ASSERT_CUDA(load_turns());
      TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    }
  }
  void TearDown() override {
    results_.clear();
    ranks_on_gpus::TearDown();
  }

  void start(std::uint32_t rank, const lone_request& request) const {
    const rank_on_gpu& at = on(rank);
    EXPECT_EQ(cudaMemsetAsync(results_[rank]->data(), 0, sizeof(lone_result), at.stream->get()), cudaSuccess);
    EXPECT_EQ(launch_call(at.window.ref(), request, results_[rank]->data(), at.stream->get()), cudaSuccess);
  }
  lone_result end(std::uint32_t rank) const {
    const rank_on_gpu& at = on(rank);
    lone_result found{};
    EXPECT_EQ(cudaStreamSynchronize(at.stream->get()), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(&found, results_[rank]->data(), sizeof(found), cudaMemcpyDeviceToHost, at.stream->get()),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(at.stream->get()), cudaSuccess);
    EXPECT_EQ(found.is_done, 1u);
    return found;
  }
  lone_result call(std::uint32_t rank, const lone_request& request) const {
    start(rank, request);
    return end(rank);
  }

  static lone_request waiting(std::uint32_t value, nanoseconds time, std::uint64_t signal = signal_at) {
    return {lone_call::wait, 0, signal, value, static_cast<std::uint64_t>(time.count())};
  }
  static lone_request raising(std::uint32_t peer, std::uint32_t by, std::uint64_t signal = signal_at) {
    return {lone_call::raise, peer, signal, by, 0};
  }
  static lone_request named(lone_call call, std::uint32_t peer, nanoseconds time, std::uint32_t value = 0) {
    return {call, peer, piece_at, value, static_cast<std::uint64_t>(time.count())};
  }

  static void expect_waited(const lone_result& found, nanoseconds time) {
    EXPECT_GE(found.waited, static_cast<std::uint64_t>(time.count()));
    EXPECT_LT(found.waited, static_cast<std::uint64_t>((time + slack).count()));
  }
  static void expect_at_once(const lone_result& found) {
    EXPECT_LT(found.waited, static_cast<std::uint64_t>(brief.count()));
  }
  /// Expects that a call ended with this verdict, and that the window keeps it.
  static void expect_verdict(const lone_result& found, const peer_verdict& wanted) {
    for (const peer_verdict& each : {found.verdict, found.last}) {
      EXPECT_EQ(each.status, wanted.status);
      EXPECT_EQ(each.peer, wanted.peer);
      EXPECT_EQ(each.step, wanted.step);
    }
  }
  /// Expects words of a put at a rank, and no other ones.
  void expect_piece(std::uint32_t rank, std::uint32_t value) const {
    words expected((lone_bytes - piece_at) / 4, not_put);
    for (std::uint32_t i = 0; i < lone_words; ++i) expected[i] = value;
    EXPECT_TRUE(download(rank, piece_at, expected.size()) == expected) << "rank " << rank;
  }
  /// Runs other kernels of all ranks, which announce signals by their addresses.
  void expect_lives() const {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      const std::uint32_t next = (rank + 1) % count();
      call(rank, {lone_call::raise_address, next, other_signal_at, 1, 0});
      call(rank, {lone_call::raise_released_address, next, other_signal_at, 2, 0});
    }
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      EXPECT_EQ(call(rank, {lone_call::wait_address, 0, other_signal_at, 3, 0}).has_come, 1u);
      EXPECT_EQ(call(rank, {lone_call::wait_address, 0, other_signal_at, 4, 1000}).has_come, 0u);
      EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    }
  }

  std::vector<std::unique_ptr<device_array<lone_result>>> results_;
};

TEST_P(lone_calls, a_wait_for_a_signal_that_nobody_raises_ends_and_the_group_goes_on) {
  constexpr nanoseconds time = milliseconds{1000};
  start(0, waiting(1, time));
  EXPECT_EQ(call(1, waiting(0, brief)).has_come, 1u);
  EXPECT_EQ(cudaStreamQuery(on(0).stream->get()), cudaErrorNotReady) << "other work went on meanwhile";
  static_cast<void>(cudaGetLastError());
  const lone_result in_vain = end(0);
  EXPECT_EQ(in_vain.has_come, 0u);
  expect_waited(in_vain, time);
  start(0, waiting(1, patience));
  call(1, raising(0, 1));
  EXPECT_EQ(end(0).has_come, 1u);
  for (std::uint32_t rank = 0; rank < count(); ++rank) start(rank, named(lone_call::barrier, 0, patience));
  for (std::uint32_t rank = 0; rank < count(); ++rank) expect_verdict(end(rank), {});
  expect_lives();
}

TEST_P(lone_calls, a_wait_with_deadline_0_looks_and_returns) {
  const lone_result before = call(0, waiting(1, nanoseconds{0}));
  EXPECT_EQ(before.has_come, 0u);
  expect_at_once(before);
  call(1, raising(0, 1));
  EXPECT_EQ(call(0, waiting(1, nanoseconds{0})).has_come, 1u);
}

TEST_P(lone_calls, raises_of_all_ranks_add_up_and_later_values_are_seen) {
  for (std::uint32_t rank = 0; rank < count(); ++rank) start(rank, raising(0, rank + 2));
  for (std::uint32_t rank = 0; rank < count(); ++rank) end(rank);
  const std::uint32_t sum = count() * (count() + 3) / 2;
  for (std::uint32_t value = 1; value <= sum; ++value) {
    EXPECT_EQ(call(0, waiting(value, nanoseconds{0})).has_come, 1u) << value;
  }
  EXPECT_EQ(call(0, waiting(sum + 1, nanoseconds{0})).has_come, 0u);
  EXPECT_EQ(download(0, signal_at, 1).front(), sum);
  for (std::uint32_t rank = 1; rank < count(); ++rank) EXPECT_EQ(download(rank, signal_at, 1).front(), 0u);
}

TEST_P(lone_calls, a_wait_ends_once_the_group_is_broken) {
  start(0, waiting(1, forever));
  TMAP_ASSERT_OK(abort_group(on(1).window));
  const lone_result found = end(0);
  EXPECT_EQ(found.has_come, 0u);
  EXPECT_LT(found.waited, static_cast<std::uint64_t>(nanoseconds{milliseconds{10'000}}.count()));
  expect_lives();
}

TEST_P(lone_calls, a_barrier_without_a_rank_names_it_and_the_context_lives) {
  const std::uint32_t late = count() - 1;
  bool is_named = false;
  for (std::uint32_t rank = 0; rank < late; ++rank) start(rank, named(lone_call::barrier, 0, brief));
  for (std::uint32_t rank = 0; rank < late; ++rank) {
    const lone_result found = end(rank);
    EXPECT_LT(found.waited, static_cast<std::uint64_t>((brief + slack).count()));
    if (found.verdict.status == peer_status::timeout) {
      is_named = true;
      expect_waited(found, brief);
      expect_verdict(found, {peer_status::timeout, late, protocol_step::barrier});
    } else {
      expect_verdict(found, {peer_status::broken});
    }
  }
  EXPECT_TRUE(is_named);
  const lone_result at_last = call(late, named(lone_call::barrier, 0, forever));
  expect_verdict(at_last, {peer_status::broken});
  expect_at_once(at_last);
  expect_lives();
}

TEST_P(lone_calls, a_piece_that_nobody_sends_is_waited_for_until_the_deadline) {
  const lone_result found = call(0, named(lone_call::take, 1, brief));
  expect_waited(found, brief);
  expect_verdict(found, {peer_status::timeout, 1, protocol_step::take_put});
  const lone_result too_late = call(1, named(lone_call::put, 0, forever, 7));
  expect_at_once(too_late);
  expect_verdict(too_late, {peer_status::broken});
  expect_piece(0, not_put);
  expect_lives();
}

TEST_P(lone_calls, a_piece_is_not_overwritten_before_it_is_returned) {
  expect_verdict(call(0, named(lone_call::put, 1, patience, 7)), {});
  expect_verdict(call(1, named(lone_call::take, 0, patience)), {});
  call(1, named(lone_call::give_back, 0, nanoseconds{0}));
  expect_verdict(call(0, named(lone_call::put, 1, patience, 8)), {});
  expect_verdict(call(1, named(lone_call::take, 0, patience)), {});
  const lone_result found = call(0, named(lone_call::put, 1, brief, 9));
  expect_waited(found, brief);
  expect_verdict(found, {peer_status::timeout, 1, protocol_step::put});
  expect_piece(1, 8);
  expect_piece(0, not_put);
  expect_lives();
}

INSTANTIATE_TEST_SUITE_P(two_virtual_ranks, lone_calls, ::testing::Values(virtual_ranks(2)));
INSTANTIATE_TEST_SUITE_P(four_virtual_ranks, lone_calls, ::testing::Values(virtual_ranks(4)));
INSTANTIATE_TEST_SUITE_P(two_gpus, lone_calls, ::testing::Values(ranks_of_process({0, 1})));
INSTANTIATE_TEST_SUITE_P(two_ranks_over_nccl, lone_calls, ::testing::Values(ranks_over_nccl({0, 0})));
INSTANTIATE_TEST_SUITE_P(two_gpus_over_nccl, lone_calls, ::testing::Values(ranks_over_nccl({0, 1})));

}  // namespace
}  // namespace tmap::testing::operations
