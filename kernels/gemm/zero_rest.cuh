// SPDX-License-Identifier: Apache-2.0
#pragma once

// Clears the rows of C that no group writes, while a product is set up.

#include <tmap/device/warp.cuh>

#include <cstdint>

#include "kernels/gemm/judge_group.cuh"

namespace tmap::kernels::detail {

/// The rows that groups write, in shared memory. Groups have no rows in common, so they leave no
/// gap if there are as many rows as lie between the first and the last.
struct written_rows {
  std::uint32_t first;
  std::uint32_t end;
  std::uint32_t count;

  __device__ void reset() { *this = {~0u, 0, 0}; }

  /// All lanes of a warp call it, each with a group or with none.
  __device__ void add(const judged_group& judged) {
    const std::uint32_t rows = judged.has_work ? judged.group.m : 0;
    const std::uint32_t begin = judged.group.first_row;
    const std::uint32_t warp_first = __reduce_min_sync(~0u, rows != 0 ? begin : ~0u);
    const std::uint32_t warp_end = __reduce_max_sync(~0u, rows != 0 ? begin + rows : 0);
    const std::uint32_t warp_count = __reduce_add_sync(~0u, rows);
    if (threadIdx.x % device::warp_lanes != 0) return;
    atomicMin(&first, warp_first);
    atomicMax(&end, warp_end);
    atomicAdd(&count, warp_count);
  }
  __device__ bool have_gaps() const { return count != end - first; }
};

/// Clears this block's share of the rows that are not written, or of all rows if those have gaps:
/// the product comes later. All threads of `set_up_threads` call it.
__device__ inline void zero_rest(const gemm::row_problem& problem, const written_rows& written, std::uint32_t block,
                                 std::uint32_t blocks) {
  const std::uint32_t kept = written.have_gaps() ? 0 : written.count;
  const std::uint64_t units = c_columns(problem, problem.n) * gemm::result_bytes(problem.c_type) / sizeof(uint4);
  const std::uint64_t first = block * set_up_warps + threadIdx.x / device::warp_lanes;
  for (std::uint64_t i = first; i < problem.rows - kept; i += std::uint64_t{blocks} * set_up_warps) {
    const std::uint64_t row = kept == 0 || i < written.first ? i : i + kept;
    auto* const to = reinterpret_cast<uint4*>(problem.c.address + row * problem.c.pitch_bytes);
    for (std::uint64_t unit = threadIdx.x % device::warp_lanes; unit < units; unit += device::warp_lanes) {
      to[unit] = uint4{};
    }
  }
}
template <class Problem>
__device__ void zero_rest(const Problem&, const written_rows&, std::uint32_t, std::uint32_t) {}

}  // namespace tmap::kernels::detail
