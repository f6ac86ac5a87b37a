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

/// Returns whether each group has a map of B. Else all share one, which has the group as third dim.
TMAP_HOST_DEVICE constexpr bool has_own_b(const gemm::row_problem& problem) {
  return problem.b_addresses != nullptr;
}
template <class Problem>
TMAP_HOST_DEVICE constexpr bool has_own_b(const Problem&) {
  return true;
}

/// Returns whether each group has a map of A. Rows that an index names are loaded without one.
TMAP_HOST_DEVICE constexpr bool has_own_a(const gemm::row_problem& problem) {
  return problem.a_rows == nullptr;
}
template <class Problem>
TMAP_HOST_DEVICE constexpr bool has_own_a(const Problem&) {
  return true;
}

/// Returns whether an index names the rows of C. They are stored without a map.
TMAP_HOST_DEVICE constexpr bool stores_by_index(const gemm::row_problem& problem) {
  return problem.c_rows != nullptr;
}
template <class Problem>
TMAP_HOST_DEVICE constexpr bool stores_by_index(const Problem&) {
  return false;
}

/// Returns whether each group has a second map of results.
TMAP_HOST_DEVICE constexpr bool has_second(const gemm::row_problem& problem) {
  return has_second_results(problem.epilogue.gate);
}
template <class Problem>
TMAP_HOST_DEVICE constexpr bool has_second(const Problem&) {
  return false;
}

/// Returns whether rows of C that belong to no group become zero.
TMAP_HOST_DEVICE constexpr bool zeroes_rest(const gemm::row_problem& problem) {
  return problem.zero_rest;
}
template <class Problem>
TMAP_HOST_DEVICE constexpr bool zeroes_rest(const Problem&) {
  return false;
}

/// Returns the word that is 0 once the kernel that brings rows has its multiprocessors, or null.
TMAP_HOST_DEVICE constexpr const std::uint32_t* start_word(const gemm::row_problem& problem) {
  return problem.pending == nullptr ? nullptr : problem.pending + problem.groups;
}
template <class Problem>
TMAP_HOST_DEVICE constexpr const std::uint32_t* start_word(const Problem&) {
  return nullptr;
}

/// Returns the number of maps that each group has of its own.
template <class Problem>
TMAP_HOST_DEVICE constexpr std::uint32_t set_up_operands(const Problem& problem) {
  return 1 + (has_own_a(problem) ? 1 : 0) + (has_own_b(problem) ? 1 : 0) + (has_second(problem) ? 1 : 0);
}

/// Judges the groups, and writes their records, the running sum of their tiles, and their maps.
template <class Problem>
cudaError_t launch_set_up(const Problem& problem, const gemm_call& call);

}  // namespace tmap::kernels
