// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/item_status.hpp>
#include <tmap/rule.hpp>

namespace tmap {

/// What became of one map. A good one is as its patch asks. A bad one broke `rules_of(status)`, an empty one has a dim
/// of 0; both are the safe empty map instead (`encode_batch`). Empty wins over bad, and is no error.
using map_status = item_status<rule>;

/// The rules that a bad map broke.
TMAP_HOST_DEVICE constexpr rule_set rules_of(map_status status) {
  return rule_set{status.bits & ~map_status::empty_bit};
}

/// Sums over many batches, which tmap only ever adds to. Best in device memory, to be copied when they are wanted.
/// Pinned host memory works too, but each warp that finds a bad or empty map then pays a trip over the bus.
struct alignas(16) batch_totals {
  std::uint64_t bad_maps{};
  std::uint64_t empty_maps{};
};

}  // namespace tmap
