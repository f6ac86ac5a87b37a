// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/ragged.h>
#include <tmap/ragged.hpp>

#include <cstring>

#include "lib/interop/convert_ragged.hpp"

// What the ragged operations of C share, those on the device and those on the host.

namespace tmap::interop {

static_assert(TMAP_VALUE_F8_E5M2 == static_cast<int>(ragged::value_type::f8_e5m2));
static_assert(TMAP_VALUE_F8_E4M3 == static_cast<int>(ragged::value_type::f8_e4m3));
static_assert(TMAP_VALUE_F32 == static_cast<int>(ragged::value_type::f32));
static_assert(TMAP_VALUE_BF16 == static_cast<int>(ragged::value_type::bf16));
static_assert(TMAP_VALUE_F16 == static_cast<int>(ragged::value_type::f16));
static_assert(TMAP_VALUE_U8 == static_cast<int>(ragged::value_type::u8));
static_assert(TMAP_ROWS_SUM == static_cast<int>(ragged::row_reduction::sum));
static_assert(TMAP_ROWS_MAX == static_cast<int>(ragged::row_reduction::max));

/// What a call names its two sides.
struct side_names {
  const char* source{"source"};
  const char* destination{"destination"};
};

/// `run(from, to, how)` once all is checked; `given` may have checked more.
template <class Source, class Destination, class Run>
answer between(const Source* source, const Destination* destination, const tmap_ragged_options* options,
               const engine& where, const Run& run, arguments given = {}, const side_names& names = {}) {
  check_side(given, source, names.source);
  check_side(given, destination, names.destination);
  check_options(given, options);
  if (!given) return given.complaint();
  return answer_of(run(side_of(*source), side_of(*destination), run_of(options, where)));
}

/// Null: zeros. Of elements that are too large nothing is read, since the call will refuse them.
inline ragged::fill_value fill_of(const void* fill, const tmap_tensor_batch& source) {
  ragged::fill_value value;
  const bool is_known = fill != nullptr && source.element_bytes <= sizeof value.bytes;
  if (is_known) std::memcpy(value.bytes, fill, source.element_bytes);
  return value;
}

inline arguments checked_index(const tmap_row_index* index) {
  arguments given;
  given.structure(index, "index");
  return given;
}

inline ragged::row_index index_of(const tmap_row_index& index) {
  return {index.rows, index.count, index.bytes};
}

inline arguments checked_values(const tmap_cast_values* values) {
  arguments given;
  given.structure(values, "values");
  if (!given) return given;
  given.enumerator(values->from, TMAP_VALUE_F8_E5M2, "values.from");
  given.enumerator(values->to, TMAP_VALUE_F8_E5M2, "values.to");
  return given;
}

inline arguments checked_reduction(std::uint32_t type, std::uint32_t reduction) {
  arguments given;
  given.enumerator(type, TMAP_VALUE_F8_E5M2, "type");
  given.enumerator(reduction, TMAP_ROWS_MAX, "reduction");
  return given;
}

inline ragged::cast_values values_of(const tmap_cast_values& values) {
  return {.from = static_cast<ragged::value_type>(values.from),
          .to = static_cast<ragged::value_type>(values.to),
          .scale = values.scale,
          .shift = values.shift,
          .scales = values.scales,
          .shifts = values.shifts};
}

}  // namespace tmap::interop
