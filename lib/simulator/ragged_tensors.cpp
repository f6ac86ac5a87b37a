// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/ragged_tensors.hpp"

#include <tmap/detail/choose_route.hpp>
#include <tmap/detail/row_offsets.hpp>
#include <tmap/detail/spec_arithmetic.hpp>

#include <algorithm>

namespace tmap::simulator {

using detail::saturated_product;

tensor_layout tensor_reader::next() {
  tensor_layout layout = std::visit([this](const auto& source) { return read(source); }, batch_.tensors);
  ++index_;
  return layout;
}

tensor_layout tensor_reader::blank() const {
  tensor_layout layout;
  layout.element_bytes = batch_.element_bytes;
  layout.rank = batch_.rank;
  return layout;
}

tensor_layout tensor_reader::read(const patch_array& source) const {
  const map_patch& patch = source.patches[index_];
  tensor_layout layout = blank();
  layout.address = patch.global_address;
  std::copy_n(patch.global_dim, layout.rank, layout.dim);
  std::copy_n(patch.global_stride_bytes, layout.rank - 1, layout.stride_bytes);
  return layout;
}

tensor_layout tensor_reader::read(const patch_columns& source) const {
  tensor_layout layout = blank();
  layout.address = source.global_address[index_];
  read_columns(layout, source.global_dim, source.global_stride_bytes, 1);
  return layout;
}

tensor_layout tensor_reader::read(const compact_columns& source) const {
  tensor_layout layout = blank();
  layout.address = source.base_address + 16 * std::uint64_t{source.address_units[index_]};
  read_columns(layout, source.global_dim, source.global_stride_units, 16);
  return layout;
}

/// A null column of strides stands for the extent of the axis below.
template <class Column>
void tensor_reader::read_columns(tensor_layout& layout, const Column* dims, const Column* strides,
                                 std::uint64_t unit) const {
  std::uint64_t below = layout.element_bytes;
  for (std::uint32_t axis = 0; axis < layout.rank; ++axis) {
    layout.dim[axis] = dims[axis][index_];
    if (axis == 0) continue;
    below = strides[axis - 1] == nullptr ? saturated_product(below, layout.dim[axis - 1])
                                         : unit * strides[axis - 1][index_];
    layout.stride_bytes[axis - 1] = below;
  }
}

tensor_layout tensor_reader::read(const ragged_rows& source) {
  const detail::offset_reader<void> offsets = detail::reader_of(source.offsets);
  const bool has_sizes = source.offsets.format == offset_format::sizes;
  const std::uint64_t begin = has_sizes ? begin_ : static_cast<std::uint64_t>(offsets.begin(index_));
  const std::uint64_t rows = offsets.count(index_, begin);
  if (has_sizes) begin_ += rows;
  tensor_layout layout = blank();
  layout.address = address_of_rows(source, begin, rows);
  const std::uint32_t outermost = layout.rank - 1;
  std::copy_n(batch_.inner.dim, outermost, layout.dim);
  layout.dim[outermost] = rows;
  if (outermost > 0) {
    std::copy_n(batch_.inner.stride_bytes, outermost - 1, layout.stride_bytes);
    layout.stride_bytes[outermost - 1] = source.row_pitch_bytes;
  }
  return layout;
}

detail::side_extents extents_of(const tensor_layout& layout) {
  detail::side_extents extents{layout.address, {1, 1, 1, 1, 1}, {}};
  std::copy_n(layout.dim, layout.rank, extents.dim);
  std::copy_n(layout.stride_bytes, layout.rank - 1, extents.stride);
  return extents;
}

void pack_strides(tensor_layout& layout) {
  detail::side_extents extents = extents_of(layout);
  detail::pack_strides<max_rank>(extents, layout.element_bytes);
  std::copy_n(extents.stride, layout.rank - 1, layout.stride_bytes);
}

std::uint64_t packed_bytes(const tensor_layout& layout) {
  return detail::bytes_of<max_rank>(extents_of(layout), layout.element_bytes);
}

tensor_layout dense_tensor(const dense_batch& batch, std::uint32_t element_bytes, std::uint32_t rank,
                           std::uint64_t index) {
  tensor_layout layout;
  layout.address = batch.address + index * batch.tensor_pitch_bytes;
  layout.element_bytes = element_bytes;
  layout.rank = rank;
  std::copy_n(batch.dim, rank, layout.dim);
  std::copy_n(batch.stride_bytes, rank - 1, layout.stride_bytes);
  return layout;
}

std::uint64_t reach_bytes(const tensor_layout& layout) {
  std::uint64_t reach = saturated_product(layout.dim[0], layout.element_bytes);
  for (std::uint32_t axis = 1; axis < layout.rank; ++axis) {
    if (layout.dim[axis] <= 1) continue;
    const std::uint64_t step = saturated_product(layout.dim[axis] - 1, layout.stride_bytes[axis - 1]);
    reach = detail::saturate(detail::uint128{reach} + step);
  }
  return reach;
}

bool has_no_elements(const tensor_layout& layout) {
  return detail::is_empty<max_rank>(extents_of(layout));
}

}  // namespace tmap::simulator
