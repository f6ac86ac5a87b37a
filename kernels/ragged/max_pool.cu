// SPDX-License-Identifier: Apache-2.0
#include "kernels/ragged/max_pool_far.cuh"
#include "kernels/ragged/segment_pipeline.cuh"
#include "kernels/ragged/segment_rows.cuh"
#include "kernels/ragged/window_scan.cuh"

namespace tmap::kernels {
namespace {

// A row is cut into blocks as long as a window, which has 2 * radius + 1 elements. A window is then
// the end of one block and the beginning of the next. Its maximum is that of a suffix of the first
// and a prefix of the second. An element takes three comparisons for every radius.

constexpr std::uint32_t stage_floats = 1024;
constexpr std::uint32_t staged_radius = 256;  // larger windows: max_pool_far.cuh

struct max_pool {
  struct arguments {
    std::uint32_t radius;
  };
  static constexpr std::uint32_t warps = 16;
  static constexpr std::uint32_t stages = 2;
  static constexpr std::uint32_t inputs = 1;
  static constexpr std::uint32_t stage_bytes = stage_floats * sizeof(float) + stage_alignment;
  static constexpr std::uint32_t scratch_bytes = stage_floats * sizeof(float);
  static constexpr row_cuts cuts = row_cuts::at_lines;

  std::uint32_t radius;
  float* prefix;

  __device__ max_pool(const planned_work&, const arguments& given, unsigned char* scratch)
      : radius(given.radius), prefix(reinterpret_cast<float*>(scratch)) {}
  __device__ piece_steps steps(const planned_work& work) const { return share_of_warp<warps>(work); }
  __device__ static element_sizes sizes() { return {sizeof(float), sizeof(float)}; }
  __device__ std::uint32_t reach() const { return radius; }

  __device__ void staged(const segment& s, unsigned char* row, const unsigned char*, std::uint32_t) const {
    auto* const x = reinterpret_cast<float*>(row);
    const std::uint32_t reached = s.columns + 2 * radius;
    blank_outside(s, x);
    scan_blocks(x, prefix, reached, 2 * radius + 1);
    __syncwarp();
    auto* const y = reinterpret_cast<float*>(s.destination);
    const std::uint32_t lead = s.destination % line_bytes / sizeof(float);
    const std::uint32_t lane = threadIdx.x % 32;
    if (lane >= lead && lane - lead < s.columns) y[lane - lead] = window(x, lane - lead);
    write_windows(x, y, 32 - lead + lane, s.columns);
  }

  __device__ float window(const float* x, std::uint32_t column) const {
    return device::ptx::max_nan(x[column], prefix[column + 2 * radius]);
  }

  /// Reads eight windows before it writes the first, as no load may pass a store.
  __device__ void write_windows(const float* x, float* y, std::uint32_t begin, std::uint32_t end) const {
    constexpr std::uint32_t batch = 8;
    std::uint32_t column = begin;
    for (; column + (batch - 1) * 32 < end; column += batch * 32) {
      float made[batch];
#pragma unroll
      for (std::uint32_t k = 0; k < batch; ++k) made[k] = window(x, column + k * 32);
#pragma unroll
      for (std::uint32_t k = 0; k < batch; ++k) y[column + k * 32] = made[k];
    }
    for (; column < end; column += 32) y[column] = window(x, column);
  }

  /// Fills the places outside the row.
  __device__ void blank_outside(const segment& s, float* x) const {
    const std::uint64_t columns_after = s.length - s.first - s.columns;
    const std::uint32_t before = s.first < radius ? radius - static_cast<std::uint32_t>(s.first) : 0;
    const std::uint32_t after = columns_after < radius ? radius - static_cast<std::uint32_t>(columns_after) : 0;
    if (before + after == 0) return;
    const std::uint32_t reached = s.columns + 2 * radius;
    for (std::uint32_t i = threadIdx.x % 32; i < before; i += 32) x[i] = lowest();
    for (std::uint32_t i = threadIdx.x % 32; i < after; i += 32) x[reached - 1 - i] = lowest();
    __syncwarp();
  }

  __device__ void direct(const segment& s) const {
    spread(s.rows, s.columns, [&](std::uint32_t row, std::uint32_t column) {
      const auto* const x = reinterpret_cast<const float*>(s.source + row * s.source_pitch);
      const std::uint32_t low = column < radius ? 0 : column - radius;
      const std::uint32_t high = s.columns - 1 - column < radius ? s.columns - 1 : column + radius;
      float top = lowest();
      for (std::uint32_t i = low; i <= high; ++i) top = device::ptx::max_nan(top, x[i]);
      reinterpret_cast<float*>(s.destination + row * s.destination_pitch)[column] = top;
    });
  }
};

}  // namespace

/// A piece has as many elements as keep all lanes at work: blocks of windows in whole rounds of 32,
/// and lines of 32 outputs.
piece_rule max_pool_pieces(std::uint32_t radius, std::uint32_t rank) {
  const piece_rule rule{far_piece, {box_columns, 1, 1, 1, 1}, 0, rank};
  if (radius > staged_radius) return rule;
  const std::uint32_t round = 32 * (2 * radius + 1);
  const std::uint32_t reached = round > stage_floats ? stage_floats : stage_floats / round * round;
  // The first piece of a row may have more elements, by one less than a line holds.
  constexpr std::uint32_t line_floats = line_bytes / sizeof(float);
  const std::uint32_t most = stage_floats - (line_floats - 1);
  piece_rule staged = rule;
  staged.piece_elements = ((reached < most ? reached : most) - 2 * radius) / line_floats * line_floats;
  return staged;
}

cudaError_t launch_max_pool_1d(const planned_work& work, std::uint32_t radius, const device_shape& device,
                               cudaStream_t stream) {
  if (radius > staged_radius) return launch_max_pool_far(work, radius, device, stream);
  return launch_segments<max_pool>(work, {radius}, device, stream);
}

}  // namespace tmap::kernels
