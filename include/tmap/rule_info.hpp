// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/rule.hpp>

#include <cstdint>

namespace tmap {

/// Whether breaking a rule makes a spec unusable, or only unusual.
enum class severity : std::uint8_t { error, warning };

/// Where a rule is kept: by `validate`, by the type system, by the encode call, or at each use.
enum class rule_stage : std::uint8_t { spec, type, encode_call, use };

/// One row of the rule table. `sentence` states what must hold; `message` says what was found, with
/// {axis}, {found}, {signed_found} and {allowed} in the places of a violation's values.
/// `driver_refuses` tells whether the driver refuses a spec that breaks only this rule (measured,
/// docs/measurements).
struct rule_info {
  rule id{};
  const char* name{};
  severity level{};
  rule_stage stage{};
  bool driver_refuses{};
  const char* sentence{};
  const char* message{};
  const char* source{};
};

/// The row of one rule. The table is the only place that words it: text, documentation and tests
/// read it.
TMAP_API const rule_info& info(rule id);

}  // namespace tmap
