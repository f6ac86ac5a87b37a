// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace tmap::ranks {

/// Decides what an execution leaves open. All else is determined by the program.
class choices {
 public:
  choices() = default;
  choices(const choices&) = delete;
  choices& operator=(const choices&) = delete;
  virtual ~choices() = default;

  /// Returns one of 0 .. count - 1.
  virtual std::uint32_t pick(std::uint32_t count) = 0;
  /// The same for the thread that goes on: returns an index of `threads`.
  virtual std::uint32_t pick_thread(const std::vector<std::uint32_t>& threads) {
    return pick(static_cast<std::uint32_t>(threads.size()));
  }
  /// Returns whether no earlier execution has come to this point by the same choices.
  virtual bool is_new() const { return false; }
};

/// Takes all choices in turn, depth first: runs the program again from its start for each.
class every_choice : public choices {
 public:
  std::uint32_t pick(std::uint32_t count) override {
    if (count <= 1) return 0;
    if (at_ == path_.size()) path_.push_back({0, count});
    return path_[at_++].taken;
  }
  bool is_new() const override { return at_ == path_.size(); }

  /// Begins the next execution; false if there is none.
  bool next() {
    at_ = 0;
    while (!path_.empty() && path_.back().taken + 1 == path_.back().count) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().taken;
    return true;
  }
  /// Begins the same execution again.
  void again() { at_ = 0; }

 private:
  struct branch {
    std::uint32_t taken;
    std::uint32_t count;
  };
  std::vector<branch> path_;
  std::size_t at_{0};
};

/// Draws choices. Some threads are slow for a while, since the worst faults need a thread that
/// comes very late.
class random_choices : public choices {
 public:
  explicit random_choices(std::uint64_t seed) : random_(seed) {}
  std::uint32_t pick(std::uint32_t count) override {
    return count <= 1 ? 0 : static_cast<std::uint32_t>(random_() % count);
  }
  std::uint32_t pick_thread(const std::vector<std::uint32_t>& threads) override {
    if (random_() % turns_between_changes == 0) change_pace(threads[random_() % threads.size()]);
    for (;;) {
      const std::uint32_t drawn = pick(static_cast<std::uint32_t>(threads.size()));
      const std::uint32_t thread = threads[drawn];
      const std::uint32_t slowness = thread < slowness_.size() ? slowness_[thread] : 0;
      if (threads.size() == 1 || random_() % (1u << slowness) == 0) return drawn;
    }
  }

 private:
  static constexpr std::uint32_t turns_between_changes = 32;

  void change_pace(std::uint32_t thread) {
    if (thread >= slowness_.size()) slowness_.resize(thread + std::size_t{1});
    slowness_[thread] = static_cast<std::uint32_t>(random_() % 3 * 4);
  }

  std::vector<std::uint32_t> slowness_;  ///< of each thread: it takes one of 2^n of its turns
  std::mt19937_64 random_;
};

}  // namespace tmap::ranks
