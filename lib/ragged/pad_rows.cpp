// SPDX-License-Identifier: Apache-2.0
#include <tmap/padded_rows.hpp>

#include "lib/batch/ragged_arguments.hpp"
#include "lib/encode/device.hpp"
#include "lib/ragged/operation.hpp"
#include "lib/simulator/ragged_operations.hpp"
#include "lib/support/check.hpp"
#include "lib/support/trace.hpp"

namespace tmap::ragged {
namespace {

constexpr std::uint64_t most_padded_bytes = std::uint64_t{1} << 40;

void check_reports(support::arguments& given, const run& with) {
  constexpr const char* has_none = "is not null; no tensor is bad here, so it must be null";
  if (with.statuses != nullptr) given.refuse(support::argument{"statuses"}, has_none);
  if (with.header != nullptr) given.refuse(support::argument{"header"}, has_none);
}

void check_side(support::arguments& given, std::uint64_t address, tmap::detail::uint128 rows, const padded_rows& of,
                const support::argument& name) {
  const std::uint64_t bytes = tmap::detail::saturate(rows * of.row_bytes);
  if (bytes == 0) return;
  given.address(address, of.element_bytes, name);
  if (bytes > most_padded_bytes) {
    given.refuse(name, "has {found} bytes; it may have {allowed} at most", bytes, most_padded_bytes);
  }
}

result<void> check_rows(const padded_rows& rows, const run& with) {
  const support::argument name{"rows"};
  support::arguments given;
  check_call(given, with);
  check_reports(given, with);
  given.power_of_two(rows.element_bytes, sizeof(fill_value), name.member("element_bytes"));
  if (!given) return given.outcome();
  given.multiple(rows.row_bytes, rows.element_bytes, name.member("row_bytes"));
  given.at_most(rows.rows, most_padded_bytes, name.member("rows"));
  check_side(given, rows.values, rows.rows, rows, name.member("values"));
  check_side(given, rows.dense, tmap::detail::uint128{rows.count} * rows.longest, rows, name.member("dense"));
  const support::argument offsets = name.member("offsets");
  given.range(static_cast<std::uint64_t>(rows.offsets.format), static_cast<std::uint64_t>(offset_format::ends),
              static_cast<std::uint64_t>(offset_format::prefix), offsets.member("format"));
  given.integer_bytes(rows.offsets.bytes, offsets.member("bytes"));
  if (given && rows.count != 0) given.pointer(rows.offsets.values, rows.offsets.bytes, offsets.member("values"));
  return given.outcome();
}

result<void> enqueue(cudaError_t (&launch)(const kernels::row_padding&, cudaStream_t), const padded_rows& rows,
                     const fill_value& fill, const on_stream& where) {
  if (const auto built = require_kernels(); !built) return built;
  TMAP_TRY_CUDA(launch({rows, fill}, where.stream.get()));
  return {};
}

}  // namespace

result<void> pad_rows(const padded_rows& rows, const fill_value& fill, const run& with) {
  const support::trace_range range{"tmap pad rows"};
  const auto checked = check_rows(rows, with);
  if (!checked || rows.count == 0 || rows.longest == 0 || rows.row_bytes == 0) return checked;
  if (const on_stream* const where = stream_of(with)) return enqueue(kernels::launch_pad_rows, rows, fill, *where);
  simulated::pad_rows(rows, fill);
  return {};
}

result<void> unpad_rows(const padded_rows& rows, const run& with) {
  const support::trace_range range{"tmap unpad rows"};
  const auto checked = check_rows(rows, with);
  if (!checked || rows.rows == 0 || rows.row_bytes == 0) return checked;
  if (const on_stream* const where = stream_of(with)) return enqueue(kernels::launch_unpad_rows, rows, {}, *where);
  simulated::unpad_rows(rows);
  return {};
}

}  // namespace tmap::ragged
