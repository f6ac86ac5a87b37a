// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks the patch sources (map_patch.hpp) of every call that takes one.

#include <tmap/item_status.hpp>
#include <tmap/map_patch.hpp>
#include <tmap/map_template.hpp>

#include <cstdint>

#include "lib/support/arguments.hpp"

namespace tmap {

// The two kinds of columns name their parts differently.
inline auto address_column(const patch_columns& source) {
  return source.global_address;
}
inline auto address_column(const compact_columns& source) {
  return source.address_units;
}
inline auto stride_column(const patch_columns& source, std::uint32_t index) {
  return source.global_stride_bytes[index];
}
inline auto stride_column(const compact_columns& source, std::uint32_t index) {
  return source.global_stride_units[index];
}
inline support::argument address_column(const patch_columns&, const support::argument& name) {
  return name.member("global_address");
}
inline support::argument address_column(const compact_columns&, const support::argument& name) {
  return name.member("address_units");
}
inline support::argument stride_columns(const patch_columns&, const support::argument& name) {
  return name.member("global_stride_bytes");
}
inline support::argument stride_columns(const compact_columns&, const support::argument& name) {
  return name.member("global_stride_units");
}

/// Checks that `fields` holds only known ones.
inline void check_fields(support::arguments& given, patch_fields fields, patch_fields known,
                         const support::argument& name) {
  if (!has_any(fields, ~known)) return;
  given.refuse(name, "is {found:#x}; it must have no other bits than {allowed:#x}, the fields that can be changed here",
               bits_of(fields), bits_of(known));
}

/// Checks the offsets of a call that takes every format up to `last`.
inline void check_offsets(support::arguments& given, const row_offsets& offsets, const support::argument& name,
                          offset_format last = offset_format::slots) {
  constexpr std::uint64_t most_slot_rows = std::uint64_t{1} << 31;
  given.enumerator(offsets.format, last, name.member("format"));
  given.integer_bytes(offsets.bytes, name.member("bytes"));
  if (given) given.pointer(offsets.values, offsets.bytes, name.member("values"));
  if (!given) return;
  if (offsets.format == offset_format::begins_and_counts) {
    given.pointer(offsets.counts, offsets.bytes, name.member("counts"));
  }
  if (offsets.format == offset_format::slots) {
    given.range(offsets.slot_rows, 1, most_slot_rows, name.member("slot_rows"));
  }
}

}  // namespace tmap
