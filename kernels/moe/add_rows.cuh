// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adds up the weighted rows of a token's choices, in their order.

#include <cstdint>

#include "kernels/moe/row_units.cuh"

namespace tmap::kernels {

/// So many rows of a token are loaded before any of them is added.
inline constexpr std::uint32_t rows_at_once = 8;

/// Adds `Count` rows, from choice `first` on. All loads are issued before the sums. `Rows` returns
/// the row and the weight of a choice, whether the row is there, and where a unit of it is.
template <class Element, std::uint32_t Count, class Rows>
__device__ void add_rows(const Rows& from, std::uint64_t first, std::uint64_t unit,
                         float (&sums)[unit_of<Element>::count]) {
  std::int32_t rows[Count];
  float weights[Count];
  uint4 units[Count];
#pragma unroll
  for (std::uint32_t j = 0; j < Count; ++j) {
    rows[j] = from.row(first + j);
    weights[j] = from.weight(first + j);
  }
#pragma unroll
  for (std::uint32_t j = 0; j < Count; ++j) {
    if (from.has(rows[j])) units[j] = *from.at(rows[j], unit);
  }
#pragma unroll
  for (std::uint32_t j = 0; j < Count; ++j) {
    if (!from.has(rows[j])) continue;
    float values[unit_of<Element>::count];
    unit_of<Element>::read(units[j], values);
#pragma unroll
    for (std::uint32_t i = 0; i < unit_of<Element>::count; ++i) sums[i] = fmaf(weights[j], values[i], sums[i]);
  }
}

}  // namespace tmap::kernels
