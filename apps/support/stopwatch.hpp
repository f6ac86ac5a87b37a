// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace tmap::apps {

/// Seconds since it was made, or since the last lap.
class stopwatch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> passed = now - start_;
    start_ = now;
    return passed.count();
  }

 private:
  std::chrono::steady_clock::time_point start_{std::chrono::steady_clock::now()};
};

}  // namespace tmap::apps
