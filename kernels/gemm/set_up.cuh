// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/grouped_gemm.hpp>

#include "kernels/gemm/gemm_group.hpp"
#include "kernels/gemm_launch.hpp"

namespace tmap::kernels {

/// The argument of the set-up kernel of one form of problem.
template <class Problem>
struct set_up_request {
  Problem problem;
  tile_sizes tile;
  gemm_scratch scratch;
  gemm::group_status* statuses;
  batch_header* header;
  fault_sink faults;
};

/// Returns whether half of B's columns are gates, so that C has half as many.
TMAP_HOST_DEVICE constexpr bool has_gates(const gemm::row_problem& problem) {
  return problem.epilogue.kind == gemm::epilogue_kind::swiglu;
}
template <class Problem>
TMAP_HOST_DEVICE constexpr bool has_gates(const Problem&) {
  return false;
}

/// Returns whether each group has a map of B. Else all share one, which has the group as third dim.
TMAP_HOST_DEVICE constexpr bool has_own_b(const gemm::row_problem& problem) {
  return problem.b_addresses != nullptr;
}
template <class Problem>
TMAP_HOST_DEVICE constexpr bool has_own_b(const Problem&) {
  return true;
}

/// Returns the number of operands of which each group has a map of its own.
template <class Problem>
TMAP_HOST_DEVICE constexpr std::uint32_t set_up_operands(const Problem& problem) {
  return has_own_b(problem) ? 3 : 2;
}

/// Judges the groups, and writes their records, the running sum of their tiles, and their maps.
template <class Problem>
cudaError_t launch_set_up(const Problem& problem, const gemm_call& call);

}  // namespace tmap::kernels
