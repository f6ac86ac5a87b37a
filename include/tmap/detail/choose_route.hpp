// SPDX-License-Identifier: Apache-2.0
#pragma once

// Implements route.hpp, also for the planning kernel: the folding of dims, the requirements of each
// route, and the sizes from which a route gains. Any bits are legal input.

#include <tmap/detail/spec_arithmetic.hpp>
#include <tmap/route.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>

namespace tmap::detail {

// The sizes from which routes gain. One thread issues bulk copies and boxes one by one, so each
// must move enough bytes to be worth its issue.
inline constexpr std::uint64_t bulk_row_bytes = 1024;  ///< from here on, one bulk copy a row
inline constexpr std::uint64_t map_row_bytes = 64;     ///< below it the rows of a box waste the copy engine's requests
inline constexpr std::uint64_t map_tensor_bytes = 2048;  ///< below it a map costs more than it saves

// The requirements of the mechanisms (PTX ISA 9.7.9.25; cuTensorMapEncodeTiled).
inline constexpr std::uint64_t bulk_unit = 16;
inline constexpr std::uint64_t ldgsts_unit = 4;

TMAP_HOST_DEVICE constexpr std::uint64_t saturated_product(std::uint64_t a, std::uint64_t b) {
  return saturate(uint128{a} * b);
}

/// The dims of two sides of an operation, each with strides of its own. For one tensor, both sides
/// are the same.
struct two_sided {
  std::uint64_t dim[max_rank];  ///< 1 beyond the rank
  std::uint64_t source_stride[max_rank - 1];
  std::uint64_t destination_stride[max_rank - 1];
  std::uint64_t source_element;  ///< bytes
  std::uint64_t destination_element;
};

/// Removes axis `axis` (at least 1). The axes above it move down.
TMAP_HOST_DEVICE constexpr void remove_axis(two_sided& t, std::uint32_t axis) {
  for (std::uint32_t k = 1; k + 1 < max_rank; ++k) {
    if (k < axis) continue;
    t.dim[k] = t.dim[k + 1];
    t.source_stride[k - 1] = t.source_stride[k];
    t.destination_stride[k - 1] = t.destination_stride[k];
  }
  t.dim[max_rank - 1] = 1;
  t.source_stride[max_rank - 2] = 0;
  t.destination_stride[max_rank - 2] = 0;
}

/// Whether a step along `axis` is as long as the whole axis below it, on both sides.
TMAP_HOST_DEVICE constexpr bool follows_without_gap(const two_sided& t, std::uint32_t axis) {
  const std::uint64_t below = t.dim[axis - 1];
  const std::uint64_t source_step = axis == 1 ? t.source_element : t.source_stride[axis == 1 ? 0 : axis - 2];
  const std::uint64_t destination_step =
      axis == 1 ? t.destination_element : t.destination_stride[axis == 1 ? 0 : axis - 2];
  return t.source_stride[axis - 1] == saturated_product(below, source_step) &&
         t.destination_stride[axis - 1] == saturated_product(below, destination_step);
}

/// Removes axes of one element and joins neighbours without a gap. The lowest `kept` axes stay as
/// they are.
TMAP_HOST_DEVICE constexpr void fold(two_sided& t, std::uint32_t kept) {
  for (std::uint32_t axis = max_rank - 1; axis >= 1; --axis) {
    if (axis >= kept && t.dim[axis] == 1) remove_axis(t, axis);
  }
  for (std::uint32_t axis = max_rank - 1; axis >= 1; --axis) {
    if (axis <= kept && kept != 0) continue;
    if (t.dim[axis] == 1 || !follows_without_gap(t, axis)) continue;
    t.dim[axis - 1] = saturated_product(t.dim[axis - 1], t.dim[axis]);
    remove_axis(t, axis);
  }
}

/// The facts that the choice depends on. Each holds for both sides.
struct route_facts {
  std::uint64_t row_bytes{};    ///< of dim 0, after folding
  std::uint64_t bytes{};        ///< of all elements
  std::uint64_t folded_bits{};  ///< address and strides after folding, or-ed: the lowest set bit is their alignment
  std::uint64_t row_bits{};     ///< rows' bytes after folding, or-ed
  std::uint64_t map_bits{};     ///< address and strides that a map needs, or-ed
  bool has_map_element{};       ///< 1, 2, 4 or 8 bytes
  bool has_map_extents{};       ///< dims and strides that a map can hold
};

TMAP_HOST_DEVICE constexpr route_facts join(const route_facts& a, const route_facts& b) {
  route_facts both;
  both.row_bytes = a.row_bytes < b.row_bytes ? a.row_bytes : b.row_bytes;
  both.bytes = a.bytes < b.bytes ? a.bytes : b.bytes;
  both.folded_bits = a.folded_bits | b.folded_bits;
  both.row_bits = a.row_bits | b.row_bits;
  both.map_bits = a.map_bits | b.map_bits;
  both.has_map_element = a.has_map_element && b.has_map_element;
  both.has_map_extents = a.has_map_extents && b.has_map_extents;
  return both;
}

/// Whether a map can describe one side. Axes of one element may have any stride. A destination's
/// rows must be whole units, because the copy engine ends a stored row at the next multiple of 16
/// bytes.
TMAP_HOST_DEVICE constexpr void add_map_facts(route_facts& facts, std::uint64_t address, std::uint64_t element_bytes,
                                              const std::uint64_t* dim, const std::uint64_t* stride,
                                              bool is_destination) {
  const bool is_power_of_two = (element_bytes & (element_bytes - 1)) == 0;
  facts.has_map_element = is_power_of_two && element_bytes >= 1 && element_bytes <= 8;
  facts.has_map_extents = true;
  facts.map_bits = address | (is_destination ? saturated_product(dim[0], element_bytes) : 0);
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    if (dim[axis] > max_copied_dim) facts.has_map_extents = false;
    if (axis == 0 || dim[axis] <= 1) continue;
    facts.map_bits |= stride[axis - 1];
    if (stride[axis - 1] >= global_stride_limit) facts.has_map_extents = false;
  }
}

