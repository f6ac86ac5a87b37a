// SPDX-License-Identifier: Apache-2.0
#include "lib/spec/rule_table.hpp"

#include <tmap/detail/spec_arithmetic.hpp>

#include <iterator>

namespace tmap {
namespace {

constexpr bool rows_stand_at_their_rule() {
  for (std::uint32_t i = 0; i < rule_count; ++i) {
    const rule_info& row = detail::rule_table[i];
    if (row.id != static_cast<rule>(i)) return false;
    if ((row.level == severity::warning) != detail::is_warning(row.id)) return false;
  }
  return true;
}

static_assert(std::size(detail::rule_table) == rule_count, "every rule has one row");
static_assert(rows_stand_at_their_rule(), "row i words rule i, and device code knows the same warnings");

constexpr rule_info unknown_rule{
    rule{rule_count}, "?", severity::error, rule_stage::spec, false, "No rule.", "no such rule", "no remedy", ""};

}  // namespace

const rule_info& info(rule id) {
  const auto row = static_cast<std::uint32_t>(id);
  return row < rule_count ? detail::rule_table[row] : unknown_rule;
}

}  // namespace tmap
