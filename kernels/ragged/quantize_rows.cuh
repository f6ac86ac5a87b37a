// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of a planned tensor with scales, and the values that a lane holds of them.

#include "kernels/ragged/piece_walk.cuh"
#include "kernels/ragged/segment_values.cuh"

#include <tmap/detail/quantization.hpp>

#include <cstdint>

namespace tmap::kernels {

/// A part of rows at equal distances, and its scales. Addresses are those of the first row's first
/// element here, and of its scale.
struct scaled_rows {
  std::uint64_t source;
  std::uint64_t destination;
  std::uint64_t scales;
  std::uint64_t source_pitch;
  std::uint64_t destination_pitch;
  std::uint64_t scale_pitch;
  std::uint64_t scale_step;  ///< bytes from a block of a row to the next one
  std::uint64_t columns;
  std::uint32_t rows;

  /// Whether every chunk is whole, and its addresses are aligned to it.
  __device__ bool is_wide() const {
    const std::uint64_t read = source | (rows > 1 ? source_pitch : 0);
    const std::uint64_t written = destination | (rows > 1 ? destination_pitch : 0);
    return (read % 16 | written % 8 | columns % 8) == 0;
  }
  /// Whether it is wide, rows are a multiple of `width`, and nothing lies between them on both
  /// sides.
  __device__ bool is_dense(std::uint32_t width, std::uint32_t element_bytes) const {
    const bool has_gaps = rows > 1 && (source_pitch != columns * element_bytes || destination_pitch != columns);
    return !has_gaps && columns % width == 0 && is_wide();
  }
};

/// A part of the rows of a tensor: some columns, and some rows of one dim 1.
struct row_range {
  std::uint64_t slice;  ///< of dims 2 to 4
  std::uint64_t row;
  std::uint64_t first;  ///< column
  std::uint64_t columns;
  std::uint32_t rows;
};

/// Returns the place of a range. `block_columns` and `block_rows` are those of a block with a
/// scale.
template <std::uint32_t ElementBytes>
__device__ scaled_rows place_range(const planned_tensor& tensor, const planned_scales& scales, const row_range& range,
                                   std::uint32_t block_columns, std::uint32_t block_rows) {
  scaled_rows made{
      tensor.source + range.row * tensor.source_stride[0] + range.first * ElementBytes,
      tensor.destination + range.row * tensor.destination_stride[0] + range.first,
      scales.address + range.row / block_rows * scales.stride[0] + range.first / block_columns * scales.step,
      tensor.source_stride[0],
      tensor.destination_stride[0],
      scales.stride[0],
      scales.step,
      range.columns,
      range.rows};
  std::uint64_t slice = range.slice;
#pragma unroll 1
  for (std::uint32_t axis = 2; axis < max_rank && slice != 0; ++axis) {
    const std::uint64_t above = detail::divide(slice, tensor.dim[axis]);
    const std::uint64_t index = slice - above * tensor.dim[axis];
    made.source += index * tensor.source_stride[axis - 1];
    made.destination += index * tensor.destination_stride[axis - 1];
    made.scales += index * scales.stride[axis - 1];
    slice = above;
  }
  return made;
}

/// Calls `visit(range)` for the rows of a piece that is cut into rows (`piece_rule`).
template <class Visit>
__device__ void visit_row_ranges(const planned_tensor& tensor, const piece_rule& rule, std::uint64_t within,
                                 const Visit& visit) {
  const std::uint64_t length = tensor.dim[0];
  std::uint64_t row = 0;
  row_range range{0, 0, 0, length, 1};
  if (length > rule.piece_elements) {
    const std::uint64_t parts = detail::divide(length + rule.piece_elements - 1, rule.piece_elements);
    row = detail::divide(within, parts);
    range.first = (within - row * parts) * rule.piece_elements;
    const std::uint64_t left = length - range.first;
    range.columns = left < rule.piece_elements ? left : rule.piece_elements;
  } else {
    const std::uint32_t each = rule.piece_elements / static_cast<std::uint32_t>(length);
    row = within * each;
    const std::uint64_t left = tensor.dim[1] * tensor.dim[2] * tensor.dim[3] * tensor.dim[4] - row;
    range.rows = left < each ? static_cast<std::uint32_t>(left) : each;
  }
  for (std::uint32_t rows = range.rows; rows != 0; rows -= range.rows) {
    range.slice = row < tensor.dim[1] ? 0 : detail::divide(row, tensor.dim[1]);
    range.row = row - range.slice * tensor.dim[1];
    const std::uint64_t left = tensor.dim[1] - range.row;
    range.rows = left < rows ? static_cast<std::uint32_t>(left) : rows;
    visit(range);
    row += range.rows;
  }
}

/// Returns the range of a piece that is a square box of `width`.
__device__ inline row_range square_range(const planned_tensor& tensor, std::uint64_t within, std::uint32_t width) {
  const std::uint64_t across = detail::divide(tensor.dim[0] + width - 1, width);
  const std::uint64_t down = detail::divide(tensor.dim[1] + width - 1, width);
  const std::uint64_t line = detail::divide(within, across);
  row_range range{};
  range.slice = detail::divide(line, down);
  range.row = (line - range.slice * down) * width;
  range.first = (within - line * across) * width;
  const std::uint64_t columns = tensor.dim[0] - range.first;
  const std::uint64_t rows = tensor.dim[1] - range.row;
  range.columns = columns < width ? columns : width;
  range.rows = rows < width ? static_cast<std::uint32_t>(rows) : width;
  return range;
}

inline constexpr std::uint32_t chunk_values = 8;
inline constexpr std::uint32_t lane_bytes = 128;  ///< of values that a lane holds at once

/// Values next to each other in a row, in the registers of a lane. A register holds all that fit in
/// it: a loop that loads ahead would else need one for each value.
template <value_type From>
struct chunk {
  using word = value_word<From>;
  static constexpr std::uint32_t bytes = chunk_values * sizeof(word);
  static constexpr std::uint32_t per_register = sizeof(std::uint32_t) / sizeof(word);
  /// The chunks that a lane holds at once.
  static constexpr std::uint32_t most = lane_bytes / bytes;

