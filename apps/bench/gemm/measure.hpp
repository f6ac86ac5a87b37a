// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench/gemm/subject.hpp"
#include "apps/support/timing.hpp"

namespace tmap::apps::bench {

/// Returns the microseconds of one call. Runs calls in a row for a little more than a second and
/// leaves out the first quarter. The GPU is then at its power cap, and its clock goes up and down
/// once in 0.8 to 0.9 s. The rest covers a whole period, so the result depends neither on the
/// starting point nor on earlier work. Uses a graph if the call can be captured.
template <class Enqueue>
double sustained_microseconds(const timer& time, const Enqueue& enqueue, bool may_capture = true) {
  constexpr double chain_microseconds = 10000;
  constexpr int most_chain = 200;
  constexpr int skipped = 28;
  constexpr int timed = 85;
  const int chain =
      std::clamp(static_cast<int>(chain_microseconds / time.stream_microseconds(enqueue, 3)), 1, most_chain);
  if (may_capture)
    return time.graph_microseconds_behind(captured_graph(time.stream(), enqueue, chain), skipped, timed) / chain;
  return time.stream_microseconds_behind(enqueue, skipped * chain, timed * chain);
}

struct plan_time {
  std::string plan;
  double microseconds;
};

/// Times in microseconds; 0 means that there is no measurement.
struct line {
  std::string name;
  double goal{};
  double operations{};
  double chosen{};  ///< with the plan that the library chooses
  std::vector<plan_time> plans{};
  double set_up{};
  double loop{};
  double grouped{};
  double worst_error{};  ///< relative to the allowed error

  double teraflops(double microseconds) const { return microseconds == 0 ? 0 : operations / microseconds * 1e-6; }
  const plan_time* best_plan() const;
};

/// Runs a call once and checks its result. A wrong result is reported on standard error and
/// counted, and the call is not timed.
class judge {
 public:
  /// Returns the largest error, relative to the allowed one.
  double worst_error(const subject& of, const timer& time, std::optional<std::uint32_t> plan);
  int wrong() const { return wrong_; }

 private:
  int wrong_{};
};

enum class how_thorough { all_plans, chosen_plan };
line measured(const subject& of, const timer& time, judge& judging, how_thorough plans);

}  // namespace tmap::apps::bench
