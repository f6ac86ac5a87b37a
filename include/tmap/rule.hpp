// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>

namespace tmap {

/// The rules that a tensor map or its use must obey. T: cuTensorMapEncodeTiled; I: im2col; W:
/// im2col-wide; U: the instruction that uses the map. The enumerator is the number of its bit in a
/// `rule_set`.
enum class rule : std::uint8_t {
  t01_map_alignment,
  t02_element_type,
  t03_rank,
  t04_interleave_rank,
  t05_address_null,
  t06_address_multiple_of_16,
  t07_address_interleave_32,
  t08_address_packed_type,
  t09_global_dim_range,
  t10_global_dim_packed_type,
  t11_global_dim_even,
  t12_strides_present,
  t13_stride_multiple_of_16,
  t14_stride_range,
  t15_stride_multiple_of_32,
  t16_stride_overlap,
  t17_box_dim_range,
  t18_inner_box_multiple_of_16,
  t19_inner_box_packed_type,
  t20_element_stride_range,
  t21_interleave_value,
  t22_inner_box_swizzle_32,
  t23_inner_box_swizzle_64,
  t24_inner_box_swizzle_128,
  t25_interleave_32_swizzle,
  t26_swizzle_u6,
  t27_swizzle_u4,
  t28_swizzle_value,
  t29_l2_promotion_value,
  t30_oob_fill,
  t31_context_present,
  t32_no_earlier_error,
  t33_address_range,
  t34_extent_range,
  t35_tile_fits_shared_memory,
  t36_global_dim_copied,
  t37_box_bytes,
  t38_address_window,
  i01_rank,
  i02_lower_corner_range,
  i03_upper_corner_range,
  i04_box_area,
  i05_channels_range,
  i06_pixels_range,
  w01_compute_capability,
  w02_corner_range,
  w03_swizzle,
  w04_interleave,
  w05_mode,
  u01_shared_alignment,
  u03_store_corner,
  u06_reduction_type,
  u07_instruction_rank,
  u09_innermost_coordinate,
};

inline constexpr std::uint32_t rule_count = static_cast<std::uint32_t>(rule::u09_innermost_coordinate) + 1;
static_assert(rule_count <= 63, "a rule_set has 64 bits, of which a map_status needs one");

/// A set of rules, one bit each. Trivially copyable: the device encoder writes its bits as a map's
/// status.
struct rule_set {
  std::uint64_t bits{};

  TMAP_HOST_DEVICE constexpr bool empty() const { return bits == 0; }
  TMAP_HOST_DEVICE constexpr bool contains(rule id) const { return (bits >> static_cast<std::uint32_t>(id) & 1) != 0; }
  TMAP_HOST_DEVICE constexpr void insert(rule id) { bits |= std::uint64_t{1} << static_cast<std::uint32_t>(id); }
  friend TMAP_HOST_DEVICE constexpr bool operator==(rule_set a, rule_set b) { return a.bits == b.bits; }
  friend TMAP_HOST_DEVICE constexpr bool operator!=(rule_set a, rule_set b) { return a.bits != b.bits; }
};

}  // namespace tmap
