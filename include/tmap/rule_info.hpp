// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/rule.hpp>

#include <cstdint>

namespace tmap {

/// Whether breaking a rule makes a spec unusable, or only unusual.
enum class severity : std::uint8_t { error, warning };

/// The place that enforces a rule: `validate`, the type system, the encode call, or each use.
enum class rule_stage : std::uint8_t { spec, type, encode_call, use };

/// One row of the rule table. `sentence` states what must hold. `message` states what was found,
/// and `remedy` what to do about it, with names in braces in place of a violation's values.
/// `to_string` and `remedy` (validate.hpp) fill them in.
/// `driver_refuses` is true if the driver refuses a spec that breaks only this rule (measured,
/// docs/measurements).
struct rule_info {
  rule id{};
  const char* name{};
  severity level{};
  rule_stage stage{};
  bool driver_refuses{};
  const char* sentence{};
  const char* message{};
  const char* remedy{};
  const char* source{};
};

/// Returns the row of one rule. Only the table words a rule: messages, documentation and tests read
/// it.
TMAP_API const rule_info& info(rule id);

}  // namespace tmap
