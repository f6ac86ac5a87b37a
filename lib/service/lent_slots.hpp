// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/slot_record.hpp>

#include <cstdint>

#include "lib/pool/map_pool.hpp"
#include "lib/pool/slab_layout.hpp"

namespace tmap::service {

/// The slots of one lease of the pool, with their statuses and records.
struct lent_slots {
  explicit lent_slots(const pool::lease& lease)
      : range{pool::range_of(lease)}, generation{pool::generation_of(lease)} {}

  tensor_map* slots() const { return pool::slots_of(range.slab) + range.first; }
  map_status* statuses() const { return pool::statuses_of(range.slab, range.slab_capacity) + range.first; }
  /// Returns null unless hazards are checked.
  slot_record* records() const {
    slot_record* const records = pool::records_of(range.slab, range.slab_capacity);
    return records == nullptr ? nullptr : records + range.first;
  }

  pool::slot_range range;
  std::uint32_t generation;
};

}  // namespace tmap::service
