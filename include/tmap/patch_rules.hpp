// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Judges the rules that a patch can break, with the same code on host and device. Any bits are
/// legal input. The template is trusted, because `make_template` has validated it.

#include <tmap/config.hpp>
#include <tmap/detail/plain_patch.hpp>
#include <tmap/detail/spec_rules.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/map_patch.hpp>
#include <tmap/map_status.hpp>
#include <tmap/map_template.hpp>
#include <tmap/rule.hpp>
#include <tmap/tensor_spec.hpp>

namespace tmap {

/// Returns the spec of the map of this patch: the template's spec with the patch's values in
/// `fields`.
TMAP_HOST_DEVICE constexpr tensor_spec patched_spec(tensor_spec spec, patch_fields fields, const map_patch& patch) {
  if (has_any(fields, patch_address)) spec.global_address = patch.global_address;
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    if (has_any(fields, patch_dim(axis))) spec.global_dim[axis] = patch.global_dim[axis];
    if (axis + 1 < max_rank && has_any(fields, patch_stride(axis))) {
      spec.global_stride_bytes[axis] = patch.global_stride_bytes[axis];
    }
    if (has_any(fields, patch_box(axis))) spec.box_dim[axis] = patch.box_dim[axis];
    if (has_any(fields, patch_element_stride(axis))) spec.element_stride[axis] = patch.element_stride[axis];
  }
  return spec;
}

TMAP_HOST_DEVICE constexpr tensor_spec patched_spec(const map_template& base, const map_patch& patch) {
  return patched_spec(base.spec, base.fields, patch);
}

/// Returns the spec of a template's safe empty map: one element (or unit) at `page`, everything
/// else outside the tensor, with the template's box, element strides and modes.
TMAP_HOST_DEVICE constexpr tensor_spec empty_spec(tensor_spec spec, std::uint64_t page) {
  spec.global_address = page;
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    spec.global_dim[axis] = axis == 0 ? detail::smallest_inner_dim(spec.type) : 1;
    if (axis + 1 < max_rank) spec.global_stride_bytes[axis] = detail::smallest_stride;
  }
  return spec;
}

namespace detail {

/// Makes the checks of `check_tiled` whose values are among `fields`. On a GPU these branches are
/// uniform.
template <class Report>
TMAP_HOST_DEVICE constexpr void check_patched(const tensor_spec& spec, patch_fields fields, Report&& report) {
  if (has_any(fields, patch_address)) check_address(spec, report);
  if (has_any(fields, any_dim)) check_global_dims(spec, report);
  if (has_any(fields, any_stride)) check_global_strides(spec, report);
  if (has_any(fields, patch_address | any_dim | any_stride)) check_extent(spec, report);
  if (has_any(fields, patch_box(0))) check_inner_box(spec, spec.box_dim[0], report);
  if (has_any(fields, any_box)) check_box_dims(spec, report);
  if (has_any(fields, any_element_stride)) check_element_strides(spec, report);
  if (has_any(fields, any_box | any_element_stride)) check_box_bytes(spec, report);
}

TMAP_HOST_DEVICE constexpr bool has_no_elements(const tensor_spec& spec) {
  bool none = false;
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) none |= axis < spec.rank && spec.global_dim[axis] == 0;
  return none;
}

}  // namespace detail

/// Returns the rules of severity `error` that a patched spec breaks, as `broken_rules` does. Checks
/// only what a patch of `fields` can change.
TMAP_HOST_DEVICE constexpr rule_set broken_patch_rules(const tensor_spec& patched, patch_fields fields) {
  rule_set broken;
  detail::check_patched(patched, fields,
                        [&](rule id, std::int32_t, std::uint64_t, std::uint64_t) { broken.insert(id); });
  return broken;
}

/// Checks T38: every byte that a copy may touch lies inside one window. These bytes go from the
/// address to the tensor's end, rounded up to 16 bytes as stores do. Without windows the rule
/// holds.
TMAP_HOST_DEVICE constexpr rule_set check_address_windows(const tensor_spec& spec, const address_window* windows,
                                                          std::uint32_t window_count) {
  rule_set broken;
  if (window_count == 0) return broken;
  const detail::uint128 reach = (detail::reach_bytes(spec, detail::readable_rank(spec)) + 15) / 16 * 16;
  const std::uint64_t end = detail::saturate(spec.global_address + reach);
  for (std::uint32_t i = 0; i < window_count; ++i) {
    if (windows[i].begin <= spec.global_address && end <= windows[i].end) return broken;
  }
  broken.insert(rule::t38_address_window);
  return broken;
}

namespace detail {

/// Judges a spec that `is_plainly_good` did not accept.
TMAP_HOST_DEVICE constexpr map_status judge_by_rules(const tensor_spec& patched, patch_fields fields,
                                                     const address_window* windows, std::uint32_t window_count) {
  if (has_no_elements(patched)) return {map_status::empty_bit};
  const rule_set broken = broken_patch_rules(patched, fields);
  return {broken.bits | check_address_windows(patched, windows, window_count).bits};
}

}  // namespace detail

/// Returns the encoder's verdict on a patched spec.
TMAP_HOST_DEVICE constexpr map_status judge_patched(const tensor_spec& patched, patch_fields fields,
                                                    const address_window* windows, std::uint32_t window_count) {
  if (detail::is_plainly_good(patched, fields, windows, window_count)) return {};
  return detail::judge_by_rules(patched, fields, windows, window_count);
}

}  // namespace tmap
