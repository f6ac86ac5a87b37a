// SPDX-License-Identifier: Apache-2.0
#pragma once

// max_pool_1d with windows that are too large for shared memory: longer than a piece. All windows
// of a piece then share a core, [last column - radius, first column + radius]. The rest of a window
// is the end of the stretch before the core and the beginning of the stretch after it. Three
// launches use the destination as their memory:
//   1. The maximum of each whole piece of a row goes to the piece's first place in the destination.
//   2. The core of each piece, from the maxima of the pieces inside it, goes to its second place.
//   3. The windows are written. The last piece of a row may be shorter, and its maximum is not
//      used. If it has only one element, step 2 finishes it, as its window is the core.

#include "kernels/ragged/segment_pipeline.cuh"
#include "kernels/ragged/window_scan.cuh"

#include <cstdint>

namespace tmap::kernels {

inline constexpr std::uint32_t far_piece = 512;

namespace detail {

inline constexpr std::uint32_t far_warps = 8;
enum class far_step : std::uint32_t { maxima, cores, windows };

struct far_arguments {
  std::uint32_t radius;
};

/// A part of a row, clamped to it. `end` is one past the last column.
struct stretch {
  std::uint64_t begin;
  std::uint64_t end;
};

/// A part of one row, and the row itself.
struct far_row {
  const float* row;
  float* out;
  std::uint64_t first;
  std::uint64_t length;
  std::uint32_t columns;
  std::uint32_t piece;  ///< columns of a whole piece
  std::uint64_t radius;

  __device__ bool is_alone() const { return columns == length; }
  __device__ std::uint64_t clamp(std::uint64_t end) const { return end < length ? end : length; }
  __device__ std::uint64_t back(std::uint64_t from, std::uint64_t steps) const {
    return from < steps ? 0 : from - steps;
  }

