// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_patch.hpp>
#include <tmap/map_template.hpp>

#include <string>
#include <vector>

#include "support/random_patch.hpp"
#include "support/rule_cases.hpp"

// The rule cases that a patch can cause: a legal spec for the template, and patches that keep or
// break a rule.

namespace tmap::testing {

struct patch_case {
  rule id;
  std::string what;
  tensor_spec base;  ///< every field may be patched
  map_patch good;
  map_patch bad;  ///< breaks `id` alone
};

/// Returns the spec that a rule case was changed from, with its modes and an inner box that suits
/// every swizzle.
inline tensor_spec template_of(const tensor_spec& broken) {
  tensor_spec spec = broken.interleave == interleave::none ? plain_spec() : interleaved_spec(broken.interleave);
  spec.type = broken.type;
  spec.rank = broken.rank;
  spec.interleave = broken.interleave;
  spec.swizzle = broken.swizzle;
  spec.l2_promotion = broken.l2_promotion;
  spec.oob_fill = broken.oob_fill;
  spec.box_dim[0] = 4;
  return spec;
}

inline std::vector<patch_case> all_patch_cases() {
  std::vector<patch_case> cases;
  for (const rule_case& each : all_rule_cases()) {
    const auto* const broken = std::get_if<tensor_spec>(&each.spec);
    if (broken == nullptr || broken_rules(*broken).empty()) continue;
    const tensor_spec base = template_of(*broken);
    if (!broken_rules(base).empty()) continue;
    cases.push_back({each.id, each.what, base, patch_of(base), patch_of(*broken)});
  }
  return cases;
}

/// The rules that a patch can break on a Hopper GPU. T08, T10, T11 and T19 are about types that it
/// lacks.
inline constexpr rule patchable_rules[] = {rule::t05_address_null,
                                           rule::t06_address_multiple_of_16,
                                           rule::t07_address_interleave_32,
                                           rule::t09_global_dim_range,
                                           rule::t13_stride_multiple_of_16,
                                           rule::t14_stride_range,
                                           rule::t15_stride_multiple_of_32,
                                           rule::t17_box_dim_range,
                                           rule::t18_inner_box_multiple_of_16,
                                           rule::t20_element_stride_range,
                                           rule::t22_inner_box_swizzle_32,
                                           rule::t23_inner_box_swizzle_64,
                                           rule::t24_inner_box_swizzle_128,
                                           rule::t33_address_range,
                                           rule::t34_extent_range,
                                           rule::t36_global_dim_copied,
                                           rule::t37_box_bytes};

}  // namespace tmap::testing
