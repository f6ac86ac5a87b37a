// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/simulator/ranks/model_link.hpp"

namespace tmap::ranks {

/// Describes threads that share windows. Bodies run many times. They may keep nothing but what
/// `begin` sets back.
struct program {
  struct thread {
    std::uint32_t rank;
    std::uint32_t block;  ///< numbered over all ranks
    std::function<void(model_link&)> body;
  };
  struct word {
    std::uint32_t rank;
    std::uint64_t offset;
    std::uint32_t value;
  };
  std::uint32_t ranks{2};
  std::vector<thread> threads;
  std::vector<word> initial;           ///< words of windows that do not begin as zeros
  std::function<void()> begin;         ///< before each execution
  std::function<std::string()> check;  ///< after each: what is wrong, or nothing
  std::optional<death> dies;
  std::uint32_t early_timeouts{0};
};

struct findings {
  std::uint64_t executions{0};
  std::uint64_t states{0};  ///< different ones, of explore_all
  bool is_complete{false};  ///< there are no other executions
  bool has_died{false};     ///< in some execution, `dies` came true
  std::string failure;      ///< of the first execution that failed, with all its steps
};

/// Runs every execution of a program, up to a failure or the limit. Executions that come to a state
/// seen before count, and end there.
findings explore_all(const program& given, std::uint64_t most_executions = 400'000);

/// Runs executions by random choices: number i of them by the seed `seed` + i, which a failure
/// names.
findings explore_random(const program& given, std::uint64_t seed, std::uint64_t executions);

}  // namespace tmap::ranks
