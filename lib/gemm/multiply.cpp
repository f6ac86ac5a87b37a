// SPDX-License-Identifier: Apache-2.0
#include <tmap/grouped_gemm.hpp>

#include <algorithm>
#include <cstdint>

#include "kernels/gemm/gemm_group.hpp"
#include "kernels/gemm_launch.hpp"
#include "lib/batch/run_arguments.hpp"
#include "lib/encode/reported_call.hpp"
#include "lib/gemm/checks.hpp"
#include "lib/gemm/prepare.hpp"
#include "lib/support/check.hpp"
#include "lib/support/trace.hpp"

namespace tmap::gemm {
namespace {

template <class Problem>
result<void> check(const Problem& problem, const run& with) {
  support::arguments given;
  check_call(given, with);
  check_problem(given, problem);
  check_plan(given, problem, with);
  if (!given || problem.groups == 0) return given.outcome();
  check_scratch(given, with.where.scratch, kernels::gemm_scratch_bytes(problem.groups));
  return given.outcome();
}

constexpr batch_call call_of(const row_problem&) {
  return batch_call::gemm_rows;
}
constexpr batch_call call_of(const column_problem&) {
  return batch_call::gemm_columns;
}
constexpr batch_call call_of(const weight_problem&) {
  return batch_call::gemm_weights;
}
constexpr batch_call call_of(const pointer_problem&) {
  return batch_call::gemm_pointers;
}

/// Returns how many multiprocessors compute tiles. Blocks come in pairs in some plans.
std::uint32_t multiprocessors_of(const prepared_product& ready, const choices& chosen) {
  const std::uint32_t most = std::min(chosen.blocks.value_or(ready.multiprocessors), ready.multiprocessors);
  return chosen.blocks && ready.plan->is_paired ? most / 2 * 2 : most;
}

template <class Problem>
result<void> enqueue(const Problem& problem, const run& with) {
  const result<prepared_product> ready = prepare(problem, with.choices.plan);
  if (!ready) return failure(ready.error());
  const cudaStream_t stream = with.where.stream.get();
  const reported_call call{call_of(problem), problem.groups, with.check, stream};
  return report_call(call, [&](const fault_sink& faults) -> result<void> {
    const kernels::gemm_call launch{*ready->plan,  ready->maps, with.where.scratch.memory,
                                    with.statuses, with.header, multiprocessors_of(*ready, with.choices),
                                    stream,        faults};
    TMAP_TRY_CUDA(kernels::launch_gemm_set_up(problem, launch));
    TMAP_TRY_CUDA(kernels::launch_gemm_tiles(problem, launch));
    return {};
  });
}

}  // namespace

result<std::uint64_t> workspace_bytes(std::uint32_t groups) {
  support::arguments given;
  given.at_most(groups, max_groups, "groups");
  if (!given) return failure{given.complaint()};
  return groups == 0 ? 0 : kernels::gemm_scratch_bytes(groups);
}

std::uint32_t plan_count() {
  return kernels::gemm_plan_count;
}

const char* plan_name(std::uint32_t plan) {
  return plan < plan_count() ? kernels::gemm_plans[plan].name : nullptr;
}

result<void> multiply(const row_problem& problem, const run& with) {
  const support::trace_range range{"tmap grouped rows"};
  if (const auto checked = check(problem, with); !checked) return checked;
  if (problem.groups == 0 || problem.rows == 0) return {};
  return enqueue(problem, with);
}

result<void> multiply(const column_problem& problem, const run& with) {
  const support::trace_range range{"tmap grouped columns"};
  if (const auto checked = check(problem, with); !checked) return checked;
  if (problem.groups == 0 || problem.columns == 0) return {};
  return enqueue(problem, with);
}

result<void> multiply(const weight_problem& problem, const run& with) {
  const support::trace_range range{"tmap grouped weights"};
  if (const auto checked = check(problem, with); !checked || problem.groups == 0) return checked;
  return enqueue(problem, with);
}

result<void> multiply(const pointer_problem& problem, const run& with) {
  const support::trace_range range{"tmap grouped pointers"};
  if (const auto checked = check(problem, with); !checked || problem.groups == 0) return checked;
  return enqueue(problem, with);
}

}  // namespace tmap::gemm
