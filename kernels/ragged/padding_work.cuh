// SPDX-License-Identifier: Apache-2.0
#pragma once

// Moves units into a matrix without gaps, a block of them at a time. A *unit* is the largest part
// of a row that all addresses and rows allow.

#include <tmap/config.hpp>
#include <tmap/padded_rows.hpp>

#include "kernels/ragged/granule.cuh"

namespace tmap::kernels {

inline constexpr std::uint32_t padding_threads = 256;
inline constexpr std::uint32_t most_units_of_thread = 4;  // loaded before any is stored

struct padding_work {
  ragged::padded_rows rows;
  std::uint64_t row_units;
  std::uint64_t units;            ///< of the matrix that is written
  uint4 fill;                     ///< repetitions of the element
  std::uint32_t units_of_thread;  ///< at most `most_units_of_thread`

  TMAP_HOST_DEVICE std::uint32_t units_of_block() const { return padding_threads * units_of_thread; }
  /// Returns the first unit of this block.
  __device__ std::uint64_t first_unit() const { return std::uint64_t{blockIdx.x} * units_of_block(); }
  /// Returns the unit after the last one of this block.
  __device__ std::uint64_t end_unit() const {
    const std::uint64_t end = first_unit() + units_of_block();
    return end < units ? end : units;
  }
};

/// Writes the units of a block to the matrix `to`. Calls `source(unit)` for each, numbered in the
/// block, which returns the address of its bytes, or 0 for the fill. A thread loads all its units
/// before it stores one.
template <class Unit, class Source>
__device__ void move_units(const padding_work& work, std::uint64_t to, const Source& source) {
  // An element may have more bytes than a unit.
  const auto* const fills = reinterpret_cast<const Unit*>(&work.fill);
  constexpr std::uint32_t all_fills = sizeof work.fill / sizeof(Unit);
  const std::uint64_t first = work.first_unit();
  const auto exists = [&](std::uint32_t k) {
    return k < work.units_of_thread && first + k * padding_threads + threadIdx.x < work.units;
  };
  Unit held[most_units_of_thread];
#pragma unroll
  for (std::uint32_t k = 0; k < most_units_of_thread; ++k) {
    const std::uint32_t unit = k * padding_threads + threadIdx.x;
    const std::uint64_t from = exists(k) ? source(unit) : 0;
    held[k] = from == 0 ? fills[unit % all_fills] : load_unit<Unit>(from);
  }
#pragma unroll
  for (std::uint32_t k = 0; k < most_units_of_thread; ++k) {
    if (exists(k)) store_unit(to + (first + k * padding_threads + threadIdx.x) * sizeof(Unit), held[k]);
  }
}

}  // namespace tmap::kernels
