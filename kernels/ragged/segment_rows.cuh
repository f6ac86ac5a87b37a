// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shares the elements, or 16-byte units, of some rows among the lanes of a warp.

#include "kernels/ragged/segment_walk.cuh"

#include <cstdint>

namespace tmap::kernels {

/// Calls `visit(row, i)` for each i below `each` of each row, spread over the lanes, with `Unroll`
/// calls in flight.
template <int Unroll = 1, class Visit>
__device__ void spread(std::uint32_t rows, std::uint32_t each, const Visit& visit) {
  const std::uint32_t lane = threadIdx.x % 32;
  if (rows == 1) {
#pragma unroll Unroll
    for (std::uint32_t i = lane; i < each; i += 32) visit(0u, i);
    return;
  }
#pragma unroll 1
  for (std::uint32_t i = lane; i < rows * each; i += 32) visit(i / each, i % each);
}

/// Elements of one row by the alignment of its destination: those before the first unit of 16
/// bytes, the units, and those after the last.
struct row_units {
  std::uint32_t head;
  std::uint32_t units;
  std::uint32_t ends;  ///< elements outside units

  __device__ row_units(std::uint64_t destination, std::uint32_t columns, std::uint32_t element_bytes) {
    const std::uint32_t each = 16 / element_bytes;
    const std::uint32_t lead = static_cast<std::uint32_t>(-destination) % 16 / element_bytes;
    head = lead < columns ? lead : columns;
    units = (columns - head) / each;
    ends = columns - units * each;
  }
  /// Returns the column of the i-th of the elements outside units.
  __device__ std::uint32_t end_column(std::uint32_t i, std::uint32_t columns) const {
    return i < head ? i : columns - ends + i;
  }
};

/// Calls `unit(row, column)` for each whole unit of the destination, and `element(row, column)` for
/// the elements around them. If the rows are not aligned alike, it calls only `element`.
template <int Unroll = 1, class Unit, class Element>
__device__ void visit_units(const segment& s, std::uint32_t element_bytes, const Unit& unit, const Element& element) {
  if (s.rows > 1 && s.destination_pitch % 16 != 0) {
    spread(s.rows, s.columns, element);
    return;
  }
  const row_units cut(s.destination, s.columns, element_bytes);
  const std::uint32_t each = 16 / element_bytes;
  spread<Unroll>(s.rows, cut.units, [&](std::uint32_t row, std::uint32_t i) { unit(row, cut.head + i * each); });
  spread(s.rows, cut.ends, [&](std::uint32_t row, std::uint32_t i) { element(row, cut.end_column(i, s.columns)); });
}

}  // namespace tmap::kernels
