// SPDX-License-Identifier: Apache-2.0
#pragma once

// The layout of a slab of n slots: the slots, then their statuses and, if hazards are checked,
// their records. Each array begins at a multiple of 256 bytes.

#include <tmap/map_batch.hpp>
#include <tmap/map_status.hpp>
#include <tmap/tensor_map.hpp>

#ifdef TMAP_CHECK_HAZARDS
#include <tmap/slot_record.hpp>
#endif

#include <cstdint>

namespace tmap::pool {

/// The alignment of a slab and of each array in it. Memory from cudaMalloc has it too.
inline constexpr std::uint64_t slab_alignment = 256;

#ifdef TMAP_CHECK_HAZARDS
inline constexpr std::uint64_t record_bytes = sizeof(slot_record);
#else
inline constexpr std::uint64_t record_bytes = 0;
#endif

constexpr std::uint64_t aligned_bytes(std::uint64_t bytes) {
  return (bytes + slab_alignment - 1) / slab_alignment * slab_alignment;
}

constexpr std::uint64_t statuses_offset(std::uint64_t capacity) {
  return aligned_bytes(capacity * sizeof(tensor_map));
}

constexpr std::uint64_t records_offset(std::uint64_t capacity) {
  return statuses_offset(capacity) + aligned_bytes(capacity * sizeof(map_status));
}

/// Returns the bytes of a slab of `capacity` slots.
constexpr std::uint64_t slab_bytes(std::uint64_t capacity) {
  return records_offset(capacity) + aligned_bytes(capacity * record_bytes);
}

inline unsigned char* slab_part(void* slab, std::uint64_t offset) {
  return static_cast<unsigned char*>(slab) + offset;
}

inline tensor_map* slots_of(void* slab) {
  return static_cast<tensor_map*>(slab);
}

inline map_status* statuses_of(void* slab, std::uint64_t capacity) {
  return reinterpret_cast<map_status*>(slab_part(slab, statuses_offset(capacity)));
}

/// Returns null unless hazards are checked.
inline slot_record* records_of(void* slab, std::uint64_t capacity) {
  return record_bytes == 0 ? nullptr : reinterpret_cast<slot_record*>(slab_part(slab, records_offset(capacity)));
}

}  // namespace tmap::pool