  std::uint32_t bits[bytes / sizeof(std::uint32_t)];

  __device__ void set_unit(std::uint32_t i, const uint4& unit) {
    bits[4 * i] = unit.x;
    bits[4 * i + 1] = unit.y;
    bits[4 * i + 2] = unit.z;
    bits[4 * i + 3] = unit.w;
  }

  /// Loads the first `count` values. The others become 0. With `IsWide`, there are all or none, and
  /// the address is a multiple of 16.
  template <bool IsWide>
  __device__ void load(std::uint64_t address, std::uint32_t count) {
    if constexpr (IsWide) {
#pragma unroll
      for (std::uint32_t i = 0; i < bytes / sizeof(uint4); ++i) {
        uint4 unit{};
        if (count != 0) unit = __ldcs(reinterpret_cast<const uint4*>(address) + i);
        set_unit(i, unit);
      }
    } else {
      alignas(sizeof(std::uint32_t)) word words[chunk_values];
#pragma unroll
      for (std::uint32_t i = 0; i < chunk_values; ++i) {
        words[i] = i < count ? reinterpret_cast<const word*>(address)[i] : word{};
      }
#pragma unroll
      for (std::uint32_t i = 0; i < chunk_values / per_register; ++i) {
        bits[i] = reinterpret_cast<const std::uint32_t*>(words)[i];
      }
    }
  }

  /// Returns value `i`.
  __device__ float operator[](std::uint32_t i) const {
    const std::uint32_t held = bits[i / per_register];
    if constexpr (From == value_type::f32) return __uint_as_float(held);
    if constexpr (From == value_type::bf16) return __uint_as_float(i % 2 == 0 ? held << 16 : held & 0xffff0000u);
    if constexpr (From == value_type::f16) return to_float<From>(static_cast<word>(held >> i % 2 * 16));
  }

