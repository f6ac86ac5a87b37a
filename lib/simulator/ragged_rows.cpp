// SPDX-License-Identifier: Apache-2.0
#include <tmap/ragged_host.hpp>

#include "lib/simulator/ragged_run.hpp"

#include <algorithm>
#include <cstring>

namespace tmap::ragged::on_host {
namespace {

using namespace tmap::simulator;

bool is_legal(const row_matrix& matrix, bool is_destination) {
  if (matrix.rows == 0 || matrix.row_bytes == 0) return true;
  const bool overlaps = matrix.rows > 1 && matrix.pitch_bytes < matrix.row_bytes;
  const std::uint64_t reach = tmap::detail::saturated_product(matrix.rows - 1, matrix.pitch_bytes);
  const bool is_near = std::max(reach, matrix.row_bytes) <= tmap::detail::max_stride_reach;
  return matrix.address != 0 && is_near && !(is_destination && overlaps);
}

/// `walked` is the matrix whose row i goes with index i.
result<void> check_move(const row_matrix& source, const row_index& index, const row_matrix& destination,
                        const row_matrix& walked, const options& with) {
  const bool has_rows = index.bytes == 4 ? is_array(static_cast<const std::int32_t*>(index.rows))
                                         : is_array(static_cast<const std::int64_t*>(index.rows));
  const bool has_index = (index.bytes == 4 || index.bytes == 8) && (index.count == 0 || has_rows);
  const bool has_sides = is_legal(source, false) && is_legal(destination, true);
  const bool fits = source.row_bytes == destination.row_bytes && index.count <= walked.rows;
  if (!has_index || !has_sides || !fits) return bad_argument();
  return check_options(with);
}

std::int64_t row_number(const row_index& index, std::uint64_t i) {
  if (index.bytes == 4) return static_cast<const std::int32_t*>(index.rows)[i];
  return static_cast<const std::int64_t*>(index.rows)[i];
}

std::byte* row_of(const row_matrix& matrix, std::uint64_t row) {
  return reinterpret_cast<std::byte*>(matrix.address + row * matrix.pitch_bytes);
}

/// Calls `move(i, row)` for each row number that exists in a matrix of `rows`.
template <class Move>
result<void> for_each_index(batch_call which, const row_index& index, std::uint64_t rows, const options& with,
                            Move&& move) {
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
                         const options& with) {
  if (const auto checked = check_move(source, index, destination, destination, with); !checked) return checked;
  return for_each_index(batch_call::ragged_gather_rows, index, source.rows, with,
                        [&](std::uint64_t i, std::uint64_t row) {
                          std::memcpy(row_of(destination, i), row_of(source, row), source.row_bytes);
                        });
}

result<void> scatter_rows(const row_matrix& source, const row_index& index, const row_matrix& destination,
                          const options& with) {
  if (const auto checked = check_move(source, index, destination, source, with); !checked) return checked;
  return for_each_index(batch_call::ragged_scatter_rows, index, destination.rows, with,
                        [&](std::uint64_t i, std::uint64_t row) {
                          std::memcpy(row_of(destination, row), row_of(source, i), source.row_bytes);
                        });
}

}  // namespace tmap::ragged::on_host
