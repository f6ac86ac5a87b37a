// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the host can check of a batch before its kernel is enqueued: arguments, never what device memory holds. A
// source is checked after its template.

#include <tmap/encode_batch.hpp>
#include <tmap/error.hpp>
#include <tmap/map_patch.hpp>
#include <tmap/map_template.hpp>

#include <cstdint>

#include "lib/encode/device.hpp"
#include "lib/support/checking.hpp"

namespace tmap {

inline result<void> check_template(const map_template& base) {
  if (base.spec.rank < 1 || base.spec.rank > max_rank) return invalid_argument(base.spec.rank, max_rank);
  const patch_fields known = patch_everything(base.spec.rank);
  if ((base.fields & ~known) != 0) return invalid_argument(base.fields, known);
  return {};
}

inline result<void> check_source(const map_template& base, const patch_array& source) {
  return base.fields == 0 ? result<void>{} : check_device_array(source.patches, alignof(map_patch));
}

// Two kinds of columns, which name their parts differently.
inline const void* address_column(const patch_columns& source) {
  return source.global_address;
}
inline const void* address_column(const compact_columns& source) {
  return source.address_units;
}
inline const void* stride_column(const patch_columns& source, std::uint32_t index) {
  return source.global_stride_bytes[index];
}
inline const void* stride_column(const compact_columns& source, std::uint32_t index) {
  return source.global_stride_units[index];
}

template <class Columns>
result<void> check_source(const map_template& base, const Columns& source) {
  const patch_fields known = patch_extents(base.spec.rank);
  if ((base.fields & ~known) != 0) return invalid_argument(base.fields, known);
  result<void> checked;
  const auto check_column = [&](patch_fields field, const void* column) {
    if (checked && (base.fields & field) != 0)
      checked = check_device_array(column, alignof(decltype(*source.global_dim[0])));
  };
  check_column(patch_address, address_column(source));
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    check_column(patch_dim(axis), source.global_dim[axis]);
    if (axis + 1 < max_rank) check_column(patch_stride(axis), stride_column(source, axis));
  }
  return checked;
}

template <class Offset>
result<void> check_source(const map_template& base, const ragged_rows<Offset>& source) {
  const patch_fields wanted = patch_address | patch_dim(base.spec.rank - 1);
  if (base.fields != wanted) return invalid_argument(base.fields, wanted);
  if (source.format > offset_format::sizes) {
    return invalid_argument(static_cast<std::uint64_t>(source.format),
                            static_cast<std::uint64_t>(offset_format::sizes));
  }
  return check_device_array(source.offsets, alignof(Offset));
}

/// `sizes` need room for their running sum; the other formats need none.
template <class Offset>
result<void> check_sums(const ragged_rows<Offset>& source, std::uint64_t count) {
  if (source.format != offset_format::sizes) return {};
  const result<std::uint64_t> needed = ragged_workspace_bytes(count, sizeof(Offset));
  if (!needed) return failure{needed.error()};
  return check_workspace(source.workspace, source.workspace_bytes, *needed);
}

/// The indices of an update.
inline result<void> check_changes(const std::uint32_t* changes, std::uint64_t count) {
  if (count > max_batch) return invalid_argument(count, max_batch);
  return count == 0 ? result<void>{} : check_device_array(changes, alignof(std::uint32_t));
}

/// Null is legal: it asks for nothing.
inline result<void> check_optional_array(const void* array, std::uint64_t alignment) {
  return array == nullptr ? result<void>{} : check_device_array(array, alignment);
}

inline result<void> check_options(const encode_options& options) {
  const bool asks = options.statuses != nullptr || options.header != nullptr || options.totals != nullptr ||
                    options.window_count != 0;
  if (options.trusted && asks) return invalid_argument(1, 0);
  if (options.published_by > publish::copy_fence) {
    return invalid_argument(static_cast<std::uint64_t>(options.published_by),
                            static_cast<std::uint64_t>(publish::copy_fence));
  }
  if (const auto checked = support::is_checked(options.check); !checked) return failure(checked.error());
  if (options.window_count != 0) {
    if (const auto checked = check_device_array(options.windows, alignof(address_window)); !checked) return checked;
  }
  if (const auto checked = check_optional_array(options.statuses, alignof(map_status)); !checked) return checked;
  if (const auto checked = check_optional_array(options.totals, alignof(batch_totals)); !checked) return checked;
  return check_optional_array(options.header, alignof(batch_header));
}

}  // namespace tmap
