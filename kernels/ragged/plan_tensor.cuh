// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the planning kernel does for one tensor: reads both sides, judges them, folds, chooses the route, counts pieces.
// Everything it reads from device memory may be any bits.

#include "kernels/ragged/planned_tensor.hpp"
#include "kernels/ragged/transpose_tiles.hpp"
#include "kernels/ragged_launch.hpp"

#include <tmap/detail/choose_route.hpp>
#include <tmap/device/patch_source.cuh>

#include <cuda/std/utility>
#include <cuda/std/variant>

#include <cstdint>

namespace tmap::kernels {

/// A `side` as kernels can read it: std::variant works on the host only.
struct plan_side {
  using source = cuda::std::variant<patch_array, patch_columns, compact_columns, ragged_rows<std::int32_t>,
                                    ragged_rows<std::int64_t>>;

  side_kind kind;
  std::uint32_t element_bytes;
  source tensors;
  inner_extents inner;
  const std::int64_t* row_begins;
  dense_batch dense;
  std::uint64_t packed_address;
  std::uint64_t packed_bytes;
  std::uint64_t packed_alignment;

  __device__ std::uint64_t alignment() const { return element_bytes & (~element_bytes + 1); }
};

struct plan_arguments {
  plan_side source;
  plan_side destination;
  std::uint64_t count;
  shape_relation relation;
  std::uint32_t kept_axes;
  route_options routes;
  piece_rule rule;
  const address_window* windows;
  std::uint32_t window_count;
  std::int64_t* begins;
};

/// One side of one tensor; dims are 1 beyond the rank, strides 0.
struct side_extents {
  std::uint64_t address;
  std::uint64_t dim[max_rank];
  std::uint64_t stride[max_rank - 1];
};

namespace detail {

using tmap::detail::saturated_product;

inline constexpr std::uint64_t max_tensor_bytes = std::uint64_t{1} << 39;
inline constexpr std::uint64_t max_stride_reach = std::uint64_t{1} << 47;

__device__ constexpr std::uint32_t bit(ragged::fault f) {
  return static_cast<std::uint32_t>(f);
}

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

/// Strides where axes follow each other without gaps.
template <std::uint32_t Rank>
__device__ void pack_strides(side_extents& tensor, std::uint64_t element_bytes) {
  std::uint64_t extent = element_bytes;
#pragma unroll
  for (std::uint32_t axis = 1; axis < Rank; ++axis) {
    extent = saturated_product(extent, tensor.dim[axis - 1]);
    tensor.stride[axis - 1] = extent;
  }
}

/// A null column of strides: the step is the extent of the axis below.
template <std::uint32_t Rank, class Reader, class Columns>
__device__ side_extents read_columns(const Reader& reader, const Columns& strides, std::uint64_t unit, std::uint64_t i,
                                     std::uint64_t element_bytes) {
  constexpr patch_fields strides_too = patch_extents(Rank);
  constexpr patch_fields dims = strides_too & ((1u << (1 + max_rank)) - 1);
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
__device__ side_extents read_rows(const plan_side& side, const ragged_rows<Offset>& rows, std::uint64_t i) {
  const map_patch patch = device::ragged_rows_reader<Offset>(rows, side.row_begins).read(i, 0);
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
    return extents_of<Rank>(device::patch_array_reader(*array, 0).read(i, patch_extents(Rank)));
  }
  if (const auto* const columns = get_if<patch_columns>(&side.tensors)) {
    const device::patch_columns_reader reader(*columns, 0);
    return read_columns<Rank>(reader, columns->global_stride_bytes, 1, i, side.element_bytes);
  }
  if (const auto* const columns = get_if<compact_columns>(&side.tensors)) {
    const device::compact_columns_reader reader(*columns, 0);
    return read_columns<Rank>(reader, columns->global_stride_units, 16, i, side.element_bytes);
  }
  if (const auto* const rows = get_if<ragged_rows<std::int32_t>>(&side.tensors)) return read_rows<Rank>(side, *rows, i);
  return read_rows<Rank>(side, *get_if<ragged_rows<std::int64_t>>(&side.tensors), i);
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

template <std::uint32_t Rank>
__device__ bool is_empty(const side_extents& tensor) {
  bool has_zero = false;
#pragma unroll
  for (std::uint32_t axis = 0; axis < Rank; ++axis) has_zero = has_zero || tensor.dim[axis] == 0;
  return has_zero;
}

template <std::uint32_t Rank>
__device__ std::uint64_t bytes_of(const side_extents& tensor, std::uint64_t element_bytes) {
  std::uint64_t bytes = element_bytes;
#pragma unroll
  for (std::uint32_t axis = 0; axis < Rank; ++axis) bytes = saturated_product(bytes, tensor.dim[axis]);
  return bytes;
}

__device__ inline std::uint32_t judge_windows(std::uint64_t begin, std::uint64_t end, const address_window* windows,
                                              std::uint32_t window_count) {
  for (std::uint32_t w = 0; w < window_count; ++w) {
    if (windows[w].begin <= begin && end <= windows[w].end) return 0;
  }
  return window_count == 0 ? 0 : bit(ragged::fault::window);
}

/// A mask, as a division by a number that only the programmer knows for a power of two takes a hundred instructions.
__device__ constexpr bool is_multiple(std::uint64_t value, std::uint64_t power_of_two) {
  return (value & (power_of_two - 1)) == 0;
}

/// The faults of one side by itself, which has elements. Address and windows are judged where the extents let them be.
template <std::uint32_t Rank>
__device__ std::uint32_t judge_side(const side_extents& tensor, const plan_side& side, const address_window* windows,
                                    std::uint32_t window_count) {
  const std::uint64_t alignment = side.alignment();
  std::uint32_t bits = bytes_of<Rank>(tensor, side.element_bytes) > max_tensor_bytes ? bit(ragged::fault::dim) : 0;
  std::uint64_t reach = tensor.dim[0] * side.element_bytes;
#pragma unroll
  for (std::uint32_t axis = 0; axis < Rank; ++axis) {
    if (tensor.dim[axis] > tmap::detail::max_copied_dim) bits |= bit(ragged::fault::dim);
    if (axis == 0 || tensor.dim[axis] <= 1) continue;
    const std::uint64_t stride = tensor.stride[axis - 1];
    const bool is_wild = saturated_product(stride, tensor.dim[axis]) > max_stride_reach;
    if (is_wild || !is_multiple(stride, alignment)) bits |= bit(ragged::fault::stride);
    reach += (tensor.dim[axis] - 1) * stride;
  }
  const bool is_aligned = tensor.address != 0 && is_multiple(tensor.address, alignment);
  if (!is_aligned || tensor.address >= tmap::detail::address_limit) bits |= bit(ragged::fault::address);
  if (bits != 0) return bits;
  if (reach > tmap::detail::address_limit - tensor.address) return bit(ragged::fault::address);
  return judge_windows(tensor.address, tensor.address + reach, windows, window_count);
}

/// The same in the order of the strides. Out of line: permuted dims are rare.
template <std::uint32_t Rank>
__device__ __noinline__ bool overlaps_in_any_order(side_extents tensor, std::uint64_t extent) {
#pragma unroll
  for (std::uint32_t pass = 1; pass < Rank; ++pass) {
#pragma unroll
    for (std::uint32_t k = 1; k + 1 < Rank; ++k) {
      if (tensor.stride[k - 1] <= tensor.stride[k]) continue;
      cuda::std::swap(tensor.stride[k - 1], tensor.stride[k]);
      cuda::std::swap(tensor.dim[k], tensor.dim[k + 1]);
    }
  }
  bool overlaps = false;
#pragma unroll
  for (std::uint32_t axis = 1; axis < Rank; ++axis) {
    if (tensor.dim[axis] <= 1) continue;
    overlaps = overlaps || tensor.stride[axis - 1] < extent;
    extent += (tensor.dim[axis] - 1) * tensor.stride[axis - 1];
  }
  return overlaps;
}

/// Of a destination without faults of its extents.
template <std::uint32_t Rank>
__device__ bool has_overlap(const side_extents& tensor, std::uint64_t element_bytes) {
  const std::uint64_t row = tensor.dim[0] * element_bytes;
  std::uint64_t extent = row;
  bool is_ordered = true;
#pragma unroll
  for (std::uint32_t axis = 1; axis < Rank; ++axis) {
    if (tensor.dim[axis] <= 1) continue;
    is_ordered = is_ordered && tensor.stride[axis - 1] >= extent;
    extent += (tensor.dim[axis] - 1) * tensor.stride[axis - 1];
  }
  return !is_ordered && overlaps_in_any_order<Rank>(tensor, row);
}

__device__ constexpr std::uint64_t round_up_to(std::uint64_t bytes, std::uint64_t power_of_two) {
  return (bytes + power_of_two - 1) & ~(power_of_two - 1);
}

/// A tensor without gaps in the packed buffer. One that ends behind it is truncated.
template <std::uint32_t Rank>
__device__ side_extents place_packed(const plan_side& side, const side_extents& other, std::uint64_t begin) {
  side_extents packed = other;
  packed.address = side.packed_address + begin;
  pack_strides<Rank>(packed, side.element_bytes);
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

/// The pieces that `rule` cuts a tensor into; 0 when a dim is 0.
template <std::uint32_t Rank>
__device__ std::uint64_t count_pieces(const planned_tensor& tensor, const piece_rule& rule) {
  if (rule.tile != 0) return transpose_piece_count(tensor, rule);
  std::uint64_t pieces = 1;
  if (tensor.way == route::tensor_map) {
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

/// A tensor read and judged.
struct tensor_verdict {
  side_extents source;
  side_extents destination;
  std::uint64_t copied[max_rank];  ///< what is moved, in dims of the source; 0 of a bad tensor
  std::uint32_t bits;              ///< of its status
  bool has_destination;            ///< false: nothing may be written, not even fill
};

namespace detail {

/// Whether the shapes of two sides go together.
template <std::uint32_t Rank>
__device__ bool has_mismatch(const plan_arguments& plan, const side_extents& source, const side_extents& destination) {
  const bool may_be_larger = plan.source.kind == side_kind::dense;
  bool differs = false;
#pragma unroll
  for (std::uint32_t axis = 0; axis < Rank; ++axis) {
    std::uint64_t wanted = source.dim[axis];
    if (plan.relation == shape_relation::swapped && axis < 2) wanted = source.dim[1 - axis];
    if (plan.relation == shape_relation::reduced && axis == 0) wanted = 1;
    differs = differs || (may_be_larger ? destination.dim[axis] > wanted : destination.dim[axis] != wanted);
  }
  return differs;
}

/// The packed side's byte offset of tensor i.
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

/// A tensor of no elements: by the side or sides that bring shapes.
template <std::uint32_t Rank>
__device__ bool is_empty_pair(const plan_arguments& plan, const tensor_verdict& read) {
  const bool source_decides = plan.relation == shape_relation::reduced || plan.relation == shape_relation::clipped;
  if (plan.source.kind == side_kind::dense) return is_empty<Rank>(read.destination);
  return is_empty<Rank>(read.source) && (source_decides || is_empty<Rank>(read.destination));
}

template <std::uint32_t Rank>
__device__ bool is_truncated(const plan_arguments& plan, const tensor_verdict& read, std::uint64_t i) {
  for (const plan_side* const side : {&plan.source, &plan.destination}) {
    if (side->kind != side_kind::packed) continue;
    const std::uint64_t bytes = bytes_of<Rank>(read.source, side->element_bytes);
    const std::uint64_t begin = begin_of(plan, i);
    if (begin > side->packed_bytes || bytes > side->packed_bytes - begin) return true;
  }
  bool is_cut = false;
  if (plan.relation == shape_relation::clipped) {
#pragma unroll
    for (std::uint32_t axis = 0; axis < Rank; ++axis) {
      is_cut = is_cut || read.source.dim[axis] > read.destination.dim[axis];
    }
  }
  return is_cut;
}

/// The faults of both sides, or `truncated` alone. A side without elements has none.
template <std::uint32_t Rank>
__device__ std::uint32_t judge_pair(const plan_arguments& plan, tensor_verdict& read, std::uint64_t i) {
  const bool is_empty_tensor = is_empty_pair<Rank>(plan, read);
  const bool is_padded = plan.relation == shape_relation::clipped;
  std::uint32_t destination = 0;
  if (!is_empty<Rank>(read.destination) && (is_padded || !is_empty_tensor)) {
    const std::uint32_t extents = bit(ragged::fault::dim) | bit(ragged::fault::stride);
    destination = judge_side<Rank>(read.destination, plan.destination, plan.windows, plan.window_count);
    if ((destination & extents) == 0 && has_overlap<Rank>(read.destination, plan.destination.element_bytes)) {
      destination |= bit(ragged::fault::overlap);
    }
  }
  read.has_destination = destination == 0;
  if (is_empty_tensor) return destination != 0 ? destination : ragged::tensor_status::empty_bit;
  std::uint32_t source = 0;
  if (!is_empty<Rank>(read.source)) {
    source = judge_side<Rank>(read.source, plan.source, plan.windows, plan.window_count);
  }
  std::uint32_t bits = source | destination;
  if (!is_padded && has_mismatch<Rank>(plan, read.source, read.destination)) bits |= bit(ragged::fault::mismatch);
  if (bits == 0 && is_truncated<Rank>(plan, read, i)) bits = bit(ragged::fault::truncated);
  return bits;
}

}  // namespace detail

template <std::uint32_t Rank>
__device__ tensor_verdict judge_tensor(const plan_arguments& plan, std::uint64_t i) {
  tensor_verdict tensor = detail::read_sides<Rank>(plan, i);
  const bool is_padded = plan.relation == shape_relation::clipped;
  tensor.bits = detail::judge_pair<Rank>(plan, tensor, i);
  const bool is_cut = is_padded && tensor.bits == detail::bit(ragged::fault::truncated);
  const bool is_copied = tensor.bits == 0 || is_cut;
  const bool is_unpadded = plan.source.kind == side_kind::dense;
#pragma unroll
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    // Not by a reference to one side: a choice of addresses would keep both in local memory.
    const std::uint64_t dim = is_unpadded ? tensor.destination.dim[axis] : tensor.source.dim[axis];
    const std::uint64_t most = is_padded ? tensor.destination.dim[axis] : dim;
    const std::uint64_t copied = !is_copied ? 0 : dim < most ? dim : most;
    tensor.copied[axis] = axis < Rank ? copied : 1;
  }
  return tensor;
}

}  // namespace tmap::kernels
