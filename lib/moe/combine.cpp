// SPDX-License-Identifier: Apache-2.0
#include <tmap/moe.hpp>

#include <cstdint>

#include "kernels/moe_launch.hpp"
#include "lib/encode/device.hpp"
#include "lib/encode/reported_call.hpp"
#include "lib/moe/checks.hpp"
#include "lib/moe/device.hpp"
#include "lib/support/check.hpp"
#include "lib/support/trace.hpp"

namespace tmap::moe {

namespace {

/// Checks a call, and runs `enqueue(reports, stream)` if there is something to do.
template <class Problem, class Enqueue>
result<void> run_sums(batch_call which, const Problem& problem, const run& with, const Enqueue& enqueue) {
  support::arguments given;
  check_call(given, with);
  check_problem(given, problem);
  if (!given || problem.tokens == 0 || problem.columns == 0) return given.outcome();
  if (const auto able = require_gpu(); !able) return able;
  const cudaStream_t stream = with.where.stream.get();
  const reported_call call{which, problem.tokens * problem.k, with.check, stream};
  return report_call(call, [&](const fault_sink& faults) -> result<void> {
    return enqueue(kernels::choice_reports{with.statuses, with.header, faults}, stream);
  });
}

}  // namespace

result<void> combine(const combine_problem& problem, const run& with) {
  const support::trace_range range{"tmap combine"};
  return run_sums(batch_call::moe_combine, problem, with,
                  [&](const auto& reports, cudaStream_t stream) -> result<void> {
                    const result<std::uint32_t> multiprocessors = multiprocessor_count();
                    if (!multiprocessors) return failure(multiprocessors.error());
                    TMAP_TRY_CUDA(kernels::launch_combine({problem, reports, *multiprocessors, stream}));
                    return {};
                  });
}

result<void> combine_backward(const combine_gradients& problem, const run& with) {
  const support::trace_range range{"tmap combine_backward"};
  return run_sums(batch_call::moe_combine_backward, problem, with,
                  [&](const auto& reports, cudaStream_t stream) -> result<void> {
                    TMAP_TRY_CUDA(kernels::launch_combine_backward({problem, reports, stream}));
                    return {};
                  });
}

}  // namespace tmap::moe
