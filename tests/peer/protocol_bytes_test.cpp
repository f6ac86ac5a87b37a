// SPDX-License-Identifier: Apache-2.0
// Runs exchanges of rows that bulk copies alone cannot move over the model, byte by byte: random
// executions, and with a fault each that the model must see.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "peer/byte_link.hpp"
#include "peer/exchange_case.hpp"
#include "peer/explored.hpp"
#include "support/run_seed.hpp"

namespace tmap::testing {
namespace {

/// Two calls whose rows lie at other skews on each rank.
exchange_case bytes_of_two_ranks() {
  exchange_case made;
  made.calls = 2;
  made.row_bytes = 5;
  made.staging_bytes = 48;
  made.rows_skew = 3;
  made.out_skew = 6;
  made.rows = [](std::uint32_t call, std::uint32_t from, std::uint32_t to, std::uint32_t) {
    return from == to ? 0u : 2 + call;
  };
  return made;
}

exchange_case with_gaps() {
  exchange_case made = bytes_of_two_ranks();
  made.rows_gap = 4;
  made.out_gap = 2;
  return made;
}

TEST(protocol_bytes, rows_of_bytes_hold) {
  expect_at_random(exchange_program<byte_link<>>(bytes_of_two_ranks()), 100);
  expect_at_random(exchange_program<byte_link<>>(with_gaps()), 100);
}

TEST(protocol_bytes, blocks_that_store_neighbouring_rows_hold) {
  exchange_case shared = with_gaps();
  shared.blocks = 2;
  expect_at_random(exchange_program<byte_link<>>(shared), 50);
  shared.rows_gap = shared.out_gap = 0;
  shared.row_bytes = 21;  // a piece ends in a row
  expect_at_random(exchange_program<byte_link<>>(shared), 50);
}

TEST(protocol_bytes, random_rows_hold) {
  auto random = run_random(23);
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  for (int i = 0; i < 40; ++i) {
    const auto salt = static_cast<std::uint32_t>(random());
    exchange_case drawn;
    drawn.ranks = 1 + below(3);
    drawn.groups = 1 + below(2);
    drawn.blocks = 1 + below(2);
    drawn.stages = 1 + below(6);
    drawn.placed = below(2) == 0 ? row_placement::rank_major : row_placement::group_major;
    drawn.row_bytes = below(2) == 0 ? 1 + below(40) : 16 * (1 + below(2));
    drawn.staging_bytes = 16 * (3 + below(5));  // cuts rows, or holds several
    drawn.rows_skew = below(17);
    drawn.out_skew = below(17);
    drawn.rows_gap = below(2) * below(33);
    drawn.out_gap = below(2) * below(33);
    drawn.rows = [salt](std::uint32_t call, std::uint32_t from, std::uint32_t to, std::uint32_t group) {
      return static_cast<std::uint32_t>(ranks::mix(ranks::mix(salt, call * 64 + from), to * 64 + group) >> 40) % 3;
    };
    expect_at_random(exchange_program<byte_link<>>(drawn), 5);
  }
}

template <class Link>
void expect_seen(const exchange_case& given, const std::string& why) {
  expect_failure_at_random(exchange_program<Link>(given), why);
}

TEST(protocol_bytes_faults, a_missing_wait_for_gets_is_seen) {
  expect_seen<byte_link<without_wait_gets>>(bytes_of_two_ranks(), "the row is right");
}
TEST(protocol_bytes_faults, a_missing_proxy_fence_is_seen) {
  expect_seen<byte_link<without_proxy_fence>>(bytes_of_two_ranks(), "the row is right");
}
TEST(protocol_bytes_faults, a_missing_credit_is_seen) {
  expect_seen<byte_link<without_credit>>(bytes_of_two_ranks(), "");
}
TEST(protocol_bytes_faults, bytes_stored_between_rows_are_seen) {
  expect_seen<whole_units>(with_gaps(), "nothing lies between rows");
}
TEST(protocol_bytes_faults, a_forgotten_skew_is_seen) {
  expect_seen<without_skew>(bytes_of_two_ranks(), "the row is right");
}

}  // namespace
}  // namespace tmap::testing
