// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/ranks/explore.hpp"

#include <algorithm>
#include <memory>
#include <unordered_set>

namespace tmap::ranks {
namespace {

/// Holds a machine with the threads of a program.
class loaded_program {
 public:
  explicit loaded_program(const program& given) : program_(given), machine_(given.ranks, blocks_of(given)) {
    machine_.schedule().dies = given.dies;
    machine_.schedule().early_timeouts = given.early_timeouts;
    for (const program::word& each : given.initial) {
      machine_.begin_with({each.rank, static_cast<std::uint32_t>(each.offset / 4)}, each.value);
    }
    for (std::uint32_t i = 0; i < given.threads.size(); ++i) {
      const program::thread& each = given.threads[i];
      machine_.add(each.rank, each.block, [this, &each, i] {
        model_link link{machine_, each.rank, i};
        each.body(link);
      });
    }
  }

  /// Returns how an execution ended; its failure is in `found`.
  ending run(choices& by, std::unordered_set<std::uint64_t>* seen, findings& found) {
    if (program_.begin) program_.begin();
    const ending end = machine_.run(by, seen);
    ++found.executions;
    found.has_died |= machine_.schedule().has_died();
    found.failure = machine_.schedule().failure();
    if (end != ending::complete || !program_.check) return end;
    found.failure = program_.check();
    return found.failure.empty() ? ending::complete : ending::failed;
  }

  /// Runs a failed execution again and adds its steps to the failure.
  void explain(choices& by, findings& found) {
    std::vector<std::string> steps;
    findings again;
    machine_.trace(&steps);
    run(by, nullptr, again);
    machine_.trace(nullptr);
    for (const std::string& step : steps) found.failure += "\n  " + step;
  }

 private:
  static std::uint32_t blocks_of(const program& given) {
    std::uint32_t blocks = 0;
    for (const program::thread& each : given.threads) blocks = std::max(blocks, each.block + 1);
    return blocks;
  }

  const program& program_;
  machine machine_;
};

}  // namespace

findings explore_all(const program& given, std::uint64_t most_executions) {
  loaded_program loaded(given);
  every_choice all;
  std::unordered_set<std::uint64_t> seen;
  findings found;
  do {
    if (loaded.run(all, &seen, found) == ending::failed) {
      all.again();
      loaded.explain(all, found);
      return found;
    }
    found.states = seen.size();
    if (found.executions == most_executions) return found;
  } while (all.next());
  found.is_complete = true;
  return found;
}

findings explore_random(const program& given, std::uint64_t seed, std::uint64_t executions) {
  loaded_program loaded(given);
  findings found;
  for (std::uint64_t i = 0; i < executions; ++i) {
    random_choices random(seed + i);
    if (loaded.run(random, nullptr, found) != ending::failed) continue;
    found.failure = "seed " + std::to_string(seed + i) + ": " + found.failure;
    random_choices same(seed + i);
    loaded.explain(same, found);
    return found;
  }
  return found;
}

}  // namespace tmap::ranks
