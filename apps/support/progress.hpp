// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tmap::apps {

/// A bar on standard error for work that lasts longer than `patience`; nothing at all when that is
/// no terminal. Removes itself when it goes. Not thread-safe.
class progress {
 public:
  progress(std::string label, std::uint64_t total, std::chrono::milliseconds patience = std::chrono::seconds{2});
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  void advance(std::uint64_t steps);

 private:
  using clock = std::chrono::steady_clock;

  void draw() const;

  std::string label_;
  std::uint64_t total_;
  std::uint64_t done_{};
  bool terminal_;
  bool drawn_{};
  clock::time_point next_;
};

}  // namespace tmap::apps
