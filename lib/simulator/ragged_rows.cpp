// SPDX-License-Identifier: Apache-2.0
#include <tmap/detail/padded_tensor.hpp>

#include "lib/simulator/ragged_operations.hpp"
#include "lib/simulator/ragged_run.hpp"

#include <algorithm>
#include <cstring>

namespace tmap::ragged::simulated {
namespace {

using namespace tmap::simulator;

std::int64_t row_number(const row_index& index, std::uint64_t i) {
  if (index.bytes == 4) return static_cast<const std::int32_t*>(index.rows)[i];
  return static_cast<const std::int64_t*>(index.rows)[i];
}

std::byte* row_of(const row_matrix& matrix, std::uint64_t row) {
  return reinterpret_cast<std::byte*>(matrix.address + row * matrix.pitch_bytes);
}

/// Calls `move(i, row)` for each row number that exists in a matrix of `rows`.
template <class Move>
result<void> for_each_index(batch_call which, const row_index& index, std::uint64_t rows, const run& with,
                            Move&& move) {
  if (const auto routes = routes_of(with.choices); !routes) return failure{routes.error()};
  verdict_writer verdicts{{which, index.count}, with};
  for (std::uint64_t i = 0; i < index.count; ++i) {
    const std::int64_t row = row_number(index, i);
    const tensor_status verdict = judge_row(row, rows);
    verdicts.write(i, verdict);
    if (verdict.is_good()) move(i, static_cast<std::uint64_t>(row));
  }
  return verdicts.close();
}

}  // namespace

result<void> gather_rows(const row_matrix& source, const row_index& index, const row_matrix& destination,
                         const run& with) {
  return for_each_index(batch_call::ragged_gather_rows, index, source.rows, with,
                        [&](std::uint64_t i, std::uint64_t row) {
                          std::memcpy(row_of(destination, i), row_of(source, row), source.row_bytes);
                        });
}

result<void> scatter_rows(const row_matrix& source, const row_index& index, const row_matrix& destination,
                          const run& with) {
  return for_each_index(batch_call::ragged_scatter_rows, index, destination.rows, with,
                        [&](std::uint64_t i, std::uint64_t row) {
                          std::memcpy(row_of(destination, row), row_of(source, i), source.row_bytes);
                        });
}

void pad_rows(const padded_rows& rows, const fill_value& fill) {
  const std::uint64_t slab = rows.longest * rows.row_bytes;
  for (std::uint64_t tensor = 0; tensor < rows.count; ++tensor) {
    const auto [begin, end] = tmap::detail::rows_of_tensor(rows, tensor);
    const std::uint64_t kept = begin < end ? std::min(end - begin, rows.longest) * rows.row_bytes : 0;
    auto* const to = reinterpret_cast<std::byte*>(rows.dense + tensor * slab);
    if (kept != 0) std::memcpy(to, reinterpret_cast<const std::byte*>(rows.values + begin * rows.row_bytes), kept);
    for (std::uint64_t at = kept; at < slab; at += rows.element_bytes) {
      std::memcpy(to + at, fill.bytes, rows.element_bytes);
    }
  }
}

void unpad_rows(const padded_rows& rows) {
  std::memset(reinterpret_cast<std::byte*>(std::uint64_t{rows.values}), 0, rows.rows * rows.row_bytes);
  for (std::uint64_t tensor = 0; tensor < rows.count; ++tensor) {
    const auto [begin, end] = tmap::detail::rows_of_tensor(rows, tensor);
    if (begin >= end || rows.longest == 0) continue;
    std::memcpy(reinterpret_cast<std::byte*>(rows.values + begin * rows.row_bytes),
                reinterpret_cast<const std::byte*>(rows.dense + tensor * rows.longest * rows.row_bytes),
                std::min(end - begin, rows.longest) * rows.row_bytes);
  }
}

}  // namespace tmap::ragged::simulated
