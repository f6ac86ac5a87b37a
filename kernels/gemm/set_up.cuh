// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/grouped_gemm.hpp>

#include "kernels/gemm/gemm_group.hpp"
#include "kernels/gemm_launch.hpp"

#include <cstdint>

namespace tmap::kernels {

/// What the set-up kernel reads. Of a problem with pointers only `pointers` and `type`.
struct set_up_request {
  enum class form : std::uint32_t { rows, weights, pointers };
  form kind;
  gemm::row_problem rows;
  gemm::weight_problem weights;
  gemm::pointer_problem pointers;
  std::uint32_t groups;
  tile_sizes tile;
  gemm_scratch scratch;
  gemm::group_status* statuses;
  batch_header* header;
  fault_sink faults;
};

/// Judges the groups, writes their records, the running sum of their tiles, and their maps: of A
/// and C, and unless the form is `rows` of B.
cudaError_t launch_set_up(const set_up_request& request, const gemm_maps& maps, cudaStream_t stream);

}  // namespace tmap::kernels
