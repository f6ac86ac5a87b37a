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

/// The units of a block. Each thread holds some of them, between loading and storing. Units are
/// numbered in the block.
template <class Unit>
class held_units {
 public:
  explicit __device__ held_units(const padding_work& work) : work_(work), first_(work.first_unit()) {}

  /// Loads the units from a matrix like the one that is written.
  __device__ void load_alike(std::uint64_t from) {
    loaded_from_ = from;
#pragma unroll
    for (std::uint32_t k = 0; k < most_units_of_thread; ++k) {
      if (exists(k)) values_[k] = load_unit<Unit>(place(from, k));
    }
  }

  /// Calls `source(unit, exists)` for each unit, which returns the address of its bytes, or 0 for
  /// the fill. Whole warps call it. What was loaded from the same address is kept.
  template <class Source>
  __device__ void load(const Source& source) {
    // An element may have more bytes than a unit.
    const auto* const fills = reinterpret_cast<const Unit*>(&work_.fill);
    constexpr std::uint32_t all_fills = sizeof work_.fill / sizeof(Unit);
#pragma unroll
    for (std::uint32_t k = 0; k < most_units_of_thread; ++k) {
      const std::uint64_t from = source(unit(k), exists(k));
      if (from == 0)
        values_[k] = fills[unit(k) % all_fills];
      else if (loaded_from_ == 0 || from != place(loaded_from_, k))
        values_[k] = load_unit<Unit>(from);
    }
  }

  __device__ void store(std::uint64_t to) const {
#pragma unroll
    for (std::uint32_t k = 0; k < most_units_of_thread; ++k) {
      if (exists(k)) store_unit(place(to, k), values_[k]);
    }
  }

 private:
  __device__ static std::uint32_t unit(std::uint32_t k) {
    return k * padding_threads + threadIdx.x;
  }
  __device__ bool exists(std::uint32_t k) const {
    return k < work_.units_of_thread && first_ + unit(k) < work_.units;
  }
  __device__ std::uint64_t place(std::uint64_t matrix, std::uint32_t k) const {
    return matrix + (first_ + unit(k)) * sizeof(Unit);
  }

  const padding_work& work_;
  std::uint64_t first_;
  std::uint64_t loaded_from_ = 0;
  Unit values_[most_units_of_thread];
};

}  // namespace tmap::kernels
