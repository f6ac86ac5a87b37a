// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "lib/simulator/ranks/choices.hpp"
#include "lib/simulator/ranks/fiber.hpp"

namespace tmap::ranks {

inline constexpr std::uint64_t never = ~std::uint64_t{0};

/// Ends a rank before its step with this number, counted from 0.
struct death {
  std::uint32_t rank;
  std::uint32_t step;
};

/// Is thrown in a fiber whose execution is over.
struct stopped {};

enum class ending {
  complete,  ///< all threads ended, or died
  cut,       ///< the state was explored before
  failed,
};

/// Runs the threads of a program one step at a time. The choices decide who goes next.
///
/// The clock stands still while somebody can go on. When nobody can, it jumps to the next deadline.
/// `early_timeouts` is how often it may also do so by choice, before somebody was really late.
class scheduler {
 public:
  explicit scheduler(std::uint32_t ranks) : steps_(ranks) {}

  /// Adds a thread; returns its number.
  std::uint32_t add(std::uint32_t rank, std::function<void()> body);
  std::optional<death> dies;
  std::uint32_t early_timeouts{0};

  /// Runs one execution. `memory_hash` hashes what threads share. A new state that is in `seen`
  /// cuts the execution, because all that can follow has been explored.
  ending run(choices& by, const std::function<std::uint64_t()>& memory_hash, std::unordered_set<std::uint64_t>* seen);

  /// Ends the current step of thread `me`, and returns when the next one has been chosen. With a
  /// condition, that is once it holds: true. Or the deadline has come: false.
  bool step(std::uint32_t me, std::function<bool()> ready = {}, std::uint64_t deadline = never);

  /// Adds a number that thread `me` has seen to its history. A thread's local state is determined
  /// by what it has seen.
  void remember(std::uint32_t me, std::uint64_t number);
  std::uint32_t pick(std::uint32_t count) { return choices_->pick(count); }
  [[noreturn]] void fail(std::string why);

  std::uint64_t now() const { return now_; }
  /// Returns whether the rank that should die came to that step.
  bool has_died() const { return has_died_; }
  const std::string& failure() const { return failure_; }

 private:
  struct runner {
    std::uint32_t number;
    std::uint32_t rank;
    std::function<void()> body;
    fiber stack;
    std::function<bool()> ready;
    std::uint64_t deadline{never};
    std::uint64_t history{0};
    bool is_late{false};
    bool is_finished{false};
    bool is_dead{false};
  };
  struct option {
    runner* next;
    bool is_late;  ///< goes on because of its deadline
  };

  void start(runner& each);
  runner* choose();
  void list_options();
  option draw();
  void take(option chosen);
  bool kills(const runner& next);
  bool advance_clock();
  bool ends();
  std::uint64_t hash() const;

  std::vector<std::unique_ptr<runner>> threads_;
  fiber main_;
  choices* choices_{nullptr};
  const std::function<std::uint64_t()>* memory_hash_{nullptr};
  std::unordered_set<std::uint64_t>* seen_{nullptr};
  std::vector<option> options_;
  std::vector<std::uint32_t> numbers_;  ///< of the options' threads
  std::vector<std::uint32_t> steps_;    ///< of each rank
  std::uint64_t now_{0};
  std::uint32_t early_left_{0};
  std::string failure_;
  bool is_starting_{false};
  bool is_stopping_{false};
  bool is_cut_{false};
  bool has_died_{false};
};

}  // namespace tmap::ranks
