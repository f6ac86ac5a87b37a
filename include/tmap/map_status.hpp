// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/item_status.hpp>
#include <tmap/rule.hpp>

namespace tmap {

/// What became of one map. A good one is as its patch asks. A bad one broke `rules_of(status)`, an
/// empty one has a dim of 0; both are the safe empty map instead (`encode_batch`). Empty wins over
/// bad, and is no error.
using map_status = item_status<rule>;

/// The rules that a bad map broke.
TMAP_HOST_DEVICE constexpr rule_set rules_of(map_status status) {
  return rule_set{status.bits & ~map_status::empty_bit};
}

}  // namespace tmap
