// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/convert_source.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace tmap::interop {
namespace {

static_assert(TMAP_PATCH_ADDRESS == patch_address && TMAP_PATCH_DIM(4) == patch_dim(4));
static_assert(TMAP_PATCH_STRIDE(3) == patch_stride(3) && TMAP_PATCH_BOX(4) == patch_box(4));
static_assert(TMAP_PATCH_ELEMENT_STRIDE(4) == patch_element_stride(4));
static_assert(TMAP_OFFSETS_ENDS == static_cast<int>(offset_format::ends));
static_assert(TMAP_OFFSETS_PREFIX == static_cast<int>(offset_format::prefix));
static_assert(TMAP_OFFSETS_SIZES == static_cast<int>(offset_format::sizes));
static_assert(TMAP_EMPTY_MAP == map_status::empty_bit);

// In device memory both sides' structs are the same bytes.
static_assert(sizeof(tmap_map_patch) == sizeof(map_patch));
static_assert(offsetof(tmap_map_patch, global_stride_bytes) == offsetof(map_patch, global_stride_bytes));
static_assert(offsetof(tmap_map_patch, global_dim) == offsetof(map_patch, global_dim));
static_assert(offsetof(tmap_map_patch, box_dim) == offsetof(map_patch, box_dim));
static_assert(offsetof(tmap_map_patch, element_stride) == offsetof(map_patch, element_stride));
static_assert(sizeof(tmap_batch_header) == sizeof(batch_header));
static_assert(offsetof(tmap_batch_header, first_bad) == offsetof(batch_header, first_bad));
static_assert(offsetof(tmap_batch_header, empty_count) == offsetof(batch_header, empty_count));
static_assert(sizeof(tmap_address_window) == sizeof(address_window));
static_assert(offsetof(tmap_address_window, end) == offsetof(address_window, end));
static_assert(sizeof(std::uint64_t) == sizeof(map_status));

patch_columns columns_of(const tmap_patch_columns& from) {
  patch_columns columns{};
  columns.global_address = from.global_address;
  std::copy(std::begin(from.global_dim), std::end(from.global_dim), columns.global_dim);
  std::copy(std::begin(from.global_stride_bytes), std::end(from.global_stride_bytes), columns.global_stride_bytes);
  return columns;
}

compact_columns columns_of(const tmap_compact_columns& from) {
  compact_columns columns{};
  columns.base_address = from.base_address;
  columns.address_units = from.address_units;
  std::copy(std::begin(from.global_dim), std::end(from.global_dim), columns.global_dim);
  std::copy(std::begin(from.global_stride_units), std::end(from.global_stride_units), columns.global_stride_units);
  return columns;
}

ragged_rows rows_of(const tmap_ragged_rows& from) {
  return {from.base_address,
          from.row_pitch_bytes,
          {from.offsets, static_cast<offset_format>(from.format), from.offset_bytes},
          from.is_bounded != 0 ? from.rows : any_rows};
}

}  // namespace

void check_source(arguments& given, const tmap_patch_source* source, const support::argument& name) {
  given.structure(source, name);
  if (!given) return;
  given.enumerator(source->kind, TMAP_SOURCE_ROWS, name.member("kind"));
  if (source->kind != TMAP_SOURCE_ROWS) return;
  const tmap_ragged_rows& rows = source->of.rows;
  given.enumerator(rows.format, TMAP_OFFSETS_SIZES, name.member("format"));
  given.enumerator(rows.is_bounded, 1, name.member("is_bounded"));
  given.equal(rows.reserved, 0, name.member("reserved"), "is {found}; it must be {allowed}");
  given.integer_bytes(rows.offset_bytes, name.member("offset_bytes"));
}

tensor_source source_of(const tmap_patch_source& source) {
  switch (source.kind) {
    case TMAP_SOURCE_COLUMNS: return columns_of(source.of.columns);
    case TMAP_SOURCE_COMPACT: return columns_of(source.of.compact);
    case TMAP_SOURCE_ROWS: return rows_of(source.of.rows);
    default: return patch_array{reinterpret_cast<const map_patch*>(source.of.patches)};
  }
}

static_assert(TMAP_PUBLISH_STORES == static_cast<int>(publish::stores));
static_assert(TMAP_PUBLISH_COPY_FENCE == static_cast<int>(publish::copy_fence));

workspace scratch_of(const tmap_patch_source& source) {
  if (source.kind != TMAP_SOURCE_ROWS) return {};
  return {source.of.rows.workspace, source.of.rows.workspace_bytes};
}

answer complaint_of(const error& e, const char* name) {
  answer made{e};
  for (const std::string_view whole : {"run.choices", "run"}) {
    const std::string_view found = made.details.argument.view();
    if (found.substr(0, whole.size()) != whole) continue;
    argument_name own{name};
    own.append(found.substr(whole.size()));
    made.details.argument = own;
    break;
  }
  return made;
}

}  // namespace tmap::interop
