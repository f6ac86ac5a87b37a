// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/im2col_rules.hpp>
#include <tmap/detail/spec_rules.hpp>
#include <tmap/device_limits.hpp>
#include <tmap/reduction.hpp>
#include <tmap/rule.hpp>
#include <tmap/rule_info.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>
#include <string>

namespace tmap {

/// A broken rule, its axis (-1: none), the value found, and the bound or multiple that is allowed.
struct violation {
  rule id{};
  std::int32_t axis{-1};
  std::uint64_t found{};
  std::uint64_t allowed{};
};

/// The rules that a spec breaks, in the order of the checks. A plain value without allocation.
class violations {
 public:
  static constexpr std::uint32_t capacity = 64;

  TMAP_HOST_DEVICE constexpr void add(const violation& v) {
    rules_.insert(v.id);
    if (size_ < capacity) items_[size_++] = v;
  }
  TMAP_HOST_DEVICE constexpr std::uint32_t size() const { return size_; }
  TMAP_HOST_DEVICE constexpr bool empty() const { return size_ == 0; }
  TMAP_HOST_DEVICE constexpr const violation& operator[](std::uint32_t i) const { return items_[i]; }
  TMAP_HOST_DEVICE constexpr const violation* begin() const { return items_; }
  TMAP_HOST_DEVICE constexpr const violation* end() const { return items_ + size_; }
  TMAP_HOST_DEVICE constexpr rule_set rules() const { return rules_; }

 private:
  violation items_[capacity]{};
  std::uint32_t size_{};
  rule_set rules_{};
};

/// Lists every rule that `spec` breaks, errors and warnings. Pure: no GPU, no driver, no
/// allocation, and the same code on host and device. Never fails: any bits are a legal argument.
TMAP_HOST_DEVICE constexpr violations validate(const tensor_spec& spec, const device_limits& limits = hopper_limits()) {
  violations found;
  detail::check_tiled(spec, limits, [&](rule id, std::int32_t axis, std::uint64_t value, std::uint64_t allowed) {
    found.add({id, axis, value, allowed});
  });
  return found;
}

TMAP_HOST_DEVICE constexpr violations validate(const im2col_spec& spec, const device_limits& limits = hopper_limits()) {
  violations found;
  detail::check_im2col(spec, limits, [&](rule id, std::int32_t axis, std::uint64_t value, std::uint64_t allowed) {
    found.add({id, axis, value, allowed});
  });
  return found;
}

TMAP_HOST_DEVICE constexpr violations validate(const im2col_wide_spec& spec,
                                               const device_limits& limits = hopper_limits()) {
  violations found;
  detail::check_im2col_wide(spec, limits, [&](rule id, std::int32_t axis, std::uint64_t value, std::uint64_t allowed) {
    found.add({id, axis, value, allowed});
  });
  return found;
}

/// Returns the rules of severity `error` that a spec breaks, as a bit set: `validate` without the
/// list, small enough for a kernel's registers. Empty means that the spec may be encoded.
template <class Spec>
TMAP_HOST_DEVICE constexpr rule_set broken_rules(const Spec& spec, const device_limits& limits = hopper_limits()) {
  rule_set broken;
  detail::check(spec, limits, [&](rule id, std::int32_t, std::uint64_t, std::uint64_t) {
    if (!detail::is_warning(id)) broken.insert(id);
  });
  return broken;
}

/// @file
/// Check the rules of use, which no encode call can check. Each function returns the broken rules;
/// empty means that the instruction may be issued. Any bits are a legal argument.

/// U01: a tile's shared address must be a multiple of 128. Otherwise the copy faults. With a
/// swizzle it must be a multiple of one repeat. Otherwise the pattern begins in its middle.
TMAP_HOST_DEVICE constexpr rule_set check_shared_address(const tensor_spec& spec, std::uint64_t shared_address) {
  rule_set broken;
  if (shared_address % shared_alignment(spec.swizzle) != 0) broken.insert(rule::u01_shared_alignment);
  return broken;
}

/// U09: without interleave the innermost coordinate must be a multiple of 16 bytes. Otherwise the
/// copy is an illegal instruction. `coordinates` has `spec.rank` values.
TMAP_HOST_DEVICE constexpr rule_set check_load_corner(const tensor_spec& spec, const std::int32_t* coordinates) {
  rule_set broken;
  const auto unit = static_cast<std::int32_t>(detail::elements_per_16_bytes(spec.type));
  if (spec.rank == 0 || unit == 0 || spec.interleave != interleave::none) return broken;
  if (coordinates[0] % unit != 0) broken.insert(rule::u09_innermost_coordinate);
  return broken;
}

/// U09 and U03: as for a load, and no coordinate of a store or reduction may be negative.
TMAP_HOST_DEVICE constexpr rule_set check_store_corner(const tensor_spec& spec, const std::int32_t* coordinates) {
  rule_set broken = check_load_corner(spec, coordinates);
  for (std::uint32_t axis = 0; axis < detail::readable_rank(spec); ++axis) {
    if (coordinates[axis] < 0) broken.insert(rule::u03_store_corner);
  }
  return broken;
}

/// U06: the copy engine has only some reductions for each element type (`reductions_of`).
TMAP_HOST_DEVICE constexpr rule_set check_reduction(const tensor_spec& spec, reduction operation) {
  rule_set broken;
  if (!reductions_of(spec.type).contains(operation)) broken.insert(rule::u06_reduction_type);
  return broken;
}

/// U07: the instruction's dimension (`.1d` to `.5d`) must be the map's rank.
TMAP_HOST_DEVICE constexpr rule_set check_instruction_rank(const tensor_spec& spec, std::uint32_t instruction_rank) {
  rule_set broken;
  if (spec.rank != instruction_rank) broken.insert(rule::u07_instruction_rank);
  return broken;
}

/// Returns one sentence: what is wrong, where, what was found and what is allowed. Empty only if
/// memory runs out.
TMAP_API std::string to_string(const violation& v);

/// Returns what to change so that the rule holds, with the number if the violation gives it: "use a
/// pitch of 8208 bytes (4104 elements)". `type` is the spec's element type. Empty only if memory
/// runs out.
TMAP_API std::string remedy(const violation& v, element_type type);

/// Returns one line for each violation; "no rule broken" if there is none. Empty only if memory
/// runs out.
TMAP_API std::string to_string(const violations& v);

}  // namespace tmap
