// SPDX-License-Identifier: Apache-2.0
#pragma once

// The checks behind validate.hpp, one function for each group of rules, in the order of the table
// (docs/fields_and_rules.md). `Report` is called as report(rule, axis, found, allowed) for each broken rule.

#include <tmap/config.hpp>
#include <tmap/device_limits.hpp>
#include <tmap/rule.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>

namespace tmap::detail {

__extension__ typedef unsigned __int128 uint128;

inline constexpr std::uint64_t max_global_dim = std::uint64_t{1} << 32;
inline constexpr std::uint64_t global_stride_limit = std::uint64_t{1} << 40;
inline constexpr std::uint64_t max_box_dim = 256;
inline constexpr std::uint64_t max_element_stride = 8;
inline constexpr std::uint32_t packed_type_compute_capability = 100;

TMAP_HOST_DEVICE constexpr bool is_warning(rule id) {
  return id == rule::t16_stride_overlap || id == rule::t35_tile_fits_shared_memory;
}

/// How many axes may be looked at: a rank out of range is T03's affair, not a reason to read past an array.
TMAP_HOST_DEVICE constexpr std::uint32_t readable_rank(const tensor_spec& spec) {
  return spec.rank < max_rank ? spec.rank : max_rank;
}

TMAP_HOST_DEVICE constexpr bool needs_32_byte_alignment(element_type type) {
  return type == element_type::u4_align16 || type == element_type::u6_align16;
}

}  // namespace tmap::detail
