// SPDX-License-Identifier: Apache-2.0
#pragma once

// A shortcut for most tensors. Judging, folding and choosing take more than a thousand
// instructions. A small batch fetches and runs them once, so it pays for all of them. A tensor
// without gaps on both sides needs a tenth. If in doubt, the shortcut plans nothing. The plans that
// it makes equal those of the full rules.

#include "kernels/ragged/plan_tensor.cuh"

#include <tmap/detail/choose_route.hpp>

#include <cstdint>

namespace tmap::kernels {

namespace detail {

/// This limit keeps products from overflowing. Larger dims take the long way, whose cost does not
/// matter for such a tensor.
inline constexpr std::uint64_t most_plain_dim = std::uint64_t{1} << 31;

/// Returns the bytes of one side, or 0 unless it certainly has elements, no gaps and no fault.
template <std::uint32_t Rank>
__device__ std::uint64_t plain_bytes(const side_extents& tensor, const plan_side& side, std::uint64_t most_bytes) {
  std::uint64_t bytes = side.element_bytes;
  bool is_plain = true;
#pragma unroll
  for (std::uint32_t axis = 0; axis < Rank; ++axis) {
    const std::uint64_t dim = tensor.dim[axis];
    if (axis > 0) is_plain = is_plain && (dim == 1 || tensor.stride[axis - 1] == bytes);
    is_plain = is_plain && dim - 1 < most_plain_dim;
    // Below 2^32 times at most 2^31 does not overflow. Longer ones do not reach the next axis.
    is_plain = is_plain && (axis == 0 || bytes >> 32 == 0);
    bytes *= dim;
  }
  const bool has_place = tensor.address - 1 < tmap::detail::address_limit / 2 && bytes <= most_bytes;
  return is_plain && has_place && is_multiple(tensor.address, side.alignment()) ? bytes : 0;
}

/// Chooses bulk copies if they are the first choice, and otherwise a route without the copy engine.
/// Returns false if maps compete.
__device__ inline bool choose_plainly(const plan_arguments& plan, std::uint64_t addresses, std::uint64_t source_bytes,
                                      std::uint64_t destination_bytes, route& way) {
  const route_options& routes = plan.routes;
  const std::uint64_t row = source_bytes < destination_bytes ? source_bytes : destination_bytes;
  const std::uint64_t bits = addresses | source_bytes | destination_bytes;
  const bool may_engine = routes.policy != route_policy::disable;
  if (may_engine && row >= tmap::detail::bulk_row_bytes && addresses % tmap::detail::bulk_unit == 0) {
    way = route::bulk;
    return routes.allowed.contains(route::bulk);
  }
  const bool has_units = bits % tmap::detail::ldgsts_unit == 0 && routes.allowed.contains(route::ldgsts);
  way = has_units ? route::ldgsts : route::plain;
  return true;
}

/// Returns the blocks along a dim of at most `most_plain_dim`. `block` 0 stands for all of it.
__device__ inline std::uint32_t plain_blocks(std::uint64_t dim, std::uint32_t block) {
  return block == 0 ? 1 : (static_cast<std::uint32_t>(dim) + block - 1) / block;
}

/// Returns whether scales have the dims that belong to a tensor. Its dims are at most
/// `most_plain_dim`.
template <std::uint32_t Rank>
__device__ bool has_plain_scales(const side_extents& tensor, const side_extents& scales,
                                 const tmap::detail::scale_grid& grid) {
  const std::uint32_t columns = plain_blocks(tensor.dim[0], grid.columns);
  if (Rank == 1) return scales.dim[0] == columns;
  const std::uint32_t rows = plain_blocks(tensor.dim[1], grid.rows);
  bool is_same = scales.dim[0] == (grid.is_transposed ? rows : columns);
  is_same = is_same && scales.dim[1] == (grid.is_transposed ? columns : rows);
#pragma unroll
  for (std::uint32_t axis = 2; axis < Rank; ++axis) is_same = is_same && scales.dim[axis] == tensor.dim[axis];
  return is_same;
}

/// Returns whether an operation whose tensors keep their dims, or exchange the first two, allows
/// the shortcut.
__device__ inline bool has_plain_terms_with_scales(const plan_arguments& plan) {
  const bool are_tensors = plan.source.kind == side_kind::tensors && plan.destination.kind == side_kind::tensors &&
                           plan.scales.kind == side_kind::tensors;
  return are_tensors && plan.limits.window_count == 0 && plan.routes.policy != route_policy::force;
}

/// Returns a dim of the destination in the order of the source. A constant axis keeps dims in
/// registers.
__device__ inline std::uint64_t dim_as_source(const side_extents& destination, std::uint32_t axis, bool is_swapped) {
  const std::uint64_t other = axis == 0 ? destination.dim[1] : axis == 1 ? destination.dim[0] : destination.dim[axis];
  return is_swapped ? other : destination.dim[axis];
}

}  // namespace detail

/// Returns whether the operation as a whole allows the shortcut.
template <std::uint32_t Rank>
__device__ bool has_plain_terms(const plan_arguments& plan) {
  const bool are_tensors = plan.source.kind == side_kind::tensors && plan.destination.kind == side_kind::tensors;
  const bool folds_all = plan.kept_axes == 0 || (Rank == 1 && plan.kept_axes == 1);
  return are_tensors && folds_all && plan.relation == shape_relation::equal && plan.limits.window_count == 0 &&
         plan.rule.tile == 0 && plan.routes.policy != route_policy::force;
}

/// Makes the record of tensor `i`, which is then good, and returns its pieces. Returns 0 if the
/// tensor takes the long way.
template <std::uint32_t Rank>
__device__ std::uint64_t plan_plainly(const plan_arguments& plan, std::uint64_t i, planned_tensor& record) {
  if (!has_plain_terms<Rank>(plan)) return 0;
  const side_extents source = detail::read_tensor<Rank>(plan.source, i);
  const side_extents destination = detail::read_tensor<Rank>(plan.destination, i);
  const std::uint64_t source_bytes = detail::plain_bytes<Rank>(source, plan.source, plan.limits.most_bytes);
  const std::uint64_t destination_bytes =
      detail::plain_bytes<Rank>(destination, plan.destination, plan.limits.most_bytes);
  std::uint64_t elements = 1;
  bool is_same = true;
#pragma unroll
  for (std::uint32_t axis = 0; axis < Rank; ++axis) {
    elements *= source.dim[axis];
    is_same = is_same && source.dim[axis] == destination.dim[axis];
  }
  route way = route::plain;
  if (!is_same || source_bytes == 0 || destination_bytes == 0) return 0;
  if (!detail::choose_plainly(plan, source.address | destination.address, source_bytes, destination_bytes, way)) {
    return 0;
  }
  record = {source.address, destination.address, {elements, 1, 1, 1, 1}, {}, {}, way, static_cast<std::uint32_t>(i)};
  return detail::divide_up(elements, plan.rule.piece_elements);
}

/// Does the same for an operation with scales, and places them. Dims stay as they are, those of the
/// source. The route is `plain`: kernels with scales do not read it.
template <std::uint32_t Rank>
__device__ std::uint64_t plan_plainly_with_scales(const plan_arguments& plan, std::uint64_t i, planned_tensor& record,
                                                  planned_scales& placed) {
  if (!detail::has_plain_terms_with_scales(plan)) return 0;
  const side_extents source = detail::read_tensor<Rank>(plan.source, i);
  const side_extents destination = detail::read_tensor<Rank>(plan.destination, i);
  const side_extents scales = detail::read_tensor<Rank>(plan.scales, i);
  const std::uint64_t most_bytes = plan.limits.most_bytes;
  const std::uint64_t source_bytes = detail::plain_bytes<Rank>(source, plan.source, most_bytes);
  const std::uint64_t destination_bytes = detail::plain_bytes<Rank>(destination, plan.destination, most_bytes);
  const std::uint64_t scale_bytes = detail::plain_bytes<Rank>(scales, plan.scales, most_bytes);
  if (source_bytes == 0 || destination_bytes == 0 || scale_bytes == 0) return 0;
  record = {source.address, destination.address, {}, {}, {}, route::plain, static_cast<std::uint32_t>(i)};
  const bool is_swapped = plan.relation == shape_relation::swapped;
  bool is_same = detail::has_plain_scales<Rank>(source, scales, plan.grid);
#pragma unroll
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    is_same = is_same && source.dim[axis] == detail::dim_as_source(destination, axis, is_swapped);
    record.dim[axis] = source.dim[axis];
    if (axis + 1 == max_rank) continue;
    record.source_stride[axis] = source.stride[axis];
    record.destination_stride[axis] = destination.stride[axis];
  }
  if (!is_same) return 0;
  placed = detail::place_scales(scales, plan.grid);
  return count_pieces<Rank>(record, plan.rule);
}

}  // namespace tmap::kernels
