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

result<void> combine(const combine_problem& problem, const run& with) {
  const support::trace_range range{"tmap combine"};
  support::arguments given;
  check_call(given, with);
  check_problem(given, problem);
  if (!given || problem.tokens == 0 || problem.columns == 0) return given.outcome();
  if (const auto able = require_gpu(); !able) return able;
  const result<std::uint32_t> multiprocessors = multiprocessor_count();
  if (!multiprocessors) return failure(multiprocessors.error());
  const cudaStream_t stream = with.where.stream.get();
  const reported_call call{batch_call::moe_combine, problem.tokens * problem.k, with.check, stream};
  return report_call(call, [&](const fault_sink& faults) -> result<void> {
    TMAP_TRY_CUDA(kernels::launch_combine({problem, {with.statuses, with.header, faults}, *multiprocessors, stream}));
    return {};
  });
}

}  // namespace tmap::moe