  /// Returns the bits of the largest magnitude, without a sign. Those of infinities and NaNs are
  /// larger than all others.
  __device__ std::uint32_t top() const {
    std::uint32_t most_bits = 0;
    if constexpr (From == value_type::f32) {
#pragma unroll
      for (const std::uint32_t value : bits) most_bits = max(most_bits, value & 0x7fffffffu);
      return most_bits;
    } else {
#pragma unroll
      for (const std::uint32_t both : bits) most_bits = __vmaxu2(most_bits, both & 0x7fff7fffu);
      return max(most_bits & 0xffffu, most_bits >> 16);
    }
  }

  /// Stores the first `count` values times `factor`. With `IsWide`, there are all or none, and the
  /// address is a multiple of 8.
  template <value_type To, bool IsWide>
  __device__ void store(std::uint64_t address, std::uint32_t count, float factor) const {
    std::uint32_t pairs[chunk_values / 2];
#pragma unroll
    for (std::uint32_t i = 0; i < chunk_values / 2; ++i) {
      const float2 both{(*this)[2 * i] * factor, (*this)[2 * i + 1] * factor};
      pairs[i] = __nv_cvt_float2_to_fp8x2(both, __NV_SATFINITE, To == value_type::f8_e4m3 ? __NV_E4M3 : __NV_E5M2);
    }
    if constexpr (IsWide) {
      const uint2 all{pairs[0] | pairs[1] << 16, pairs[2] | pairs[3] << 16};
      if (count != 0) *reinterpret_cast<uint2*>(address) = all;
    } else {
#pragma unroll
      for (std::uint32_t i = 0; i < chunk_values; ++i) {
        const auto value = static_cast<std::uint8_t>(pairs[i / 2] >> i % 2 * 8);
        if (i < count) reinterpret_cast<std::uint8_t*>(address)[i] = value;
      }
    }
  }
};

/// Returns the number of values that a chunk has from `column` on.
__device__ inline std::uint32_t chunk_count(std::uint64_t column, std::uint64_t columns) {
  if (column >= columns) return 0;
  return columns - column < chunk_values ? static_cast<std::uint32_t>(columns - column) : chunk_values;
}

/// Returns the largest of the bits that groups of `width` lanes have.
template <std::uint32_t Width>
__device__ std::uint32_t join_tops(std::uint32_t mine) {
#pragma unroll
  for (std::uint32_t distance = Width / 2; distance != 0; distance /= 2) {
    mine = max(mine, __shfl_xor_sync(~0u, mine, distance));
  }
  return mine;
}

/// Returns the largest tops of one of `Count` chunks that each of 16 lanes has. Lane i gets those
/// of chunk `chunk_of_lane`. Each exchange halves the chunks that a lane is still concerned with.
template <std::uint32_t Count>
__device__ std::uint32_t join_tops_of_chunks(std::uint32_t (&tops)[Count]) {
  std::uint32_t distance = 8;
#pragma unroll
  for (std::uint32_t left = Count / 2; left != 0; left /= 2, distance /= 2) {
    const bool is_upper = (threadIdx.x & distance) != 0;
#pragma unroll
    for (std::uint32_t i = 0; i < left; ++i) {
      const std::uint32_t given = is_upper ? tops[i] : tops[i + left];
      const std::uint32_t kept = is_upper ? tops[i + left] : tops[i];
      tops[i] = max(kept, __shfl_xor_sync(~0u, given, distance));
    }
  }
#pragma unroll
  for (; distance != 0; distance /= 2) tops[0] = max(tops[0], __shfl_xor_sync(~0u, tops[0], distance));
  return tops[0];
}
template <std::uint32_t Count>
__device__ std::uint32_t chunk_of_lane() {
  return threadIdx.x % 16 / (16 / Count);
}

template <value_type From, value_type To>
__device__ tmap::detail::block_scale scale_of_top(std::uint32_t top, bool powers_of_two) {
  float value;
  if constexpr (From == value_type::f32) {
    value = __uint_as_float(top);
  } else {
    value = to_float<From>(static_cast<std::uint16_t>(top));
  }
  return tmap::detail::scale_of(value, tmap::detail::largest_f8(To), powers_of_two);
}

}  // namespace tmap::kernels
