// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/device_limits.hpp>
#include <tmap/rule.hpp>
#include <tmap/tensor_spec.hpp>
#include <tmap/validate.hpp>

#include <string>
#include <variant>
#include <vector>

// One spec for each rule that `validate` keeps, and for each side of a rule that has two. It breaks
// that rule and no other. The host tests ask `validate`, the device tests the driver.

namespace tmap::testing {

using any_spec = std::variant<tensor_spec, im2col_spec, im2col_wide_spec>;

struct rule_case {
  rule id;
  std::string what;
  any_spec spec;
  device_limits limits;
};

inline violations validate_any(const any_spec& spec, const device_limits& limits) {
  return std::visit([&](const auto& each) { return validate(each, limits); }, spec);
}

/// Return specs that break no rule, as a base for changes.
tensor_spec plain_spec();
tensor_spec interleaved_spec(interleave layout);
tensor_spec packed_type_spec(element_type type);
im2col_spec plain_im2col_spec();
im2col_wide_spec plain_im2col_wide_spec();

std::vector<rule_case> all_rule_cases();

}  // namespace tmap::testing
