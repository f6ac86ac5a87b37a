// SPDX-License-Identifier: Apache-2.0
#include "kernels/ragged/segment_pipeline.cuh"
#include "kernels/ragged/segment_rows.cuh"

namespace tmap::kernels {
namespace {

constexpr std::uint32_t piece_floats = 1024;

struct saxpy {
  struct arguments {
    float a;
  };
  static constexpr std::uint32_t warps = 8;
  static constexpr std::uint32_t stages = 3;
  static constexpr std::uint32_t inputs = 2;
  static constexpr std::uint32_t stage_bytes = piece_floats * sizeof(float) + line_bytes + stage_alignment;
  static constexpr std::uint32_t scratch_bytes = 0;
  static constexpr row_cuts cuts = row_cuts::at_lines;

  float a;

  __device__ saxpy(const planned_work&, const arguments& given, unsigned char*) : a(given.a) {}
  __device__ piece_steps steps(const planned_work& work) const { return share_of_warp<warps>(work); }
  __device__ static element_sizes sizes() { return {sizeof(float), sizeof(float)}; }
  __device__ static std::uint32_t reach() { return 0; }

  __device__ void staged(const segment& s, const unsigned char* x_row, const unsigned char* y_row,
                         std::uint32_t pitch) const {
    const auto* const x = reinterpret_cast<const float*>(x_row);
    const auto* const y = reinterpret_cast<const float*>(y_row);
    const bool is_aligned = (s.source ^ s.destination) % 16 == 0 || s.way == route::tensor_map;
    const auto unit = [&](std::uint32_t row, std::uint32_t column) {
      const float* const at = x + row * pitch + column;
      const float4 mine = is_aligned ? *reinterpret_cast<const float4*>(at) : float4{at[0], at[1], at[2], at[3]};
      const float4 sum = *reinterpret_cast<const float4*>(y + row * pitch + column);
      const float4 made{fmaf(a, mine.x, sum.x), fmaf(a, mine.y, sum.y), fmaf(a, mine.z, sum.z), fmaf(a, mine.w, sum.w)};
      *reinterpret_cast<float4*>(place(s, row, column)) = made;
    };
    visit_units<4>(s, sizeof(float), unit, [&](std::uint32_t row, std::uint32_t column) {
      const std::uint32_t at = row * pitch + column;
      *place(s, row, column) = fmaf(a, x[at], y[at]);
    });
  }

  __device__ void direct(const segment& s) const {
    spread<4>(s.rows, s.columns, [&](std::uint32_t row, std::uint32_t column) {
      float* const y = place(s, row, column);
      *y = fmaf(a, reinterpret_cast<const float*>(s.source + row * s.source_pitch)[column], *y);
    });
  }

  __device__ static float* place(const segment& s, std::uint32_t row, std::uint32_t column) {
    return reinterpret_cast<float*>(s.destination + row * s.destination_pitch) + column;
  }
};

}  // namespace

piece_rule saxpy_pieces(std::uint32_t rank) {
  return {piece_floats, {box_columns, piece_floats / box_columns, 1, 1, 1}, 0, rank};
}

cudaError_t launch_saxpy(const planned_work& work, float a, const device_shape& device, cudaStream_t stream) {
  return launch_segments<saxpy>(work, {a}, device, stream);
}

}  // namespace tmap::kernels
