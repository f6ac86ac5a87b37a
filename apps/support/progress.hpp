// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace tmap::apps {

/// A bar on standard error for work that lasts longer than `patience`. It is redrawn by a thread of
/// its own, so that one long step shows too. Work without a number of steps (`total` is 0) shows
/// the seconds that it has taken. Prints nothing if standard error is no terminal. Removes itself
/// when it goes. One thread at a time may call `advance`.
class progress {
 public:
  progress(std::string label, std::uint64_t total = 0,
           std::chrono::milliseconds patience = std::chrono::milliseconds{500});
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  void advance(std::uint64_t steps);

 private:
  using clock = std::chrono::steady_clock;

  void redraw_until_the_end();
  void draw_when_due();
  void draw() const;

  std::string label_;
  std::uint64_t total_;
  std::uint64_t done_{};
  bool drawn_{};
  bool ended_{};
  clock::time_point begin_{clock::now()};
  clock::time_point next_;
  std::mutex mutex_;
  std::condition_variable end_;
  std::thread painter_;  ///< runs on terminals only
};

}  // namespace tmap::apps
