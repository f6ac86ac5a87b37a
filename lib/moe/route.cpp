// SPDX-License-Identifier: Apache-2.0
#include <tmap/moe.hpp>

#include <cstddef>
#include <cstdint>

#include "kernels/moe_launch.hpp"
#include "lib/batch/run_arguments.hpp"
#include "lib/batch/workspace.hpp"
#include "lib/encode/device.hpp"
#include "lib/encode/reported_call.hpp"
#include "lib/moe/checks.hpp"
#include "lib/moe/device.hpp"
#include "lib/support/check.hpp"
#include "lib/support/trace.hpp"

namespace tmap::moe {
namespace {

/// The bytes of each part of a workspace, in their order.
struct scratch_bytes {
  std::uint64_t ids;
  std::uint64_t weights;
  std::uint64_t totals;

  std::uint64_t all() const { return ids + weights + totals; }
};

/// Looks at sizes and at the kind of the choices only, so that a workspace can be made before the
/// results are known. It is enough for a GPU without large clusters.
scratch_bytes parts_of(const route_problem& problem) {
  scratch_bytes parts{};
  if (kernels::takes_one_launch(problem, kernels::sure_cluster_blocks)) return parts;
  const std::uint64_t choices = problem.tokens * problem.k;
  if (kernels::has_logits(problem)) {
    parts.ids = round_up(choices * sizeof(std::int32_t), workspace_alignment);
    parts.weights = round_up(choices * sizeof(float), workspace_alignment);
  }
  const std::uint64_t counts = std::uint64_t{kernels::sort_blocks(problem)} * problem.experts;
  parts.totals = round_up(counts * sizeof(std::uint32_t), workspace_alignment);
  return parts;
}

kernels::route_scratch cut(void* memory, const scratch_bytes& parts) {
  auto* const ids = static_cast<std::byte*>(memory);
  std::byte* const weights = ids + parts.ids;
  std::byte* const totals = weights + parts.weights;
  return {reinterpret_cast<std::int32_t*>(ids), reinterpret_cast<float*>(weights),
          reinterpret_cast<std::uint32_t*>(totals)};
}

result<void> check(const route_problem& problem, const route_results& results, const run& with) {
  support::arguments given;
  check_call(given, with);
  check_sizes(given, problem, "problem");
  if (given) check_problem(given, problem, "problem");
  if (given) check_results(given, problem, results, "results");
  if (!given) return given.outcome();
  const std::uint64_t needed = parts_of(problem).all();
  if (needed != 0) check_scratch(given, with.where.scratch, needed);
  return given.outcome();
}

}  // namespace

result<std::uint64_t> workspace_bytes(const route_problem& problem) {
  support::arguments given;
  check_sizes(given, problem, "problem");
  if (!given) return failure{given.complaint()};
  return parts_of(problem).all();
}

result<void> route(const route_problem& problem, const route_results& results, const run& with) {
  const support::trace_range range{"tmap route"};
  if (const auto checked = check(problem, results, with); !checked) return checked;
  if (const auto able = require_gpu(); !able) return able;
  route_problem sized = problem;
  if (sized.rows == 0) sized.rows = most_rows(problem.tokens, problem.experts, problem.k, problem.alignment);
  const cudaStream_t stream = with.where.stream.get();
  const kernels::route_scratch scratch = cut(with.where.scratch.memory, parts_of(problem));
  const reported_call call{batch_call::moe_route, problem.tokens * problem.k, with.check, stream};
  return report_call(call, [&](const fault_sink& faults) -> result<void> {
    TMAP_TRY_CUDA(kernels::launch_route({sized, results, scratch, {with.statuses, with.header, faults}, stream}));
    return {};
  });
}

}  // namespace tmap::moe
