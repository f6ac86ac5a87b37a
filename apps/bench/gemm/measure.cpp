// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/gemm/measure.hpp"

#include <cstdio>

#include "apps/support/require.hpp"

namespace tmap::apps::bench {
namespace {

constexpr int nan_byte = 0xff;

std::string plan_text(std::optional<std::uint32_t> plan) {
  return plan ? gemm::plan_name(*plan) : "the chosen plan";
}

void measure_plans(line& made, const subject& of, const timer& time, judge& judging) {
  for (std::uint32_t plan = 0; plan < gemm::plan_count(); ++plan) {
    if (!(judging.worst_error(of, time, plan) < 1)) continue;
    const double microseconds = sustained_microseconds(time, [&](cudaStream_t stream) { of.enqueue(stream, plan); });
    made.plans.push_back({gemm::plan_name(plan), microseconds});
  }
}

/// Grouped calls copy host arrays, which a graph cannot do.
void measure_peers(line& made, const subject& of, const timer& time) {
  if (!cublas_peer::exists() || of.sums.type != gemm::operand_type::bf16) return;
  const cublas_peer peer(of.peer_products(), of.sums.sums_rows);
  made.loop = sustained_microseconds(time, [&](cudaStream_t stream) { peer.enqueue_loop(stream); });
  made.grouped = sustained_microseconds(
      time, [&](cudaStream_t stream) { peer.enqueue_grouped(stream); }, false);
}

}  // namespace

const plan_time* line::best_plan() const {
  const auto best = std::min_element(plans.begin(), plans.end(), [](const plan_time& x, const plan_time& y) {
    return x.microseconds < y.microseconds;
  });
  return best == plans.end() ? nullptr : &*best;
}

double judge::worst_error(const subject& of, const timer& time, std::optional<std::uint32_t> plan) {
  require(cudaMemset(of.c, nan_byte, of.c_elements * sizeof(std::uint16_t)));
  require(cudaDeviceSynchronize());
  of.enqueue(time.stream(), plan);
  time.drain();
  const check_answer answer = check_products(of.sums, of.products);
  const std::uint64_t poison = count_poison(of.c, of.c_elements);
  const bool is_right = answer.worst < 1 && poison == of.untouched;
  if (is_right) return answer.worst;
  ++wrong_;
  std::fprintf(stderr,
               "WRONG: %s, %s: largest error is %.3g of the allowed one, %llu elements untouched instead of %llu\n",
               of.name.c_str(), plan_text(plan).c_str(), answer.worst, static_cast<unsigned long long>(poison),
               static_cast<unsigned long long>(of.untouched));
  return std::max(answer.worst, 1.0);
}

line measured(const subject& of, const timer& time, judge& judging, how_thorough plans) {
  line made;
  made.name = of.name;
  made.goal = of.goal;
  made.operations = of.operations;
  made.worst_error = judging.worst_error(of, time, {});
  if (made.worst_error < 1) {
    made.chosen = sustained_microseconds(time, [&](cudaStream_t stream) { of.enqueue(stream, {}); });
    if (of.enqueue_empty) made.set_up = sustained_microseconds(time, of.enqueue_empty);
  }
  if (plans == how_thorough::chosen_plan) return made;
  measure_plans(made, of, time, judging);
  measure_peers(made, of, time);
  return made;
}

}  // namespace tmap::apps::bench