/// Computes the facts of one side that the other routes need, after folding.
TMAP_HOST_DEVICE constexpr void add_row_facts(route_facts& facts, std::uint64_t address, std::uint64_t element_bytes,
                                              const std::uint64_t* dim, const std::uint64_t* stride) {
  facts.row_bytes = facts.row_bits = saturated_product(dim[0], element_bytes);
  facts.bytes = facts.row_bytes;
  facts.folded_bits = address;
  for (std::uint32_t axis = 1; axis < max_rank; ++axis) {
    if (dim[axis] == 1) continue;
    facts.folded_bits |= stride[axis - 1];
    facts.bytes = saturated_product(facts.bytes, dim[axis]);
  }
}

/// Returns the reason against a route for a tensor; `best` if there is none.
TMAP_HOST_DEVICE constexpr route_reason obstacle(const route_facts& facts, route way, const route_options& options) {
  const bool is_engine = way == route::tensor_map || way == route::bulk;
  const bool must_gain = options.policy != route_policy::force;
  if (way == route::tensor_map) {
    if (!facts.has_map_element || facts.map_bits % bulk_unit != 0) return route_reason::misaligned;
    if (!facts.has_map_extents) return route_reason::extent_too_large;
    const bool gains = facts.row_bytes >= map_row_bytes && facts.bytes >= map_tensor_bytes;
    if (must_gain && !gains) return route_reason::too_small;
  }
  if (way == route::bulk) {
    if (facts.folded_bits % bulk_unit != 0) return route_reason::misaligned;
    if (facts.row_bytes < (must_gain ? bulk_row_bytes : bulk_unit)) return route_reason::too_small;
  }
  if (way == route::ldgsts) {
    if ((facts.folded_bits | facts.row_bits) % ldgsts_unit != 0) return route_reason::misaligned;
  }
  if (is_engine && options.policy == route_policy::disable) return route_reason::disabled_by_policy;
  if (way != route::plain && !options.allowed.contains(way)) return route_reason::not_allowed;
  return route_reason::best;
}

/// Returns the fastest route that is possible. The reason is the first obstacle to a faster one.
TMAP_HOST_DEVICE constexpr route_choice choose(const route_facts& facts, const route_options& options) {
  const bool has_long_rows = facts.row_bytes >= bulk_row_bytes;
  const route order[route_count] = {has_long_rows ? route::bulk : route::tensor_map,
                                    has_long_rows ? route::tensor_map : route::bulk, route::ldgsts, route::plain};
  route_reason first = route_reason::best;
  for (const route way : order) {
    const route_reason why = obstacle(facts, way, options);
    if (why == route_reason::best) return {way, first};
    if (first == route_reason::best) first = why;
  }
  return {route::plain, first};
}

TMAP_HOST_DEVICE constexpr route_choice choose_for_one(const tensor_layout& tensor, const route_options& options) {
  two_sided folded{{1, 1, 1, 1, 1}, {}, {}, tensor.element_bytes, tensor.element_bytes};
  for (std::uint32_t axis = 0; axis < max_rank && axis < tensor.rank; ++axis) {
    folded.dim[axis] = tensor.dim[axis];
    if (axis == 0) continue;
    folded.source_stride[axis - 1] = folded.destination_stride[axis - 1] = tensor.stride_bytes[axis - 1];
  }
  route_facts facts;
  add_map_facts(facts, tensor.address, tensor.element_bytes, folded.dim, folded.source_stride, false);
  fold(folded, 0);
  add_row_facts(facts, tensor.address, tensor.element_bytes, folded.dim, folded.source_stride);
  return choose(facts, options);
}

}  // namespace tmap::detail

namespace tmap {

TMAP_HOST_DEVICE constexpr route_choice choose_route(const tensor_layout& tensor, const route_options& options) {
  return detail::choose_for_one(tensor, options);
}

/// Types of 4 and 6 bits count as bytes.
TMAP_HOST_DEVICE constexpr route_choice choose_route(const tensor_spec& spec, const route_options& options) {
  const bool is_whole_bytes = element_bits(spec.type) % 8 == 0;
  tensor_layout tensor;
  tensor.address = spec.global_address;
  tensor.element_bytes = is_whole_bytes ? element_bits(spec.type) / 8 : 1;
  tensor.rank = spec.rank;
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    tensor.dim[axis] = spec.global_dim[axis];
    if (axis + 1 < max_rank) tensor.stride_bytes[axis] = spec.global_stride_bytes[axis];
  }
  if (!is_whole_bytes) tensor.dim[0] = element_bytes(spec.type, tensor.dim[0]);
  return choose_route(tensor, options);
}

}  // namespace tmap
