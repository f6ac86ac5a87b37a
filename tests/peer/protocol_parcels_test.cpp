// SPDX-License-Identifier: Apache-2.0
// Runs exchanges by parcels over the model, with an all-to-all made of its loads and stores. What
// comes is checked as in exchanges that pull, which the same cases also run as.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "peer/exchange_case.hpp"
#include "peer/explored.hpp"
#include "peer/parcel_link.hpp"
#include "support/run_seed.hpp"

namespace tmap::testing {
namespace {

using word_parcels = parcel_link<faulty_link>;
using byte_parcels = parcel_link<byte_link<>>;

TEST(protocol_parcels, replays_with_other_sizes_hold) {
  exchange_case drawn = three_ranks();
  expect_at_random(exchange_program<word_parcels>(drawn), 50);
  drawn.placed = row_placement::group_major;
  drawn.blocks = 2;
  expect_at_random(exchange_program<word_parcels>(drawn), 50);
}

TEST(protocol_parcels, random_rows_hold_as_they_do_when_they_are_pulled) {
  auto random = run_random(31);
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  for (int i = 0; i < 60; ++i) {
    const auto salt = static_cast<std::uint32_t>(random());
    exchange_case drawn;
    drawn.ranks = 1 + below(4);
    drawn.groups = 1 + below(3);
    drawn.blocks = 1 + below(2);
    drawn.calls = 2;
    drawn.stages = 1 + below(6);
    drawn.placed = below(2) == 0 ? row_placement::rank_major : row_placement::group_major;
    drawn.row_bytes = below(2) == 0 ? 1 + below(40) : 16 * (1 + below(2));
    drawn.staging_bytes = 16 * (3 + below(5));  // cuts rows, or holds several
    drawn.sent_rows = drawn.capacity = 32;
    drawn.rows_skew = below(17);
    drawn.out_skew = below(17);
    drawn.rows_gap = below(2) * below(33);
    drawn.out_gap = below(2) * below(33);
    drawn.pair_bytes = 2 * drawn.groups * drawn.row_bytes;
    drawn.rows = [salt](std::uint32_t call, std::uint32_t from, std::uint32_t to, std::uint32_t group) {
      return static_cast<std::uint32_t>(ranks::mix(ranks::mix(salt, call * 64 + from), to * 64 + group) >> 40) % 3;
    };
    expect_at_random(exchange_program<byte_parcels>(drawn), 2);
    expect_at_random(exchange_program<byte_link<>>(drawn), 1);
  }
}

/// Two rows for each pair fit its parcel, and three do not.
exchange_case full_parcels() {
  exchange_case full = three_ranks();
  full.groups = 1;
  full.row_bytes = 16;
  full.pair_bytes = 47;
  full.rows = [](std::uint32_t, std::uint32_t from, std::uint32_t to, std::uint32_t) { return from == to ? 5u : 2u; };
  return full;
}

/// Fails if a row comes to its place.
struct delivers_nothing : word_parcels {
  using word_parcels::word_parcels;
  void get(std::uint32_t, std::uint32_t, std::uint64_t, std::uint32_t, std::uint32_t) { expect(false, "no row moves"); }
};

TEST(protocol_parcels, a_parcel_limits_what_one_rank_sends_another_and_not_itself) {
  exchange_case full = full_parcels();
  expect_at_random(exchange_program<word_parcels>(full), 20);
  full.rows = [](std::uint32_t, std::uint32_t from, std::uint32_t to, std::uint32_t) {
    return from == 2 && to != 2 ? 1u + to * 2 : 2u;
  };
  expect_at_random(exchange_program<delivers_nothing>(full, all_calls(peer_status::overflow, 1)), 20);
  full.rows = [](std::uint32_t, std::uint32_t from, std::uint32_t to, std::uint32_t) {
    return from != to && to != 1 ? 3u : 2u;
  };
  expect_at_random(exchange_program<delivers_nothing>(full, all_calls(peer_status::overflow, 0)), 20);
}

TEST(protocol_parcels, a_rank_that_would_get_too_many_rows_is_named_to_all) {
  exchange_case full = three_ranks();
  full.capacity = 2;
  full.rows = [](std::uint32_t, std::uint32_t, std::uint32_t to, std::uint32_t group) {
    return to == 1 && group == 0 ? 1u : 0u;
  };
  expect_at_random(exchange_program<delivers_nothing>(full, all_calls(peer_status::overflow, 1)), 20);
}

TEST(protocol_parcels, a_rank_that_would_send_rows_it_lacks_is_named_to_all) {
  exchange_case lacking = three_ranks();
  lacking.sent_rows = 5;
  lacking.rows = [](std::uint32_t, std::uint32_t from, std::uint32_t, std::uint32_t) { return from == 1 ? 1u : 0u; };
  expect_at_random(exchange_program<delivers_nothing>(lacking, all_calls(peer_status::bad_counts, 1)), 20);
  lacking.rows = [](std::uint32_t, std::uint32_t from, std::uint32_t, std::uint32_t) {
    return from == 1 ? ~0u : 0u;  // sums of 32 bits would wrap around
  };
  expect_at_random(exchange_program<delivers_nothing>(lacking, all_calls(peer_status::bad_counts, 1)), 20);
}

TEST(protocol_parcels, rows_that_will_be_refused_are_neither_read_nor_packed) {
  exchange_case full = full_parcels();
  full.rows = [](std::uint32_t, std::uint32_t, std::uint32_t to, std::uint32_t) { return to == 2 ? 5u : 0u; };
  expect_at_random(exchange_program<parcel_link<bounded<47>>>(full, all_calls(peer_status::overflow, 2)), 20);
  full.rows = [](std::uint32_t, std::uint32_t, std::uint32_t to, std::uint32_t) { return to == 0 ? 100'000u : 1u; };
  expect_at_random(exchange_program<parcel_link<bounded<47>>>(full, all_calls(peer_status::bad_counts, 0)), 20);
}

TEST(protocol_parcels, an_exchange_that_was_refused_leaves_the_group_whole) {
  exchange_case some = full_parcels();
  some.rows = [](std::uint32_t call, std::uint32_t from, std::uint32_t to, std::uint32_t) {
    return from == to ? 0u : call == 1 ? 3u : 1u;
  };
  const auto check = [](const verdict_lists& verdicts) -> std::string {
    for (const auto& of_rank : verdicts) {
      if (of_rank.at(0).status != peer_status::ok || of_rank.at(2).status != peer_status::ok) return "a call failed";
      if (of_rank.at(1).status != peer_status::overflow) return "too many rows went";
    }
    return {};
  };
  expect_at_random(exchange_program<word_parcels>(some, check), 20);
}

TEST(protocol_parcels, every_rank_sees_that_another_makes_another_call) {
  exchange_case odd = three_ranks();
  odd.calls = 2;
  odd.odd_rank = 1;
  const auto all_fatal = [](const verdict_lists& verdicts) -> std::string {
    for (std::uint32_t rank = 0; rank < verdicts.size(); ++rank) {
      const peer_verdict first = verdicts[rank].at(0);
      if (first.status != peer_status::mismatch) return "a rank saw no mismatch";
      if ((rank == 1) == (first.peer == 1)) return "a rank blames the wrong one";
      if (verdicts[rank].at(1).status != peer_status::broken) return "a call after the end went on";
    }
    return {};
  };
  expect_at_random(exchange_program<delivers_nothing>(odd, all_fatal), 20);
}

TEST(protocol_parcels, counters_wrap_around) {
  ranks::program late = exchange_program<word_parcels>(three_ranks());
  for (std::uint32_t rank = 0; rank < late.ranks; ++rank) {
    late.initial.push_back({rank, offsetof(window_header, exchanges), ~0u - 1});
    for (std::uint32_t peer = 0; peer < late.ranks; ++peer) {
      late.initial.push_back({rank, word_at(offsetof(window_header, credited), peer), ~0u - 1});
    }
  }
  expect_at_random(late, 20);
}

TEST(protocol_parcels, memory_after_the_window_is_laid_out_without_overlap) {
  for (std::uint32_t ranks = 1; ranks <= max_group_ranks; ++ranks) {
    const parcel_layout at = kernels::peer::layout_of(ranks, 1001, 77);
    EXPECT_GE(at.lacking, peer_header_bytes + 1001);
    EXPECT_GE(at.image, at.lacking + 4);
    EXPECT_EQ(at.inbox, at.image + peer_header_bytes);
    EXPECT_EQ(at.outbox, at.parcel_from(ranks));
    EXPECT_EQ(end_of(at, ranks), at.outbox + ranks * at.parcel_bytes());
    EXPECT_GE(at.slot_bytes,
              kernels::peer::slot_bytes(ranks) + kernels::peer::count_bytes(kernels::peer::most_groups(ranks)));
    EXPECT_GE(at.parcel_bytes(), at.slot_bytes + 77);
    EXPECT_EQ((at.lacking | at.image | at.inbox | at.outbox | at.parcel_bytes() | at.slot_bytes) % 16, 0u);
  }
}

// Seeded faults.

template <class Link>
void expect_parcels_seen(const exchange_case& given, const std::string& why) {
  expect_failure_at_random(exchange_program<Link>(given), why);
}

TEST(protocol_parcels_faults, none_is_seen_without_a_fault) {
  expect_at_random(exchange_program<word_parcels>(two_calls()), 100);
}
TEST(protocol_parcels_faults, a_parcel_of_another_rank_is_seen) {
  exchange_case three = two_calls();
  three.ranks = 3;
  expect_parcels_seen<swapped_parcels<>>(three, "");
}
TEST(protocol_parcels_faults, a_missing_settle_is_seen) {
  expect_parcels_seen<parcel_link<without_settle>>(two_calls(), "the row is right");
}
TEST(protocol_parcels_faults, a_missing_wait_for_gets_is_seen) {
  expect_parcels_seen<parcel_link<without_wait_gets>>(two_calls(), "the row is right");
}
TEST(protocol_parcels_faults, a_place_off_by_one_row_is_seen) {
  expect_parcels_seen<parcel_link<off_by_one_row>>(two_calls(), "the row is right");
}
TEST(protocol_parcels_faults, rows_left_out_unseen_are_seen) {
  exchange_case full = two_calls();
  full.pair_bytes = 16;
  expect_parcels_seen<parcel_link<unchecked_room>>(full, "the row is right");
}

}  // namespace
}  // namespace tmap::testing
