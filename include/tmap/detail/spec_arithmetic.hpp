// SPDX-License-Identifier: Apache-2.0
#pragma once

// The limits of the rules, and sums over a spec that no input can wrap.

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/device_limits.hpp>
#include <tmap/rule.hpp>
#include <tmap/tensor_spec.hpp>

namespace tmap::detail {

using uint128 = __uint128_t;  // of NVRTC with --device-int128

inline constexpr std::uint64_t max_global_dim = std::uint64_t{1} << 32;
/// Beyond this the driver still encodes, but the first copy raises an illegal instruction.
inline constexpr std::uint64_t max_copied_dim = std::uint64_t{1} << 31;
inline constexpr std::uint64_t global_stride_limit = std::uint64_t{1} << 40;
inline constexpr std::uint64_t max_box_dim = 256;
inline constexpr std::uint64_t max_element_stride = 8;
/// The most bytes of one box that the driver accepts, by its own count (T37).
inline constexpr std::uint64_t max_box_bytes = 228 * 1024;
/// One past the last address a GPU can have.
inline constexpr std::uint64_t address_limit = std::uint64_t{1} << 57;

TMAP_HOST_DEVICE constexpr bool is_warning(rule id) {
  return id == rule::t16_stride_overlap || id == rule::t35_tile_fits_shared_memory;
}

/// Returns the number of axes that may be read. T03 reports a rank out of range.
TMAP_HOST_DEVICE constexpr std::uint32_t readable_rank(const tensor_spec& spec) {
  return spec.rank < max_rank ? spec.rank : max_rank;
}

TMAP_HOST_DEVICE constexpr bool needs_32_byte_alignment(element_type type) {
  return type == element_type::u4_align16 || type == element_type::u6_align16;
}

/// Returns the smallest number of elements that fills whole 16-byte units: 128 for the types whose
/// units have gaps, 0 for a value that is no element type.
TMAP_HOST_DEVICE constexpr std::uint32_t elements_per_16_bytes(element_type type) {
  if (needs_32_byte_alignment(type)) return 128;
  const std::uint32_t bits = element_bits(type);
  return bits == 0 ? 0 : 128 / bits;
}

TMAP_HOST_DEVICE constexpr std::uint64_t clamp_above(std::uint64_t value, std::uint64_t bound) {
  return value < bound ? value : bound;
}

TMAP_HOST_DEVICE constexpr std::uint64_t saturate(uint128 value) {
  constexpr std::uint64_t top = ~std::uint64_t{0};
  return value < top ? static_cast<std::uint64_t>(value) : top;
}

/// Returns the bytes of `count` steps along dimension 0, where an interleaved map counts units of
/// 16 or 32 bytes.
TMAP_HOST_DEVICE constexpr std::uint64_t row_bytes(const tensor_spec& spec, std::uint64_t count) {
  switch (spec.interleave) {
    case interleave::bytes_16: return 16 * count;
    case interleave::bytes_32: return 32 * count;
    default: return element_bytes(spec.type, count);
  }
}

/// Returns the bytes from element 0 to the end of the last element of the lowest `axes` dimensions.
/// Values out of range count as the nearest legal one (T09 and T14 report them), so the sum stays
/// below 2^75.
TMAP_HOST_DEVICE constexpr uint128 reach_bytes(const tensor_spec& spec, std::uint32_t axes) {
  const std::uint64_t row = clamp_above(spec.global_dim[0], max_global_dim);
  uint128 reach = row_bytes(spec, row);
  for (std::uint32_t axis = 1; axis < max_rank; ++axis) {
    const std::uint64_t dim = clamp_above(spec.global_dim[axis], max_global_dim);
    if (axis >= axes || dim <= 1) continue;
    const auto steps = static_cast<std::uint32_t>(dim - 1);  // 32 bits save a GPU half of the wide product
    reach += uint128{steps} * clamp_above(spec.global_stride_bytes[axis - 1], global_stride_limit);
  }
  return reach;
}

/// Whether `rows` rows of `row_bytes`, each `pitch` after the one before, lie below
/// `address_limit`.
TMAP_HOST_DEVICE constexpr bool has_addresses(std::uint64_t address, std::uint64_t rows, std::uint64_t pitch,
                                              std::uint64_t row_bytes) {
  if (address >= address_limit) return false;
  const uint128 reach = rows == 0 ? 0 : uint128{rows - 1} * pitch + row_bytes;
  return reach <= address_limit - address;
}

/// Returns the smallest legal inner dim, and a stride that is legal for every type and interleave.
TMAP_HOST_DEVICE constexpr std::uint64_t smallest_inner_dim(element_type type) {
  if (needs_32_byte_alignment(type)) return 128;
  return type == element_type::u4_align8 ? 2 : 1;
}
inline constexpr std::uint64_t smallest_stride = 32;

}  // namespace tmap::detail
