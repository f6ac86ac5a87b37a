// SPDX-License-Identifier: Apache-2.0
#include <tmap/map_template.hpp>

#include <cstddef>
#include <cstring>

#include "lib/interop/convert.hpp"

namespace tmap::interop {
namespace {

using ragged::row_reduction;
using ragged::scale_block;
using ragged::value_type;
static_assert(mirrors(TMAP_REASON_BEST, route_reason::best) && mirrors(TMAP_REASON_TOO_SMALL, route_reason::too_small));
static_assert(mirrors(TMAP_REASON_DISABLED_BY_POLICY, route_reason::disabled_by_policy));
static_assert(mirrors(TMAP_REASON_NOT_ALLOWED, route_reason::not_allowed));
static_assert(mirrors(TMAP_REASON_MISALIGNED, route_reason::misaligned));
static_assert(mirrors(TMAP_REASON_EXTENT_TOO_LARGE, route_reason::extent_too_large));
static_assert(mirrors(TMAP_VALUE_U8, value_type::u8) && mirrors(TMAP_VALUE_F16, value_type::f16));
static_assert(mirrors(TMAP_VALUE_BF16, value_type::bf16) && mirrors(TMAP_VALUE_F32, value_type::f32));
static_assert(mirrors(TMAP_VALUE_F8_E4M3, value_type::f8_e4m3) && mirrors(TMAP_VALUE_F8_E5M2, value_type::f8_e5m2));
static_assert(mirrors(TMAP_ROWS_SUM, row_reduction::sum) && mirrors(TMAP_ROWS_MAX, row_reduction::max));
static_assert(mirrors(TMAP_SCALE_ROW, scale_block::row) && mirrors(TMAP_SCALE_1X128, scale_block::block_1x128));
static_assert(mirrors(TMAP_SCALE_128X128, scale_block::block_128x128));
static_assert(mirrors(TMAP_SCALE_128X1, scale_block::block_128x1));

static_assert(mirrors(TMAP_PATCH_ADDRESS, patch_address) && mirrors(TMAP_PATCH_DIM(4), patch_dim(4)));
static_assert(mirrors(TMAP_PATCH_STRIDE(3), patch_stride(3)) && mirrors(TMAP_PATCH_BOX(4), patch_box(4)));
static_assert(mirrors(TMAP_PATCH_ELEMENT_STRIDE(4), patch_element_stride(4)));
static_assert(mirrors(TMAP_OFFSETS_ENDS, offset_format::ends) && mirrors(TMAP_OFFSETS_PREFIX, offset_format::prefix));
static_assert(mirrors(TMAP_OFFSETS_SIZES, offset_format::sizes) &&
              mirrors(TMAP_OFFSETS_BEGINS_AND_COUNTS, offset_format::begins_and_counts));
static_assert(mirrors(TMAP_OFFSETS_SLOTS, offset_format::slots) && mirrors(TMAP_OFFSETS_LABELS, offset_format::labels));

// The structs of C and of the library have the same bytes in device memory.
static_assert(sizeof(tmap_map_patch) == sizeof(map_patch));
static_assert(offsetof(tmap_map_patch, global_stride_bytes) == offsetof(map_patch, global_stride_bytes));
static_assert(offsetof(tmap_map_patch, global_dim) == offsetof(map_patch, global_dim));
static_assert(offsetof(tmap_map_patch, box_dim) == offsetof(map_patch, box_dim));
static_assert(offsetof(tmap_map_patch, element_stride) == offsetof(map_patch, element_stride));

patch_columns columns_of(const tmap_patch_columns& from) {
  patch_columns columns{};
  columns.global_address = from.global_address;
  copy(from.global_dim, columns.global_dim);
  copy(from.global_stride_bytes, columns.global_stride_bytes);
  return columns;
}

compact_columns columns_of(const tmap_compact_columns& from) {
  compact_columns columns{};
  columns.base_address = from.base_address;
  columns.address_units = from.address_units;
  copy(from.global_dim, columns.global_dim);
  copy(from.global_stride_units, columns.global_stride_units);
  return columns;
}

ragged_rows rows_of(const tmap_ragged_rows& from) {
  return {.base_address = from.base_address,
          .row_pitch_bytes = from.row_pitch_bytes,
          .offsets = library_of(from.offsets),
          .rows = from.is_bounded != 0 ? from.rows : any_rows};
}

}  // namespace

void check_members(arguments& all, const tmap_patch_source& source, const support::argument& name) {
  all.enumerator(source.kind, TMAP_SOURCE_ROWS, name.member("kind"));
  if (source.kind != TMAP_SOURCE_ROWS) return;
  const tmap_ragged_rows& rows = source.of.rows;
  all.enumerator(rows.is_bounded, 1, name.member("is_bounded"));
  all.equal(rows.reserved, 0, name.member("reserved"), "is {found}; it must be {allowed}");
}

row_offsets library_of(const tmap_row_offsets& offsets) {
  return {offsets.values, static_cast<offset_format>(offsets.format), offsets.bytes, offsets.counts, offsets.slot_rows};
}

tensor_source library_of(const tmap_patch_source& source) {
  switch (source.kind) {
    case TMAP_SOURCE_COLUMNS: return columns_of(source.of.columns);
    case TMAP_SOURCE_COMPACT: return columns_of(source.of.compact);
    case TMAP_SOURCE_ROWS: return rows_of(source.of.rows);
    default: return patch_array{reinterpret_cast<const map_patch*>(source.of.patches)};
  }
}

void check_members(arguments& all, const tmap_tensor_batch& side, const support::argument& name) {
  const support::argument tensors = name.member("tensors");
  all.enumerator(side.arrays_on_host, 1, name.member("arrays_on_host"));
  all.structure(&side.tensors, tensors);
  if (all) check_members(all, side.tensors, tensors);
}

tensor_batch library_of(const tmap_tensor_batch& side) {
  tensor_batch batch{.tensors = library_of(side.tensors),
                     .count = side.count,
                     .element_bytes = side.element_bytes,
                     .rank = side.rank,
                     .inner = {},
                     .side = side.arrays_on_host != 0 ? array_side::host : array_side::device};
  copy(side.inner_dim, batch.inner.dim);
  copy(side.inner_stride_bytes, batch.inner.stride_bytes);
  return batch;
}

dense_batch library_of(const tmap_dense_batch& side) {
  dense_batch dense{
      .address = side.address, .dim = {}, .stride_bytes = {}, .tensor_pitch_bytes = side.tensor_pitch_bytes};
  copy(side.dim, dense.dim);
  copy(side.stride_bytes, dense.stride_bytes);
  return dense;
}

ragged::packed_buffer library_of(const tmap_packed_buffer& side) {
  return {.memory = side.memory,
          .bytes = side.bytes,
          .alignment = side.alignment == 0 ? 1 : side.alignment,
          .begins = side.begins};
}

ragged::row_matrix library_of(const tmap_row_matrix& side) {
  return {side.address, side.rows, side.row_bytes, side.pitch_bytes};
}

ragged::padded_rows library_of(const tmap_padded_rows& rows) {
  return {rows.values,  rows.rows,      rows.dense,         rows.count,
          rows.longest, rows.row_bytes, rows.element_bytes, library_of(rows.offsets)};
}

ragged::row_index library_of(const tmap_row_index& index) {
  return {index.rows, index.count, index.bytes};
}

ragged::cast_values library_of(const tmap_cast_values& values) {
  return {.from = static_cast<value_type>(values.from),
          .to = static_cast<value_type>(values.to),
          .scale = values.scale,
          .shift = values.shift,
          .scales = values.scales,
          .shifts = values.shifts};
}

void check_members(arguments& all, const tmap_quantize_values& values, const support::argument& name) {
  all.enumerator(values.powers_of_two, 1, name.member("powers_of_two"));
  all.enumerator(values.transposed_scales, 1, name.member("transposed_scales"));
}

ragged::quantize_values library_of(const tmap_quantize_values& values) {
  return {.from = static_cast<value_type>(values.from),
          .to = static_cast<value_type>(values.to),
          .block = static_cast<ragged::scale_block>(values.block),
          .powers_of_two = values.powers_of_two != 0,
          .transposed_scales = values.transposed_scales != 0};
}

tensor_layout library_of(const tmap_tensor_layout& tensor) {
  tensor_layout layout;
  layout.address = tensor.address;
  layout.element_bytes = tensor.element_bytes;
  layout.rank = tensor.rank;
  copy(tensor.dim, layout.dim);
  copy(tensor.stride_bytes, layout.stride_bytes);
  return layout;
}

ragged::fill_value fill_of(const void* element, std::uint32_t bytes) {
  ragged::fill_value value;
  const bool is_known = element != nullptr && bytes <= sizeof value.bytes;
  if (is_known) std::memcpy(value.bytes, element, bytes);
  return value;
}

}  // namespace tmap::interop
