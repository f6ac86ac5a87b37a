// SPDX-License-Identifier: Apache-2.0
// Tests how verdicts of the protocols become public statuses.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "lib/peer/verdict.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint32_t late_rank = 31;

result<void> outcome(peer_status ended, protocol_step step = protocol_step::none) {
  return peer::outcome_of(detail::peer::word_of(peer_verdict{ended, late_rank, step}), 0);
}

TEST(group_verdict, a_call_that_ended_well_succeeds) {
  EXPECT_TRUE(outcome(peer_status::ok).has_value());
  EXPECT_TRUE(peer::outcome_of(0, 0).has_value()) << "a window that was just made";
}

void expect_outcome(peer_status ended, status code, const std::string& words) {
  SCOPED_TRACE(words);
  const result<void> found = outcome(ended);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, code);
  EXPECT_EQ(to_string(found.error()), words);
}

TEST(group_verdict, each_status_has_its_public_one_and_names_the_rank) {
  expect_outcome(peer_status::timeout, status::peer_timeout, "rank 31 did not come before the deadline");
  expect_outcome(peer_status::mismatch, status::peer_mismatch, "rank 31 of the group made another call");
  expect_outcome(peer_status::overflow, status::peer_overflow,
                 "rank 31 would get more rows than it has room for; nothing was moved");
  expect_outcome(peer_status::bad_counts, status::invalid_argument,
                 "`splits` of rank 31 name more rows than it has; nothing was moved");
  expect_outcome(peer_status::refused, status::invalid_argument,
                 "`groups` are too many for the header of a window; nothing was announced");
  expect_outcome(peer_status::wrong_bytes, status::self_test_failed,
                 "bytes to or from rank 31 of the group came wrong");
  expect_outcome(
      peer_status::no_dispatch, status::invalid_argument,
      "`run.scratch` has had no dispatch of these sizes since its last combine; make one before each combine");
  const result<void> broken = outcome(peer_status::broken);
  ASSERT_FALSE(broken.has_value());
  EXPECT_EQ(broken.error().code, status::group_broken);
}

TEST(group_verdict, a_time_out_names_its_step) {
  const std::pair<protocol_step, const char*> steps[]{
      {protocol_step::barrier, "come to the barrier"},
      {protocol_step::put, "return a piece"},
      {protocol_step::take_put, "send a piece"},
      {protocol_step::credit, "pull its rows"},
      {protocol_step::announcement, "announce its rows"},
      {protocol_step::workers, "the blocks of rank 31"},
      {protocol_step::rows, "send its rows"},
      {protocol_step::sums, "send its sums"},
  };
  for (const auto& [step, words] : steps) {
    const result<void> found = outcome(peer_status::timeout, step);
    ASSERT_FALSE(found.has_value());
    EXPECT_EQ(found.error().code, status::peer_timeout);
    EXPECT_NE(to_string(found.error()).find(words), std::string::npos) << to_string(found.error());
    EXPECT_EQ(found.error().found, late_rank);
  }
}

TEST(group_verdict, a_broken_group_names_what_broke_it_if_this_rank_did) {
  const std::uint32_t fault = detail::peer::word_of(peer_verdict{peer_status::timeout, 2, protocol_step::credit});
  const result<void> found = peer::outcome_of(detail::peer::word_of(peer_verdict{peer_status::broken}), fault);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, status::peer_timeout);
  EXPECT_EQ(found.error().found, 2u);
  EXPECT_TRUE(peer::outcome_of(detail::peer::word_of(peer_verdict{}), fault).has_value())
      << "only broken groups have a fault";
}

TEST(group_verdict, a_word_that_no_protocol_writes_is_refused) {
  const result<void> found = peer::outcome_of(0x123456ff, 0);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, status::group_broken);
}

}  // namespace
}  // namespace tmap::testing
