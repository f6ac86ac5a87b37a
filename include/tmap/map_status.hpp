// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/item_status.hpp>
#include <tmap/rule.hpp>

namespace tmap {

/// The status of one map. A good map is what its patch asks for. A bad map broke
/// `rules_of(status)`, and an empty map has a dim of 0. Both are the safe empty map
/// (`encode_batch`). A map that is both counts as empty, which is no error.
using map_status = item_status<rule>;

/// Returns the rules that a bad map broke.
TMAP_HOST_DEVICE constexpr rule_set rules_of(map_status status) {
  return rule_set{status.bits & ~map_status::empty_bit};
}

}  // namespace tmap
