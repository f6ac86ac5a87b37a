// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/nearest_spec.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tmap::tool {
namespace {

template <class Number>
Number rounded_up(Number value, std::uint64_t unit) {
  const std::uint64_t wide = value;
  return static_cast<Number>(wide == 0 ? unit : (wide + unit - 1) / unit * unit);
}

template <class Number>
Number in_range(Number value, std::uint64_t most) {
  return static_cast<Number>(std::clamp<std::uint64_t>(value, 1, most));
}

std::int32_t in_corner_range(std::int32_t value, std::uint64_t limit) {
  const auto bound = static_cast<std::int64_t>(limit);
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(value, -bound, bound - 1));
}

/// Widens stride `axis`, and those above it that were packed on it.
void widen_stride(tensor_spec& spec, std::uint32_t axis, std::uint64_t unit) {
  const tensor_spec before = spec;
  spec.global_stride_bytes[axis] = rounded_up(before.global_stride_bytes[axis], unit);
  for (std::uint32_t i = axis + 1; i + 1 < spec.rank; ++i) {
    const bool was_packed = before.global_stride_bytes[i] == before.global_stride_bytes[i - 1] * before.global_dim[i];
    if (!was_packed) return;
    spec.global_stride_bytes[i] = spec.global_stride_bytes[i - 1] * spec.global_dim[i];
  }
}

/// Halves the outermost box dimension that has more than one element.
bool shrink_box(tensor_spec& spec) {
  for (std::uint32_t axis = std::min(spec.rank, max_rank); axis-- > 1;) {
    if (spec.box_dim[axis] <= 1) continue;
    spec.box_dim[axis] /= 2;
    return true;
  }
  return false;
}

/// Mends the inner box: up to a whole unit where it stays within a box, else down.
std::uint32_t whole_units(std::uint32_t inner, std::uint64_t unit) {
  const std::uint32_t up = rounded_up(inner, unit);
  return up <= 256 ? up : 256 / static_cast<std::uint32_t>(unit) * static_cast<std::uint32_t>(unit);
}

/// Mends an im2col window. False where the rule is not about one.
bool mend_window(im2col_window& window, const violation& v) {
  const auto axis = static_cast<std::uint32_t>(std::max(v.axis, 0));
  switch (v.id) {
    case rule::i02_lower_corner_range:
      window.lower_corner[axis] = in_corner_range(window.lower_corner[axis], v.allowed);
      return true;
    case rule::i03_upper_corner_range:
      window.upper_corner[axis] = in_corner_range(window.upper_corner[axis], v.allowed);
      return true;
    case rule::i05_channels_range:
      window.channels_per_pixel = in_range(window.channels_per_pixel, v.allowed);
      return true;
    case rule::i06_pixels_range: window.pixels_per_column = in_range(window.pixels_per_column, v.allowed); return true;
    default: return false;
  }
}

/// Mends the modes. False where the rule is not about one.
bool mend_mode(tensor_spec& spec, rule id) {
  switch (id) {
    case rule::t04_interleave_rank:
    case rule::t21_interleave_value: spec.interleave = interleave::none; return true;
    case rule::t25_interleave_32_swizzle: spec.swizzle = swizzle::bytes_32; return true;
    case rule::t26_swizzle_u6:
    case rule::t27_swizzle_u4:
    case rule::t28_swizzle_value: spec.swizzle = swizzle::bytes_128; return true;
    case rule::t29_l2_promotion_value: spec.l2_promotion = l2_promotion::none; return true;
    case rule::t30_oob_fill: spec.oob_fill = oob_fill::zero; return true;
    default: return false;
  }
}

/// Mends addresses, dims, strides and the box. False where no number is nearest.
bool mend_numbers(tensor_spec& spec, std::uint32_t& inner, const violation& v) {
  const auto axis = static_cast<std::uint32_t>(std::max(v.axis, 0));
  switch (v.id) {
    case rule::t06_address_multiple_of_16:
    case rule::t07_address_interleave_32:
    case rule::t08_address_packed_type:
      spec.global_address = rounded_up(static_cast<std::uint64_t>(spec.global_address), v.allowed);
      return true;
    case rule::t09_global_dim_range:
    case rule::t36_global_dim_copied:
      spec.global_dim[axis] = in_range(spec.global_dim[axis], std::uint64_t{1} << 31);
      return true;
    case rule::t10_global_dim_packed_type:
    case rule::t11_global_dim_even: spec.global_dim[axis] = rounded_up(spec.global_dim[axis], v.allowed); return true;
    case rule::t13_stride_multiple_of_16:
    case rule::t15_stride_multiple_of_32: widen_stride(spec, axis, v.allowed); return true;
    case rule::t17_box_dim_range: spec.box_dim[axis] = in_range(spec.box_dim[axis], v.allowed); return true;
    case rule::t18_inner_box_multiple_of_16: inner = whole_units(inner, v.allowed); return true;
    case rule::t19_inner_box_packed_type:
    case rule::t22_inner_box_swizzle_32:
    case rule::t23_inner_box_swizzle_64:
    case rule::t24_inner_box_swizzle_128: inner = static_cast<std::uint32_t>(v.allowed); return true;
    case rule::t20_element_stride_range:
      spec.element_stride[axis] = in_range(spec.element_stride[axis], v.allowed);
      return true;
    case rule::t37_box_bytes: return shrink_box(spec);
    default: return false;
  }
}

bool mend(any_spec& any, const violation& v) {
  if (any.window && mend_window(*any.window, v)) return true;
  std::uint32_t& inner = any.window ? any.window->channels_per_pixel : any.spec.box_dim[0];
  return mend_mode(any.spec, v.id) || mend_numbers(any.spec, inner, v);
}

/// Mends the first error that can be mended.
bool mend_one(any_spec& any, const violations& found) {
  return std::any_of(found.begin(), found.end(),
                     [&](const violation& v) { return info(v.id).level == severity::error && mend(any, v); });
}

std::string text_of(const nlohmann::ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Lists the members in which two specs of one kind and rank differ.
std::vector<std::string> changes_between(const any_spec& from, const any_spec& to) {
  std::vector<std::string> changes;
  const auto add = [&](const std::string& name, const auto& before, const auto& after) {
    if (before != after) changes.push_back(fmt::format("{}: {} -> {}", name, text_of(before), text_of(after)));
  };
  const nlohmann::ordered_json before = from.json();
  const nlohmann::ordered_json after = to.json();
  for (const auto& [key, value] : before.items()) {
    if (!value.is_array()) add(key, value, after[key]);
    for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
      add(fmt::format("{}[{}]", key, i), value[i], after[key][i]);
    }
  }
  return changes;
}

}  // namespace

nearest_spec find_nearest(const any_spec& given, const device_limits& limits) {
  constexpr int most_steps = 256;  // each mends one number; halving a box takes the most
  nearest_spec nearest{given, {}, false};
  for (int step = 0; step < most_steps; ++step) {
    nearest.is_legal = nearest.spec.is_legal(limits);
    if (nearest.is_legal || !mend_one(nearest.spec, nearest.spec.broken(limits))) break;
  }
  nearest.changes = changes_between(given, nearest.spec);
  return nearest;
}

}  // namespace tmap::tool