  __device__ stretch core() const { return {back(first + columns - 1, radius), clamp(first + radius + 1)}; }
  __device__ stretch before() const { return {back(first, radius), core().begin}; }
  __device__ stretch after() const { return {core().end, clamp(first + columns + radius)}; }
};

/// Returns this lane's share of the maximum of the values at begin, begin + step, ...
__device__ inline float largest(const float* values, std::uint64_t begin, std::uint64_t end, std::uint32_t step) {
  float top = lowest();
  const std::uint64_t lane = threadIdx.x % 32;
#pragma unroll 4
  for (std::uint64_t i = begin + lane * step; i < end; i += std::uint64_t{32} * step) {
    top = device::ptx::max_nan(top, values[i]);
  }
  return top;
}

__device__ inline float core_from_pieces(const far_row& part) {
  const stretch core = part.core();
  const std::uint64_t first_whole = (core.begin + part.piece - 1) / part.piece * part.piece;
  const std::uint64_t last_whole = core.end / part.piece * part.piece;
  if (first_whole >= last_whole) return join_lanes(largest(part.row, core.begin, core.end, 1), larger_or_nan{});
  float top = largest(part.out, first_whole, last_whole, part.piece);
  top = device::ptx::max_nan(top, largest(part.row, core.begin, first_whole, 1));
  return join_lanes(device::ptx::max_nan(top, largest(part.row, last_whole, core.end, 1)), larger_or_nan{});
}

__device__ inline void write_core(const far_row& part) {
  if (part.is_alone()) return;
  const float core = core_from_pieces(part);
  if (threadIdx.x % 32 != 0) return;
  part.out[part.first + (part.columns == 1 ? 0 : 1)] = core;
}

/// Writes the windows. Output i is the maximum of the core, of the part of its window before the
/// core, and of the part after it. `sides` has room for two pieces.
__device__ inline void write_windows(const far_row& part, float* sides) {
  if (part.columns == 1 && !part.is_alone()) return;
  const stretch core = part.core();
  const float common = part.is_alone() ? join_lanes(largest(part.row, core.begin, core.end, 1), larger_or_nan{})
                                       : part.out[part.first + 1];
  float* const prefix = sides + part.piece;
  const stretch before = part.before();
  const stretch after = part.after();
  const auto before_count = static_cast<std::uint32_t>(before.end - before.begin);
  const auto after_count = static_cast<std::uint32_t>(after.end - after.begin);
  for (std::uint32_t i = threadIdx.x % 32; i < before_count; i += 32) sides[i] = part.row[before.begin + i];
  for (std::uint32_t i = threadIdx.x % 32; i < after_count; i += 32) prefix[i] = part.row[after.begin + i];
  __syncwarp();
  scan_together<-1>(sides + before_count - 1, sides + before_count - 1, before_count, common);
  scan_together<1>(prefix, prefix, after_count, common);
  __syncwarp();
  for (std::uint32_t i = threadIdx.x % 32; i < part.columns; i += 32) {
    const std::uint64_t low = part.back(part.first + i, part.radius);
    const std::uint64_t end = part.clamp(part.first + i + part.radius + 1);
    float top = device::ptx::max_nan(common, common);
    if (low < core.begin) top = device::ptx::max_nan(top, sides[low - before.begin]);
    if (end > core.end) top = device::ptx::max_nan(top, prefix[end - 1 - core.end]);
    part.out[part.first + i] = top;
  }
  __syncwarp();
}

template <far_step Step>
__device__ void do_part(const far_row& part, float* sides) {
  if constexpr (Step == far_step::maxima) {
    if (part.is_alone() || part.columns < part.piece) return;
    const float top = join_lanes(largest(part.row, part.first, part.first + part.columns, 1), larger_or_nan{});
    if (threadIdx.x % 32 == 0) part.out[part.first] = top;
  } else if constexpr (Step == far_step::cores) {
    write_core(part);
  } else {
    write_windows(part, sides);
  }
}

template <far_step Step>
__global__ void __launch_bounds__(far_warps * 32, 3)
    far_kernel(const __grid_constant__ planned_work work, const __grid_constant__ far_arguments arguments) {
  __shared__ planned_tensor records[far_warps];
  __shared__ float sides[far_warps][2 * far_piece];
  cudaGridDependencySynchronize();
  const std::uint32_t warp = threadIdx.x / 32;
  segment_walk<row_cuts::even> walk(work, &records[warp], share_of_warp<far_warps>(work),
                                    {sizeof(float), sizeof(float)});
  segment s;
  box_corner corner;
  while (walk.next(s, corner)) {
    for (std::uint32_t row = 0; row < s.rows; ++row) {
      const std::uint64_t source = s.source + row * s.source_pitch - s.first * sizeof(float);
      const std::uint64_t destination = s.destination + row * s.destination_pitch - s.first * sizeof(float);
      const std::uint32_t piece = s.way == route::tensor_map ? work.rule.box_dim[0] : far_piece;
      do_part<Step>({reinterpret_cast<const float*>(source), reinterpret_cast<float*>(destination), s.first, s.length,
                     s.columns, piece, arguments.radius},
                    sides[warp]);
    }
  }
}

}  // namespace detail

inline cudaError_t launch_max_pool_far(const planned_work& work, std::uint32_t radius, const device_shape& device,
                                       cudaStream_t stream) {
  const detail::far_arguments arguments{radius};
  constexpr std::uint32_t threads = detail::far_warps * 32;
  const std::uint32_t blocks = device.multiprocessors * 4;
  cudaError_t code =
      launch_behind(detail::far_kernel<detail::far_step::maxima>, {blocks, threads}, stream, work, arguments);
  if (code != cudaSuccess) return code;
  code = launch_behind(detail::far_kernel<detail::far_step::cores>, {blocks, threads}, stream, work, arguments);
  if (code != cudaSuccess) return code;
  return launch_behind(detail::far_kernel<detail::far_step::windows>, {blocks, threads}, stream, work, arguments);
}

}  // namespace tmap::kernels
