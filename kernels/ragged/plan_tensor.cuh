// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads both sides of one tensor, has them judged (detail/judge_tensors.hpp), and counts its
// pieces. All that is read from device memory may be any bits.

#include "kernels/ragged/column_pieces.hpp"
#include "kernels/ragged/planned_tensor.hpp"
#include "kernels/ragged/transpose_tiles.hpp"
#include "kernels/ragged_launch.hpp"

#include <tmap/detail/judge_tensors.hpp>
#include <tmap/device/patch_source.cuh>

#include <cuda/std/variant>

#include <cstdint>

namespace tmap::kernels {

using tmap::detail::side_extents;

/// A `side` that kernels can read. std::variant works only on the host.
struct plan_side {
  using source = cuda::std::variant<patch_array, patch_columns, compact_columns, device::typed_rows<std::int32_t>,
                                    device::typed_rows<std::int64_t>>;

  side_kind kind;
  std::uint32_t element_bytes;
  source tensors;
  inner_extents inner;
  const std::int64_t* row_begins;
  dense_batch dense;
  std::uint64_t packed_address;  ///< of a side that is not packed: all memory
  std::uint64_t packed_bytes;
  std::uint64_t packed_alignment;

  __device__ std::uint64_t alignment() const { return tmap::detail::element_alignment(element_bytes); }
  __device__ tmap::detail::side_terms terms() const { return {element_bytes, {packed_address, packed_bytes}}; }
};

struct plan_arguments {
  plan_side source;
  plan_side destination;
  std::uint64_t count;
  shape_relation relation;
  std::uint32_t kept_axes;
  route_options routes;
  piece_rule rule;
  tmap::detail::tensor_limits limits;
  std::int64_t* begins;
  plan_side scales;  ///< these two are read if each tensor has scales
  tmap::detail::scale_grid grid;
};

namespace detail {

using tmap::detail::is_multiple;
using tmap::detail::saturated_product;

template <std::uint32_t Rank>
__device__ side_extents extents_of(const map_patch& patch) {
  side_extents read{patch.global_address, {1, 1, 1, 1, 1}, {}};
#pragma unroll
  for (std::uint32_t axis = 0; axis < Rank; ++axis) {
    read.dim[axis] = patch.global_dim[axis];
    if (axis > 0) read.stride[axis - 1] = patch.global_stride_bytes[axis - 1];
  }
  return read;
}

/// Reads columns. Where a column of strides is null, the stride is the extent of the axis below.
template <std::uint32_t Rank, class Reader, class Columns>
__device__ side_extents read_columns(const Reader& reader, const Columns& strides, std::uint64_t unit, std::uint64_t i,
                                     std::uint64_t element_bytes) {
  constexpr patch_fields dims = patch_extents(Rank) & ~tmap::detail::any_stride;
  side_extents read = extents_of<Rank>(reader.read(i, dims));
  std::uint64_t below = element_bytes;
#pragma unroll
  for (std::uint32_t axis = 1; axis < Rank; ++axis) {
    below = strides[axis - 1] == nullptr ? saturated_product(below, read.dim[axis - 1]) : strides[axis - 1][i] * unit;
    read.stride[axis - 1] = below;
  }
  return read;
}

template <std::uint32_t Rank, class Offset>
__device__ side_extents read_rows(const plan_side& side, const device::typed_rows<Offset>& rows, std::uint64_t i) {
  const map_patch patch = device::ragged_rows_reader<Offset>(rows, side.row_begins).read(i, {});
  side_extents read{patch.global_address, {1, 1, 1, 1, 1}, {}};
#pragma unroll
  for (std::uint32_t axis = 0; axis + 1 < Rank; ++axis) {
    read.dim[axis] = side.inner.dim[axis];
    if (axis > 0) read.stride[axis - 1] = side.inner.stride_bytes[axis - 1];
  }
  read.dim[Rank - 1] = patch.global_dim[Rank - 1];
  if (Rank > 1) read.stride[Rank - 2] = rows.row_pitch_bytes;
  return read;
}

template <std::uint32_t Rank>
__device__ side_extents read_tensor(const plan_side& side, std::uint64_t i) {
  using cuda::std::get_if;
  if (const auto* const array = get_if<patch_array>(&side.tensors)) {
    return extents_of<Rank>(device::patch_array_reader(*array, {}).read(i, patch_extents(Rank)));
  }
  if (const auto* const columns = get_if<patch_columns>(&side.tensors)) {
    const device::patch_columns_reader reader(*columns, {});
    return read_columns<Rank>(reader, columns->global_stride_bytes, 1, i, side.element_bytes);
  }
  if (const auto* const columns = get_if<compact_columns>(&side.tensors)) {
    const device::compact_columns_reader reader(*columns, {});
    return read_columns<Rank>(reader, columns->global_stride_units, 16, i, side.element_bytes);
  }
  using device::typed_rows;
  if (const auto* const rows = get_if<typed_rows<std::int32_t>>(&side.tensors)) return read_rows<Rank>(side, *rows, i);
  return read_rows<Rank>(side, *get_if<typed_rows<std::int64_t>>(&side.tensors), i);
}

template <std::uint32_t Rank>
__device__ side_extents read_dense(const plan_side& side, std::uint64_t i) {
  side_extents read{side.dense.address + i * side.dense.tensor_pitch_bytes, {1, 1, 1, 1, 1}, {}};
#pragma unroll
  for (std::uint32_t axis = 0; axis < Rank; ++axis) {
    read.dim[axis] = side.dense.dim[axis];
    if (axis > 0) read.stride[axis - 1] = side.dense.stride_bytes[axis - 1];
  }
  return read;
}

/// Returns a tensor without gaps in the packed buffer.
template <std::uint32_t Rank>
__device__ side_extents place_packed(const plan_side& side, const side_extents& other, std::uint64_t begin) {
  side_extents packed = other;
  packed.address = side.packed_address + begin;
  tmap::detail::pack_strides<Rank>(packed, side.element_bytes);
  return packed;
}

__device__ inline std::uint64_t divide_up(std::uint64_t value, std::uint64_t divisor) {
  if ((value | divisor) >> 31 == 0) {
    return (static_cast<std::uint32_t>(value) + static_cast<std::uint32_t>(divisor) - 1) /
           static_cast<std::uint32_t>(divisor);
  }
  return (value + divisor - 1) / divisor;
}

}  // namespace detail

/// Returns the number of pieces that `rule` cuts a tensor into. It is 0 if a dim is 0.
template <std::uint32_t Rank>
__device__ std::uint64_t count_pieces(const planned_tensor& tensor, const piece_rule& rule) {
  if (rule.tile != 0) return transpose_piece_count(tensor, rule);
  if (rule.cut == piece_cut::columns) return column_piece_count(tensor.dim[0], tensor.dim[1]);
  std::uint64_t pieces = 1;
  if (tensor.way == route::tensor_map || rule.cut == piece_cut::boxes) {
#pragma unroll
    for (std::uint32_t axis = 0; axis < Rank; ++axis) pieces *= detail::divide_up(tensor.dim[axis], rule.box_dim[axis]);
    return pieces;
  }
#pragma unroll
  for (std::uint32_t axis = 1; axis < Rank; ++axis) pieces *= tensor.dim[axis];
  if (tensor.dim[0] == 0) return 0;
  if (tensor.dim[0] > rule.piece_elements) return pieces * detail::divide_up(tensor.dim[0], rule.piece_elements);
  return detail::divide_up(pieces, rule.piece_elements / static_cast<std::uint32_t>(tensor.dim[0]));
}

/// A tensor that has been read and judged.
struct tensor_verdict {
  side_extents source;
  side_extents destination;
  std::uint64_t copied[max_rank];  ///< the dims that are moved, in dims of the source; 0 for a bad tensor
  std::uint32_t bits;              ///< of its status
  bool has_destination;            ///< false: nothing may be written, not even fill
  planned_scales scales;           ///< of a good tensor, if tensors have scales
};

namespace detail {

/// Returns the byte offset of tensor i in the packed side.
__device__ inline std::uint64_t begin_of(const plan_arguments& plan, std::uint64_t i) {
  return plan.begins == nullptr || i == 0 ? 0 : static_cast<std::uint64_t>(plan.begins[i]);
}

template <std::uint32_t Rank>
__device__ tensor_verdict read_sides(const plan_arguments& plan, std::uint64_t i) {
  tensor_verdict read{};
  if (plan.source.kind == side_kind::tensors) read.source = read_tensor<Rank>(plan.source, i);
  if (plan.destination.kind == side_kind::tensors) read.destination = read_tensor<Rank>(plan.destination, i);
  if (plan.source.kind == side_kind::dense) read.source = read_dense<Rank>(plan.source, i);
  if (plan.destination.kind == side_kind::dense) read.destination = read_dense<Rank>(plan.destination, i);
  if (plan.source.kind == side_kind::packed) {
    read.source = place_packed<Rank>(plan.source, read.destination, begin_of(plan, i));
  }
  if (plan.destination.kind == side_kind::packed) {
    read.destination = place_packed<Rank>(plan.destination, read.source, begin_of(plan, i));
  }
  return read;
}

/// Returns the places of the scales of a tensor, in the order of the tensor's own dims.
__device__ inline planned_scales place_scales(const side_extents& scales, const tmap::detail::scale_grid& grid) {
  planned_scales placed{scales.address, sizeof(float), {}};
#pragma unroll
  for (std::uint32_t axis = 0; axis + 1 < max_rank; ++axis) placed.stride[axis] = scales.stride[axis];
  if (grid.is_transposed) cuda::std::swap(placed.step, placed.stride[0]);
  return placed;
}

}  // namespace detail

template <std::uint32_t Rank, bool HasScales>
__device__ tensor_verdict judge_tensor(const plan_arguments& plan, std::uint64_t i) {
  tensor_verdict tensor = detail::read_sides<Rank>(plan, i);
  const tmap::detail::pair_terms terms{plan.relation, plan.source.terms(), plan.destination.terms(), plan.limits};
  const tmap::detail::pair_verdict verdict = tmap::detail::judge_pair<Rank>(tensor.source, tensor.destination, terms);
  tensor.bits = verdict.bits;
  tensor.has_destination = verdict.has_destination;
  if constexpr (HasScales) {
    const side_extents scales = detail::read_tensor<Rank>(plan.scales, i);
    tensor.bits = tmap::detail::add_scale_faults<Rank>(tensor.bits, tensor.source, scales, plan.grid, plan.limits);
    tensor.scales = detail::place_scales(scales, plan.grid);
  }
  const bool is_padded = plan.relation == shape_relation::clipped;
  const bool is_copied = tmap::detail::is_moved(tensor.bits, plan.relation);
  const bool is_unpadded = plan.relation == shape_relation::corner;
#pragma unroll
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    // A reference to one side would be a choice of addresses, which would keep both in local
    // memory.
    const std::uint64_t dim = is_unpadded ? tensor.destination.dim[axis] : tensor.source.dim[axis];
    const std::uint64_t most = is_padded ? tensor.destination.dim[axis] : dim;
    const std::uint64_t copied = !is_copied ? 0 : dim < most ? dim : most;
    tensor.copied[axis] = axis < Rank ? copied : 1;
  }
  return tensor;
}

}  // namespace tmap::kernels
