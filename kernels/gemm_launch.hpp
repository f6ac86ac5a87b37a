// SPDX-License-Identifier: Apache-2.0
#pragma once

// The way from lib/gemm to the kernels of kernels/gemm: plain functions that enqueue work and
// return the code of the CUDA runtime. The caller has checked the arguments. There is at least one
// group, and a `row_problem` has at least one row.
//
// A product is two launches. A set-up kernel of few blocks judges the groups, adds up their tiles
// and encodes their maps. A persistent kernel, which starts while the first one still runs,
// computes the tiles. Nothing returns to the host in between.

#include <tmap/grouped_gemm.hpp>
#include <tmap/map_template.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tmap::kernels {

/// A way to cut products into tiles.
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

struct gemm_maps {
  map_template a;
  map_template b;
  map_template c;
  map_template second;  ///< of a problem that has `second_results`
};

/// Returns whether this build has these kernels. Without them, launches return
/// `cudaErrorNoKernelImageForDevice`.
bool has_gemm_kernels();

struct gemm_call {
  const gemm_plan& plan;         ///< one of `gemm_plans`
  const gemm_maps& maps;         ///< from the plan's specs
  void* scratch;                 ///< `gemm_scratch_bytes` of device memory (gemm/gemm_group.hpp), aligned to 256 bytes
  gemm::group_status* statuses;  ///< may be null, as may be the header
  batch_header* header;
  std::uint32_t multiprocessors;  ///< how many the call may take
  cudaStream_t stream;
  fault_sink faults{};
};
/// Enqueues all that a product does before its tiles. `Problem` is one of grouped_gemm.hpp. Other
/// work may be enqueued between the two launches.
template <class Problem>
cudaError_t launch_gemm_set_up(const Problem& problem, const gemm_call& call);
/// Does the same for two problems in one launch, on the stream of the first. Their groups have no
/// labels.
cudaError_t launch_gemm_set_ups(const gemm::row_problem& first, const gemm_call& of_first,
                                const gemm::row_problem& second, const gemm_call& of_second);
/// Computes the tiles, with the same call.
template <class Problem>
cudaError_t launch_gemm_tiles(const Problem& problem, const gemm_call& call);

}  // namespace tmap::kernels
