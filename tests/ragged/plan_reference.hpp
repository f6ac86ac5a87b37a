// SPDX-License-Identifier: Apache-2.0
#pragma once

// A slow implementation of planning in 128 bits, from the documentation in ragged.hpp, route.hpp
// and planned_tensor.hpp.

#include <tmap/ragged.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/ragged_launch.hpp"

namespace tmap::testing {

__extension__ typedef unsigned __int128 wide;

/// Holds one side of one tensor.
struct plain_side {
  std::uint64_t address{};
  std::vector<std::uint64_t> dim;
  std::vector<std::uint64_t> stride;  ///< [i] is of dim i + 1
};

struct planning_rules {
  kernels::shape_relation relation{};
  bool source_is_dense{};
  std::uint32_t kept_axes{};
  std::uint32_t source_element{};
  std::uint32_t destination_element{};
  route_options routes;
  kernels::piece_rule rule{};
  std::vector<address_window> windows;
  std::uint64_t count{1};  ///< number of tensors in the batch
};

struct expected_plan {
  std::uint32_t status{};
  std::vector<kernels::planned_tensor> boxes;
  std::vector<std::uint64_t> pieces;  ///< the pieces of each box
};

namespace slow {

inline wide product(const std::vector<std::uint64_t>& dim) {
  wide all = 1;
  for (const std::uint64_t each : dim) all = std::min<wide>(all * each, wide{1} << 63);
  return std::count(dim.begin(), dim.end(), 0u) != 0 ? 0 : all;
}

inline bool has_zero(const plain_side& side) {
  return product(side.dim) == 0;
}

inline std::uint32_t bit(ragged::fault f) {
  return static_cast<std::uint32_t>(f);
}

inline wide reach(const plain_side& side, std::uint32_t element) {
  wide bytes = wide{side.dim[0]} * element;
  for (std::size_t k = 1; k < side.dim.size(); ++k) bytes += wide{side.dim[k] - 1} * side.stride[k - 1];
  return bytes;
}

/// Returns the most bytes that one of `count` tensors may have.
inline wide most_bytes(std::uint64_t count) {
  const wide each = ((wide{1} << 63) - 1) / count;
  return std::min<wide>(wide{1} << 47, each >> 20 << 20);
}

/// Returns the faults of one side. If `is_destination`, elements must not share bytes, in any order
/// of the strides.
inline std::uint32_t faults(const plain_side& side, std::uint32_t element, bool is_destination,
                            const planning_rules& rules) {
  const std::vector<address_window>& windows = rules.windows;
  const std::uint32_t alignment = element & (~element + 1);
  std::uint32_t bits = 0;
  for (const std::uint64_t dim : side.dim) {
    if (dim > std::uint64_t{1} << 40) bits |= bit(ragged::fault::dim);
  }
  if (product(side.dim) * element > most_bytes(rules.count)) bits |= bit(ragged::fault::dim);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> steps;
  for (std::size_t k = 1; k < side.dim.size(); ++k) {
    if (side.dim[k] <= 1) continue;
    const std::uint64_t stride = side.stride[k - 1];
    if (wide{stride} * side.dim[k] > wide{1} << 47 || stride % alignment != 0) bits |= bit(ragged::fault::stride);
    steps.emplace_back(stride, side.dim[k]);
  }
  const bool has_extents = bits == 0;
  if (side.address == 0 || side.address % alignment != 0 || side.address >= std::uint64_t{1} << 57) {
    bits |= bit(ragged::fault::address);
  }
  const wide end = side.address + (has_extents ? reach(side, element) : 0);
  if (bits == 0 && end > wide{1} << 57) bits |= bit(ragged::fault::address);
  const auto holds = [&](const address_window& w) { return w.begin <= side.address && end <= w.end; };
  if (bits == 0 && !windows.empty() && std::none_of(windows.begin(), windows.end(), holds)) {
    bits |= bit(ragged::fault::window);
  }
  if (!is_destination || !has_extents) return bits;
  std::sort(steps.begin(), steps.end());
  wide extent = wide{side.dim[0]} * element;
  for (const auto& [stride, dim] : steps) {
    if (stride < extent) return bits | bit(ragged::fault::overlap);
    extent += wide{dim - 1} * stride;
  }
  return bits;
}

struct axis {
  std::uint64_t dim;
  std::uint64_t source;
  std::uint64_t destination;
};

inline void fold(std::vector<axis>& axes, std::uint32_t kept) {
  for (std::size_t k = axes.size() - 1; k >= std::max(kept, 1u); --k) {
    if (axes[k].dim == 1) axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(k));
  }
  for (std::size_t k = 1; k < axes.size();) {
    const axis& below = axes[k - 1];
    const bool follows =
        wide{below.dim} * below.source == axes[k].source && wide{below.dim} * below.destination == axes[k].destination;
    if (k - 1 < kept || !follows) {
      ++k;
      continue;
    }
    axes[k - 1].dim *= axes[k].dim;
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(k));
  }
}

