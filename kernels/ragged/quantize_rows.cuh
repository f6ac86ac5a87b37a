// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the rows of a planned tensor with scales.

#include "kernels/ragged/piece_walk.cuh"

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

/// The extents of a box along dims 0 and 1.
struct box_extents {
  std::uint32_t columns;
  std::uint32_t rows;
};

/// Returns the place of a range. `block` has the extents of a block with a scale. With `IsTurned`,
/// columns of the source are rows of the destination.
template <std::uint32_t ElementBytes, bool IsTurned>
__device__ scaled_rows place_range(const planned_tensor& tensor, const planned_scales& scales, const row_range& range,
                                   const box_extents& block) {
  const std::uint64_t line = IsTurned ? range.first : range.row;
  const std::uint64_t at = IsTurned ? range.row : range.first;
  scaled_rows made{
      tensor.source + range.row * tensor.source_stride[0] + range.first * ElementBytes,
      tensor.destination + line * tensor.destination_stride[0] + at,
      scales.address + range.row / block.rows * scales.stride[0] + range.first / block.columns * scales.step,
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

/// Returns the range of a piece that is a box.
__device__ inline row_range box_range(const planned_tensor& tensor, std::uint64_t within, const box_extents& box) {
  const std::uint64_t across = detail::divide(tensor.dim[0] + box.columns - 1, box.columns);
  const std::uint64_t down = detail::divide(tensor.dim[1] + box.rows - 1, box.rows);
  const std::uint64_t line = detail::divide(within, across);
  row_range range{};
  range.slice = detail::divide(line, down);
  range.row = (line - range.slice * down) * box.rows;
  range.first = (within - line * across) * box.columns;
  const std::uint64_t columns = tensor.dim[0] - range.first;
  const std::uint64_t rows = tensor.dim[1] - range.row;
  range.columns = columns < box.columns ? columns : box.columns;
  range.rows = rows < box.rows ? static_cast<std::uint32_t>(rows) : box.rows;
  return range;
}

}  // namespace tmap::kernels
