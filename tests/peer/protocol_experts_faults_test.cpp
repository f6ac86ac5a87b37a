// SPDX-License-Identifier: Apache-2.0
// Runs dispatches and combines over the model with a fault each that it must see. Each is one rule
// of the protocol that a link breaks (faulty_links.hpp).
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "peer/experts_case.hpp"
#include "peer/experts_examples.hpp"
#include "peer/explored.hpp"
#include "peer/faulty_links.hpp"

namespace tmap::testing {
namespace {

template <class Link>
void expect_dispatch_fault(const experts_case& given, const std::string& why) {
  for_both_ways(given, [&](const experts_case& each) { expect_failure_at_random(experts_program<Link>(each), why); });
}

/// Two blocks, so that what one of them fetched is read by another thread.
experts_case two_blocks() {
  experts_case shared = crossing();
  shared.blocks = 2;
  shared.tokens = 3;
  shared.stages = 1;
  shared.entries = 1;
  return shared;
}

using combines_without_the_others = without_waiting_for<offsetof(window_header, barrier_raised)>;
TEST(protocol_experts_faults, results_stored_before_all_ranks_have_begun_are_seen) {
  experts_case several = crossing();
  several.tokens = 2;
  several.chosen = [](std::uint32_t, std::uint32_t from, std::uint32_t token, std::uint32_t j) {
    return token == 0 ? -1 : static_cast<std::int32_t>((1 - from) * 2 + j);  // nothing comes for the first
  };
  expect_failure_at_random(experts_program<combines_without_the_others>(several), "row is right");
}
/// Does not wait for words after the header, as the counters of sums are.
struct sums_before_they_came : faulty_link {
  using faulty_link::faulty_link;
  [[nodiscard]] bool wait(std::uint64_t signal, std::uint32_t value, std::uint64_t deadline,
                          std::uint64_t unless = no_word) {
    return signal >= peer_header_bytes || faulty_link::wait(signal, value, deadline, unless);
  }
};
TEST(protocol_experts_faults, sums_read_before_they_came_are_seen) {
  expect_failure_at_random(experts_program<sums_before_they_came>(crossing()), "the sum is right");
}
/// Counts the units of sums as if there had been no fence.
struct sums_without_release : faulty_link {
  using faulty_link::faulty_link;
  void raise_released_at(std::uint64_t address, std::uint32_t by) {
    machine_->reduce(thread_, at(rank_of_address(address), offset_of_address(address)), by, ranks::announced::nothing);
  }
};
TEST(protocol_experts_faults, sums_announced_without_a_fence_are_seen) {
  expect_failure_at_random(experts_program<sums_without_release>(crossing()), "the sum is right");
}
/// Does not keep how many units had come to the place of a sum before.
struct counts_not_kept : faulty_link {
  using faulty_link::faulty_link;
  static inline kernels::peer::expert_arrays at{};
  void store(std::uint32_t to, std::uint64_t offset, std::uint32_t value) {
    const std::uint64_t after = offset - at.returned, pitch = at.place.pitch();
    const bool is_place = offset >= at.returned && after < at.tokens * ranks() * pitch;
    if (!is_place || after % pitch != at.place.count_before()) faulty_link::store(to, offset, value);
  }
};
TEST(protocol_experts_faults, sums_of_the_call_before_are_seen) {
  experts_case twice = crossing();
  twice.calls = 2;
  counts_not_kept::at = expert_windows(twice).at;
  expect_failure_at_random(experts_program<counts_not_kept>(twice), "the sum is right");
}
/// Ends the combine as if this block were the last.
struct ends_with_the_first_block : faulty_link {
  using faulty_link::faulty_link;
  std::uint32_t count_here(std::uint64_t) { return 1; }
};
TEST(protocol_experts_faults, a_combine_that_ends_before_all_its_blocks_is_seen) {
  expect_failure_at_random(experts_program<ends_with_the_first_block>(two_blocks()), "");
}
TEST(protocol_experts_faults, a_missing_flush_is_seen) {
  expect_failure_at_random(experts_program<without_flush>(two_blocks()), "right");
}
TEST(protocol_experts_faults, a_missing_credit_is_seen) {
  // The barrier of a combine would stand in for credits.
  experts_case alone = crossing();
  alone.combines_never = true;
  for_both_ways(alone, [](const experts_case& each) {
    expect_failure_at_random(experts_program<without_credit>(each, all_calls_ok(2)), "");
  });
}
TEST(protocol_experts_faults, a_stale_epoch_is_seen) {
  expect_dispatch_fault<epoch_not_raised<offsetof(window_header, exchanges)>>(crossing(), "");
}
TEST(protocol_experts_faults, a_missing_wait_for_gets_is_seen) {
  expect_failure_at_random(experts_program<without_wait_gets>(crossing()), "");
}
TEST(protocol_experts_faults, a_missing_proxy_fence_is_seen) {
  expect_failure_at_random(experts_program<without_proxy_fence>(crossing()), "");
}
TEST(protocol_experts_faults, counts_read_before_the_wait_are_seen) {
  expect_dispatch_fault<counts_before_the_wait>(crossing(), "");
}
TEST(protocol_experts_faults, swapped_ranks_are_seen) {
  expect_failure_at_random(experts_program<swapped_ranks>(two_ranks()), "");
}

/// Threads of a block that read rows where they lie, after one of them has waited.
experts_case three_threads() {
  experts_case few = crossing();
  few.threads = 3;
  return few;
}
TEST(protocol_experts_faults, a_missing_barrier_of_the_first_block_is_seen) {
  experts_case few = three_threads();
  few.rows = 1;  // that is enough, but not for experts that the block does not know yet
  few.chosen = [](std::uint32_t, std::uint32_t from, std::uint32_t, std::uint32_t j) {
    return j == 0 ? static_cast<std::int32_t>((1 - from) * 2) : -1;
  };
  expect_at_random(experts_program(few), 50);
  expect_failure_at_random(experts_program<without_sync>(few), "a call ended");
}
TEST(protocol_experts_faults, threads_of_the_first_block_that_do_not_meet_are_seen) {
  expect_failure_at_random(experts_program<without_sync_or>(three_threads()), "");
}
TEST(protocol_experts_faults, a_missing_barrier_of_another_block_is_seen) {
  experts_case few = crossing();
  few.threads = 2;
  few.fetching_threads = 3;
  expect_failure_at_random(experts_program<without_sync>(few), "");
}
/// Announces a word to another rank, which reads it. One thread hears both slots at once.
template <class Link>
void read_what_is_announced(ranks::model_link& sound) {
  Link link(sound);
  const std::uint32_t me = link.rank(), other = 1 - me;
  exchange_request request{};
  request.block = request.blocks = 1;
  link.store(me, peer_header_bytes, 77 + me);
  request.rows = peer_header_bytes;
  exchange_request announced = request;
  announced.block = 0;
  const peer_verdict sent = kernels::peer::announce(link, announced, 1, experts_deadline);
  const peer_verdict heard = kernels::peer::hear(link, request, 1, experts_deadline);
  link.expect(sent.status == peer_status::ok && heard.status == peer_status::ok, "both ranks come");
  link.expect(link.load(other, peer_header_bytes) == 77 + other, "the word is right");
}
template <class Link>
ranks::program announced_words() {
  ranks::program made;
  for (std::uint32_t rank = 0; rank < 2; ++rank) made.threads.push_back({rank, rank, read_what_is_announced<Link>});
  return made;
}
TEST(protocol_experts_faults, packets_of_which_the_first_alone_is_acquired_are_seen) {
  expect_at_random(announced_words<ranks::model_link>(), 200);
  expect_failure_at_random(announced_words<acquires_the_first_packet>(), "the word is right");
}
/// Records that other blocks pull, and not those that come as packets.
TEST(protocol_experts_faults, records_announced_before_they_are_written_are_seen) {
  experts_case pulled = three_threads();
  pulled.pulls_all = true;
  expect_failure_at_random(experts_program<without_waiting_for<offsetof(window_header, workers_raised)>>(pulled), "");
}
TEST(protocol_experts_faults, a_fault_of_a_rank_with_few_tokens_is_seen_next_to_one_with_many) {
  experts_case mixed = three_threads();
  mixed.odd_ranks_have_many = true;
  expect_failure_at_random(experts_program<wait_relaxed>(mixed), "");
}
TEST(protocol_experts_faults, records_taken_before_they_came_are_seen) {
  expect_failure_at_random(experts_program<any_packets>(three_threads()), "");
}
TEST(protocol_experts_faults, records_for_another_rank_are_seen) {
  expect_failure_at_random(experts_program<packets_for_the_next_rank>(three_threads()), "");
}
TEST(protocol_experts_faults, rows_read_after_a_relaxed_wait_are_seen) {
  expect_failure_at_random(experts_program<wait_relaxed>(three_threads()), "");
}

/// Loads from the wrong peer.
struct swapped_loads : faulty_link {
  using faulty_link::faulty_link;
  std::uint32_t load(std::uint32_t from, std::uint64_t offset) {
    return faulty_link::load(from == rank() ? from : (from + 1) % ranks(), offset);
  }
};
TEST(protocol_experts_faults, swapped_ranks_of_loads_are_seen) {
  experts_case few = two_ranks();
  few.threads = 3;
  few.pulls_all = true;
  expect_failure_at_random(experts_program<swapped_loads>(few), "");
}

// Faults between the block that prepares few tokens, and those that fetch their rows.

TEST(protocol_experts_faults, rows_of_few_tokens_from_another_rank_are_seen) {
  expect_failure_at_random(experts_program<swapped_ranks>(three_threads()), "right");
}
using without_workers = without_waiting_for<offsetof(window_header, workers_raised)>;
TEST(protocol_experts_faults, a_dispatch_that_ends_before_its_rows_came_is_seen) {
  expect_failure_at_random(experts_program<without_workers>(three_threads()), "right");
}
TEST(protocol_experts_faults, a_dispatch_in_vain_that_ends_before_all_blocks_have_read_the_epoch_is_seen) {
  experts_case full = too_many_tokens();
  full.threads = 2;
  expect_at_random(experts_program(full, expect_one_overflow), 50);
  expect_failure_at_random(experts_program<without_workers>(full, expect_one_overflow), "");
}
/// Blocks pull records. So each waits until all have been taken.
experts_case pulled_by_two_blocks() {
  experts_case pulled = two_blocks();
  pulled.threads = 2;
  pulled.pulls_all = true;
  return pulled;
}
using without_records = without_waiting_for<offsetof(window_header, records_raised)>;
TEST(protocol_experts_faults, experts_read_before_all_blocks_have_taken_records_are_seen) {
  expect_failure_at_random(experts_program<without_records>(pulled_by_two_blocks()), "");
}
TEST(protocol_experts_faults, taken_records_that_are_not_counted_are_seen) {
  experts_case changing = pulled_by_two_blocks();
  changing.calls = 2;
  changing.chosen = random_choices(5, 4);  // the records are not those of the call before
  expect_failure_at_random(experts_program<epoch_not_raised<offsetof(window_header, records_expected)>>(changing), "");
}
TEST(protocol_experts_faults, rows_put_before_their_places_are_known_are_seen) {
  experts_case few = crossing();
  few.threads = few.fetching_threads = 2;  // one sorts, and another one fetches
  expect_failure_at_random(experts_program<without_sync_or>(few), "");
}
TEST(protocol_experts_faults, blocks_that_signal_without_a_release_are_seen) {
  expect_failure_at_random(experts_program<raise_relaxed>(pulled_by_two_blocks()), "");
}
TEST(protocol_experts_faults, a_missing_proxy_fence_between_blocks_is_seen) {
  expect_failure_at_random(experts_program<without_proxy_fence>(three_threads()), "");
}
TEST(protocol_experts_faults, a_missing_wait_for_gets_of_records_is_seen) {
  expect_failure_at_random(experts_program<without_wait_gets>(three_threads()), "");
}
TEST(protocol_experts_faults, a_missing_settle_of_rows_is_seen) {
  expect_failure_at_random(experts_program<without_settle>(three_threads()), "");
}

TEST(protocol_experts_faults, an_unchecked_capacity_is_seen) {
  experts_case full = crossing();
  full.rows = 1;
  expect_dispatch_fault<unchecked_room>(full, "right");
}

/// Puts rows one place too far.
struct off_by_one_place : faulty_link {
  using faulty_link::faulty_link;
  std::uint32_t load_shared(std::uint32_t offset) { return faulty_link::load_shared(offset) + 1; }
};
TEST(protocol_experts_faults, a_place_off_by_one_is_seen) {
  expect_failure_at_random(experts_program<off_by_one_place>(crossing()), "the row is right");
}

}  // namespace
}  // namespace tmap::testing
