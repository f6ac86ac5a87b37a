// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the first and the last row of a tensor among rows that are padded, in kernels and on the
// host.

#include <tmap/config.hpp>
#include <tmap/detail/row_offsets.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/padded_rows.hpp>

namespace tmap::detail {

struct row_range {
  std::uint64_t begin;
  std::uint64_t end;  ///< before `begin`: no rows
};

/// Any offsets are legal input: they are cut to the rows that exist.
inline TMAP_HOST_DEVICE row_range rows_of_tensor(const ragged::padded_rows& rows, std::uint64_t tensor) {
  const integer_array<void> offsets{rows.offsets.values, rows.offsets.bytes};
  const auto most = static_cast<std::int64_t>(rows.rows);
  const auto cut = [&](std::int64_t offset) {
    return static_cast<std::uint64_t>(offset < 0 ? 0 : offset > most ? most : offset);
  };
  if (rows.offsets.format == offset_format::prefix) return {cut(offsets[tensor]), cut(offsets[tensor + 1])};
  return {tensor == 0 ? 0 : cut(offsets[tensor - 1]), cut(offsets[tensor])};
}

}  // namespace tmap::detail
