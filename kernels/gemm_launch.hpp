// SPDX-License-Identifier: Apache-2.0
#pragma once

// The way from lib/gemm to the kernels of kernels/gemm: plain functions that enqueue work and
// return what the CUDA runtime said. Arguments have been checked by the caller; there is at least
// one group, and of a `row_problem` a row.
//
// A product is two launches: a set-up kernel of few blocks judges the groups, adds up their tiles
// and encodes their maps; a persistent kernel, which starts while the first still runs, works the
// tiles off. In between nothing returns to the host.

#include <tmap/grouped_gemm.hpp>
#include <tmap/map_template.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace tmap::kernels {

/// How products are cut into tiles.
struct gemm_plan {
  const char* name;
  std::uint32_t tile_m;
  std::uint32_t tile_n;
  bool is_paired;  ///< two blocks of a cluster take two tiles that have rows or columns in common
};

inline constexpr gemm_plan gemm_plans[] = {
    {"128x256 pairs", 128, 256, true},
    {"128x128", 128, 128, false},
    {"64x256", 64, 256, false},
};
inline constexpr std::uint32_t gemm_plan_count = sizeof(gemm_plans) / sizeof(gemm_plans[0]);

/// The index in `gemm_plans` for these sizes.
std::uint32_t choose_gemm_plan(const gemm::row_problem& problem);
std::uint32_t choose_gemm_plan(const gemm::weight_problem& problem);
std::uint32_t choose_gemm_plan(const gemm::pointer_problem& problem);

/// What `make_template` is called with. Specs of maps that each group has its own of have extents
/// of 1.
struct gemm_map_spec {
  tensor_spec spec;
  patch_fields fields;
};
struct gemm_map_specs {
  gemm_map_spec a;
  gemm_map_spec b;
  gemm_map_spec c;
};
gemm_map_specs gemm_specs(const gemm::row_problem& problem, const gemm_plan& plan);
gemm_map_specs gemm_specs(const gemm::weight_problem& problem, const gemm_plan& plan);
gemm_map_specs gemm_specs(const gemm::pointer_problem& problem, const gemm_plan& plan);

struct gemm_maps {
  map_template a;
  map_template b;
  map_template c;
};

/// Device memory, in bytes, of a problem with this many groups; aligned to 256 bytes.
std::size_t gemm_scratch_bytes(std::uint32_t groups);

/// Whether this build has them; without, launches return `cudaErrorNoKernelImageForDevice`.
bool has_gemm_kernels();

struct gemm_call {
  const gemm_plan& plan;  ///< one of `gemm_plans`
  const gemm_maps& maps;  ///< from the plan's specs
  void* scratch;
  gemm::group_status* statuses;  ///< may be null, as may be the header
  batch_header* header;
  std::uint32_t multiprocessors;
  cudaStream_t stream;
  fault_sink faults{};
};
cudaError_t launch_gemm(const gemm::row_problem& problem, const gemm_call& call);
cudaError_t launch_gemm(const gemm::weight_problem& problem, const gemm_call& call);
cudaError_t launch_gemm(const gemm::pointer_problem& problem, const gemm_call& call);

}  // namespace tmap::kernels
