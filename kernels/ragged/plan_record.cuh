// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns a judged tensor into the records that working kernels read: folds dims and chooses the
// route.

#include "kernels/ragged/plan_tensor.cuh"

#include <tmap/detail/choose_route.hpp>

#include <cstdint>

namespace tmap::kernels {

namespace detail {

using tmap::detail::route_facts;
using tmap::detail::two_sided;

/// A box that is moved, or filled when `source` is 0.
struct moved_box {
  std::uint64_t source;
  std::uint64_t destination;
  two_sided shape;
};

/// Returns the facts on maps of the sides that the route depends on: only the source if ordinary
/// stores write the destination, otherwise both.
__device__ inline route_facts add_maps(const plan_arguments& plan, const moved_box& box) {
  const two_sided& t = box.shape;
  route_facts source;
  tmap::detail::add_map_facts(source, box.source, t.source_element, t.dim, t.source_stride, false);
  if (plan.relation == shape_relation::swapped || plan.relation == shape_relation::reduced) return source;
  route_facts destination;
  tmap::detail::add_map_facts(destination, box.destination, t.destination_element, t.dim, t.destination_stride, true);
  source.map_bits |= destination.map_bits;
  source.has_map_element = source.has_map_element && destination.has_map_element;
  source.has_map_extents = source.has_map_extents && destination.has_map_extents;
  return source;
}

__device__ inline void add_rows(route_facts& facts, const plan_arguments& plan, const moved_box& box) {
  const two_sided& t = box.shape;
  route_facts source = facts;
  route_facts destination = facts;
  tmap::detail::add_row_facts(source, box.source, t.source_element, t.dim, t.source_stride);
  tmap::detail::add_row_facts(destination, box.destination, t.destination_element, t.dim, t.destination_stride);
  const bool source_alone = plan.relation == shape_relation::swapped || plan.relation == shape_relation::reduced;
  facts = box.source == 0 ? destination : source_alone ? source : join(source, destination);
}

__device__ inline planned_tensor record_of(const moved_box& box, route way, std::uint64_t tensor) {
  planned_tensor record{};
  record.source = box.source;
  record.destination = box.destination;
#pragma unroll
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    record.dim[axis] = box.shape.dim[axis];
    if (axis + 1 == max_rank) continue;
    record.source_stride[axis] = box.source == 0 ? 0 : box.shape.source_stride[axis];
    record.destination_stride[axis] = box.shape.destination_stride[axis];
  }
  record.way = way;
  record.tensor = static_cast<std::uint32_t>(tensor);
  return record;
}

/// Boxes that are filled have no maps: a tensor's maps are those of the copied part. Thin matrices
/// are not transposed through maps.
__device__ inline bool may_have_map(const plan_arguments& plan, const moved_box& box) {
  if (box.source == 0) return false;
  return plan.relation != shape_relation::swapped || !is_thin(box.shape.dim, plan.rule);
}

__device__ inline planned_tensor plan_box(const plan_arguments& plan, const moved_box& box, std::uint64_t tensor) {
  route_options routes = plan.routes;
  route_facts facts;
  if (!may_have_map(plan, box)) routes.allowed = routes.allowed.without(route::tensor_map);
  if (routes.allowed.contains(route::tensor_map)) facts = add_maps(plan, box);
  moved_box folded = box;
  tmap::detail::fold(folded.shape, plan.kept_axes);
  add_rows(facts, plan, folded);
  const route way = tmap::detail::choose(facts, routes).way;
  // A choice between two references would keep both in local memory.
  if (way == route::tensor_map) return record_of(box, way, tensor);
  return record_of(folded, way, tensor);
}

__device__ inline two_sided shape_of(const plan_arguments& plan, const tensor_verdict& tensor) {
  two_sided shape{{1, 1, 1, 1, 1}, {}, {}, plan.source.element_bytes, plan.destination.element_bytes};
#pragma unroll
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    shape.dim[axis] = tensor.copied[axis];
    if (axis + 1 == max_rank) continue;
    shape.source_stride[axis] = tensor.source.stride[axis];
    shape.destination_stride[axis] = tensor.destination.stride[axis];
  }
  return shape;
}

}  // namespace detail

/// Returns the record of the part of tensor `i` that is moved. Its dims are 0 if the tensor is
/// skipped.
__device__ inline planned_tensor plan_move(const plan_arguments& plan, const tensor_verdict& tensor, std::uint64_t i) {
  const detail::moved_box box{tensor.source.address, tensor.destination.address, detail::shape_of(plan, tensor)};
  if (tensor.copied[0] == 0) return detail::record_of(box, route::plain, i);
  return detail::plan_box(plan, box, i);
}

/// Returns the record of the part of the dense tensor that lies outside the copied part along
/// `axis`, and inside it along all higher axes.
__device__ inline planned_tensor plan_fill(const plan_arguments& plan, const tensor_verdict& tensor, std::uint64_t i,
                                           std::uint32_t axis) {
  const side_extents& dense = tensor.destination;
  detail::moved_box box{0, dense.address, detail::shape_of(plan, tensor)};
#pragma unroll
  for (std::uint32_t k = 0; k < max_rank; ++k) {
    const std::uint64_t stride = k == 0 ? plan.destination.element_bytes : dense.stride[k == 0 ? 0 : k - 1];
    if (k == axis) box.destination += tensor.copied[k] * stride;
    if (k == axis) box.shape.dim[k] = dense.dim[k] - tensor.copied[k];
    if (k < axis) box.shape.dim[k] = dense.dim[k];
    if (k > 0) box.shape.source_stride[k - 1] = stride;
  }
  if (!tensor.has_destination) box.shape.dim[0] = 0;
  if (box.shape.dim[0] == 0) return detail::record_of(box, route::plain, i);
  return detail::plan_box(plan, box, i);
}

}  // namespace tmap::kernels