inline bool is_multiple(const std::vector<std::uint64_t>& values, std::uint64_t unit) {
  return std::all_of(values.begin(), values.end(), [&](std::uint64_t v) { return v % unit == 0; });
}

/// States which sides the route depends on.
struct looked_at {
  bool source;
  bool destination;
};

inline bool fits_map(const kernels::planned_tensor& box, const std::vector<axis>& axes, looked_at sides,
                     const planning_rules& rules) {
  std::vector<std::uint64_t> values;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    if (axes[k].dim > std::uint64_t{1} << 31) return false;
    if (k == 0 || axes[k].dim <= 1) continue;
    for (const std::uint64_t stride : {axes[k].source, axes[k].destination}) {
      if ((stride == axes[k].source ? sides.source : sides.destination) && stride >= std::uint64_t{1} << 40)
        return false;
    }
    if (sides.source) values.push_back(axes[k].source);
    if (sides.destination) values.push_back(axes[k].destination);
  }
  const auto has_type = [](std::uint32_t b) { return b == 1 || b == 2 || b == 4 || b == 8; };
  if (sides.source && !has_type(rules.source_element)) return false;
  if (sides.destination && !has_type(rules.destination_element)) return false;
  if (sides.source) values.push_back(box.source);
  if (sides.destination) values.push_back(box.destination);
  if (sides.destination) values.push_back(axes[0].dim * rules.destination_element);
  return is_multiple(values, 16);
}

inline route choose(const kernels::planned_tensor& box, const std::vector<axis>& whole, const std::vector<axis>& folded,
                    looked_at sides, const planning_rules& rules) {
  const bool forces = rules.routes.policy == route_policy::force;
  const auto may = [&](route way) {
    const bool is_engine = way == route::tensor_map || way == route::bulk;
    if (is_engine && rules.routes.policy == route_policy::disable) return false;
    return rules.routes.allowed.contains(way);
  };
  std::vector<std::uint64_t> places;
  std::vector<std::uint64_t> rows;
  wide elements = 1;
  for (const axis& each : folded) elements *= each.dim;
  for (const bool is_source : {true, false}) {
    if (!(is_source ? sides.source : sides.destination)) continue;
    places.push_back(is_source ? box.source : box.destination);
    rows.push_back(folded[0].dim * (is_source ? rules.source_element : rules.destination_element));
    for (std::size_t k = 1; k < folded.size(); ++k) {
      if (folded[k].dim != 1) places.push_back(is_source ? folded[k].source : folded[k].destination);
    }
  }
  const std::uint64_t row = *std::min_element(rows.begin(), rows.end());
  const wide bytes = elements / std::max<std::uint64_t>(1, folded[0].dim) * row;
  const bool gains = row >= 64 && bytes >= 2048;
  const bool map = box.source != 0 && may(route::tensor_map) && fits_map(box, whole, sides, rules) && (forces || gains);
  const bool bulk = may(route::bulk) && is_multiple(places, 16) && row >= (forces ? 16 : 1024);
  if (row >= 1024 && bulk) return route::bulk;
  if (map) return route::tensor_map;
  if (bulk) return route::bulk;
  const bool fours = is_multiple(places, 4) && is_multiple(rows, 4);
  return may(route::ldgsts) && fours ? route::ldgsts : route::plain;
}

inline std::uint64_t pieces_of(const kernels::planned_tensor& box, const kernels::piece_rule& rule) {
  const auto up = [](std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); };
  std::uint64_t all = 1;
  for (std::uint32_t k = 0; k < max_rank; ++k) {
    if (box.dim[k] == 0) return 0;
    if (box.way == route::tensor_map) all *= up(box.dim[k], rule.box_dim[k]);
    if (box.way != route::tensor_map && k > 0) all *= box.dim[k];
  }
  if (box.way == route::tensor_map) return all;
  if (box.dim[0] > rule.piece_elements) return all * up(box.dim[0], rule.piece_elements);
  return up(all, rule.piece_elements / box.dim[0]);
}

/// Returns whether a transposed matrix is thin: at most half a panel of columns or half a box of
/// rows.
inline bool is_thin(const std::vector<axis>& axes, const kernels::piece_rule& rule) {
  return axes[0].dim <= rule.tile / 2 || axes[1].dim <= 16;
}

