// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "peer/experts_case.hpp"
#include "peer/explored.hpp"

// Dispatches that several tests run over the model.

namespace tmap::testing {

/// Chooses experts that differ by call, rank and token. Some are none, some come twice.
inline expert_choice random_choices(std::uint32_t salt, std::uint32_t experts) {
  return [salt, experts](std::uint32_t call, std::uint32_t from, std::uint32_t token, std::uint32_t j) {
    const auto drawn = ranks::mix(ranks::mix(salt, call * 64 + from), token * 64 + j) >> 40;
    return drawn % 8 == 0 ? -1 : static_cast<std::int32_t>(drawn / 8 % experts);
  };
}

inline experts_case two_ranks() {
  return {.calls = 2, .chosen = random_choices(5, 4)};
}
/// Each token goes to both experts of the other rank.
inline experts_case crossing() {
  return {.tokens = 1, .calls = 2, .chosen = [](std::uint32_t, std::uint32_t from, std::uint32_t, std::uint32_t j) {
            return static_cast<std::int32_t>((1 - from) * 2 + j);
          }};
}

/// The first call has more tokens than there is room for. The fetch was announced by then.
inline experts_case too_many_tokens() {
  experts_case full = crossing();
  full.blocks = 2;
  full.tokens = 2;
  full.arrivals = 1;
  full.chosen = [](std::uint32_t call, std::uint32_t from, std::uint32_t token, std::uint32_t j) {
    return call == 0 || token == 0 ? static_cast<std::int32_t>(2 * (1 - from) + j) : -1;
  };
  return full;
}

/// Expects that random executions do not fail, whether one block prepares or each step is a kernel.
inline void expect_both_ways(const experts_case& given, const verdict_check& check, std::uint32_t executions) {
  for_both_ways(given, [&](const experts_case& each) { expect_at_random(experts_program(each, check), executions); });
}

/// Expects that the first dispatch and its combine end with an overflow, and the second ones do
/// not.
inline std::string expect_one_overflow(const verdict_lists& verdicts) {
  for (const auto& of_rank : verdicts) {
    for (std::size_t i = 0; i < 4; ++i) {
      const peer_status wanted = i < 2 ? peer_status::overflow : peer_status::ok;
      if (of_rank.at(i).status != wanted) return "a call ended otherwise";
    }
  }
  return {};
}

}  // namespace tmap::testing
