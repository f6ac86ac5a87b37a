// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the offsets of ragged batches, in every kernel and on the host. Any bits are legal input:
// sums are modulo 2^64, and the judge of an item refuses a negative number of rows.

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/map_patch.hpp>

namespace tmap::detail {

/// Signed integers of a type known when compiled.
template <class Integer>
struct integer_array {
  const Integer* values;

  TMAP_HOST_DEVICE constexpr std::int64_t operator[](std::uint64_t i) const { return values[i]; }
};

/// Signed integers of 4 or 8 bytes, a size known only when the kernel runs.
template <>
struct integer_array<void> {
  const void* values;
  std::uint32_t bytes;

  TMAP_HOST_DEVICE std::int64_t operator[](std::uint64_t i) const {
    return bytes == 4 ? static_cast<const std::int32_t*>(values)[i] : static_cast<const std::int64_t*>(values)[i];
  }
};

/// A number of rows that every judge refuses: it is negative.
inline constexpr std::uint64_t too_many_rows = std::uint64_t{1} << 63;

template <class Integer>
struct offset_reader {
  integer_array<Integer> offsets;
  offset_format format;
  integer_array<Integer> counts;
  std::uint64_t slot_rows;

  /// Returns the first row of item `i`. For `sizes` it is `begins[i]`, a running sum.
  TMAP_HOST_DEVICE constexpr std::int64_t begin(std::uint64_t i, const std::int64_t* begins = nullptr) const {
    switch (format) {
      case offset_format::ends: return i == 0 ? 0 : offsets[i - 1];
      case offset_format::prefix:
      case offset_format::begins_and_counts: return offsets[i];
      case offset_format::slots: return static_cast<std::int64_t>(i * slot_rows);
      default: return begins[i];
    }
  }

  /// Returns the number of rows of item `i`, whose first row is `begin`. More rows than a slot has
  /// become so many that no matrix has them.
  TMAP_HOST_DEVICE constexpr std::uint64_t count(std::uint64_t i, std::uint64_t begin) const {
    switch (format) {
      case offset_format::ends: return static_cast<std::uint64_t>(offsets[i]) - begin;
      case offset_format::prefix: return static_cast<std::uint64_t>(offsets[i + 1]) - begin;
      case offset_format::begins_and_counts: return static_cast<std::uint64_t>(counts[i]);
      case offset_format::slots: {
        const auto rows = static_cast<std::uint64_t>(offsets[i]);
        return rows <= slot_rows ? rows : too_many_rows;
      }
      default: return static_cast<std::uint64_t>(offsets[i]);
    }
  }
};

inline TMAP_HOST_DEVICE offset_reader<void> reader_of(const row_offsets& of) {
  return {{of.values, of.bytes}, of.format, {of.counts, of.bytes}, of.slot_rows};
}

}  // namespace tmap::detail