/// Folds one box, chooses its route and counts its pieces.
inline void add_box(expected_plan& plan, kernels::planned_tensor box, std::vector<axis> axes,
                    const planning_rules& rules) {
  const bool is_empty = std::any_of(axes.begin(), axes.end(), [](const axis& a) { return a.dim == 0; });
  const bool source_alone =
      rules.relation == kernels::shape_relation::swapped || rules.relation == kernels::shape_relation::reduced;
  const looked_at sides{box.source != 0, box.source == 0 || !source_alone};
  const std::vector<axis> whole = axes;
  if (!is_empty) {
    planning_rules allowed = rules;
    if (rules.relation == kernels::shape_relation::swapped && is_thin(axes, rules.rule)) {
      allowed.routes.allowed = allowed.routes.allowed.without(route::tensor_map);
    }
    fold(axes, rules.kept_axes);
    box.way = choose(box, whole, axes, sides, allowed);
    if (box.way == route::tensor_map) axes = whole;
  }
  for (std::uint32_t k = 0; k < max_rank; ++k) {
    box.dim[k] = k < axes.size() ? axes[k].dim : 1;
    if (k == 0 || k >= axes.size()) continue;
    box.source_stride[k - 1] = box.source == 0 ? 0 : axes[k].source;
    box.destination_stride[k - 1] = axes[k].destination;
  }
  plan.boxes.push_back(box);
  plan.pieces.push_back(is_empty ? 0 : pieces_of(box, rules.rule));
}

}  // namespace slow

/// Plans a batch. `begin` and `capacity` are of a packed side; a capacity of ~0 means that no side
/// is packed.
inline expected_plan plan_slowly(const plain_side& source, const plain_side& destination, const planning_rules& rules,
                                 std::uint64_t index, std::uint64_t begin = 0, std::uint64_t capacity = ~0ull) {
  using kernels::shape_relation;
  const std::size_t rank = source.dim.size();
  const bool pads = rules.relation == shape_relation::clipped;
  bool is_empty = slow::has_zero(source) && slow::has_zero(destination);
  if (pads || rules.relation == shape_relation::reduced) is_empty = slow::has_zero(source);
  if (rules.source_is_dense) is_empty = slow::has_zero(destination);
  if (rules.relation == shape_relation::summed) is_empty = source.dim[0] == 0 && slow::has_zero(destination);
  std::uint32_t to = 0;
  if (!slow::has_zero(destination) && (pads || !is_empty)) {
    to = slow::faults(destination, rules.destination_element, true, rules);
  }
  std::uint32_t bits = to;
  bool is_cut = false;
  if (!is_empty) {
    if (!slow::has_zero(source)) bits |= slow::faults(source, rules.source_element, false, rules);
    for (std::size_t k = 0; k < rank; ++k) {
      std::uint64_t wanted = source.dim[k];
      if (rules.relation == shape_relation::swapped && k < 2) wanted = source.dim[1 - k];
      if (rules.relation == shape_relation::reduced && k == 0) wanted = 1;
      if (rules.relation == shape_relation::summed && k == 1) wanted = 1;
      const bool differs = rules.source_is_dense ? destination.dim[k] > wanted : destination.dim[k] != wanted;
      if (!pads && differs) bits |= slow::bit(ragged::fault::mismatch);
      is_cut = is_cut || (pads && source.dim[k] > destination.dim[k]);
    }
    if (bits == 0 && capacity != ~0ull) {
      is_cut = begin > capacity || slow::product(source.dim) * rules.source_element > capacity - begin;
    }
    if (bits == 0 && is_cut) bits = slow::bit(ragged::fault::truncated);
  }
  expected_plan plan;
  plan.status = bits != 0 || !is_empty ? bits : ragged::tensor_status::empty_bit;
  const bool runs = !is_empty && (bits == 0 || (pads && bits == slow::bit(ragged::fault::truncated)));
  const plain_side& shape = rules.source_is_dense ? destination : source;
  std::vector<slow::axis> axes;
  std::vector<std::uint64_t> copied;
  for (std::size_t k = 0; k < rank; ++k) {
    copied.push_back(!runs ? 0 : pads ? std::min(shape.dim[k], destination.dim[k]) : shape.dim[k]);
    axes.push_back({copied[k], k == 0 ? rules.source_element : source.stride[k - 1],
                    k == 0 ? rules.destination_element : destination.stride[k - 1]});
  }
  kernels::planned_tensor box{};
  box.source = source.address;
  box.destination = destination.address;
  box.way = route::plain;
  box.tensor = static_cast<std::uint32_t>(index);
  slow::add_box(plan, box, axes, rules);
  for (std::size_t k = 0; pads && k < rank; ++k) {
    std::vector<slow::axis> part = axes;
    for (std::size_t below = 0; below < k; ++below) part[below].dim = destination.dim[below];
    part[k].dim = to != 0 ? 0 : destination.dim[k] - copied[k];
    for (slow::axis& each : part) each.source = each.destination;
    kernels::planned_tensor filled = box;
    filled.source = 0;
    filled.destination += copied[k] * axes[k].destination;
    slow::add_box(plan, filled, part, rules);
  }
  return plan;
}

}  // namespace tmap::testing
