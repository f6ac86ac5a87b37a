// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench/timing.hpp"
#include "apps/grouped_gemm/subject.hpp"

namespace tmap::bench {

/// Microseconds of one call among calls in a row, the faster of a stream and a graph.
template <class Enqueue>
double best_microseconds(const timer& time, const Enqueue& enqueue, bool may_capture = true) {
  constexpr double chain_microseconds = 10000;
  constexpr int most_chain = 64;
  constexpr int repeats = 5;
  const double once = time.stream_microseconds(enqueue, 3);
  const int chain = std::clamp(static_cast<int>(chain_microseconds / once), 1, most_chain);
  const auto enqueue_chain = [&](cudaStream_t stream) {
    for (int i = 0; i < chain; ++i) enqueue(stream);
  };
  const double in_stream = time.stream_microseconds(enqueue_chain, repeats) / chain;
  return may_capture ? std::min(in_stream, time.graph_microseconds(enqueue, chain, repeats)) : in_stream;
}

struct plan_time {
  std::string plan;
  double microseconds;
};

/// Microseconds; 0: not measured.
struct line {
  std::string name;
  double goal{};
  double operations{};
  double chosen{};  ///< by the plan that the library chooses
  std::vector<plan_time> plans{};
  double set_up{};
  double loop{};
  double grouped{};
  double worst_error{};  ///< in units of the allowed one

  double teraflops(double microseconds) const { return microseconds == 0 ? 0 : operations / microseconds * 1e-6; }
  const plan_time* best_plan() const;
};

/// Runs it once and checks the result; a wrong one is told on standard error and counted, and not timed.
class judge {
 public:
  /// The largest error, in units of the allowed one.
  double worst_error(const subject& of, const timer& time, std::optional<std::uint32_t> plan);
  int wrong() const { return wrong_; }

 private:
  int wrong_{};
};

enum class how_thorough { all_plans, chosen_plan };
line measured(const subject& of, const timer& time, judge& judging, how_thorough plans);

}  // namespace tmap::bench
