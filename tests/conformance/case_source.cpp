// SPDX-License-Identifier: Apache-2.0
#include "conformance/case_source.hpp"

#include <tmap/validate.hpp>

#include <algorithm>
#include <limits>

namespace tmap::conformance {
namespace {

constexpr std::uint32_t longest_tile[max_rank + 1] = {0, 0, 16, 6, 4, 3};

std::uint32_t elements_per_chunk(element_type type) {
  return static_cast<std::uint32_t>(16 / element_bytes(type));
}

std::uint64_t unit_bytes(const tensor_spec& spec) {
  if (spec.interleave == interleave::none) return element_bytes(spec.type);
  return spec.interleave == interleave::bytes_16 ? 16 : 32;
}

std::uint32_t step_of(const tensor_spec& spec, std::uint32_t axis) {
  return axis == 0 && spec.interleave == interleave::none ? 1 : spec.element_stride[axis];
}

/// Returns the range of coordinates that a box touches.
std::int64_t reach(const tensor_spec& spec, std::uint32_t axis) {
  return (std::int64_t{tile_dim(spec, axis)} - 1) * step_of(spec, axis) + 1;
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::uint64_t extent_bytes(const tensor_spec& spec) {
  std::uint64_t extent = round_up(spec.global_dim[0] * unit_bytes(spec), 16);
  for (std::uint32_t axis = 1; axis < spec.rank; ++axis) {
    extent += (spec.global_dim[axis] - 1) * spec.global_stride_bytes[axis - 1];
  }
  return extent;
}

}  // namespace

void case_source::choose_box(const case_class& wanted, tensor_spec& spec) {
  const std::uint32_t chunk = elements_per_chunk(spec.type);
  const std::uint32_t span = swizzle_span_bytes(spec.swizzle);
  const bool plain_rows = spec.interleave == interleave::none;
  std::uint32_t chunks = !plain_rows ? 4 : span == 0 ? (random_.one_in(8) ? 64 : 12) : span / 16;
  chunks = std::min(chunks, 256 / chunk);
  spec.box_dim[0] = chunk * (1 + random_.below32(chunks));
  // Half of the swizzled boxes fill their span, as they do in practice.
  if (plain_rows && span != 0 && random_.one_in(2)) spec.box_dim[0] = span / 16 * chunk;
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
    spec.element_stride[axis] = wanted.has_steps ? 1 + random_.below32(8) : 1;
    const bool is_slice = !plain_rows && axis + 2 == spec.rank;
    const std::uint32_t longest = is_slice ? 16 : longest_tile[spec.rank] * spec.element_stride[axis];
    if (axis != 0) spec.box_dim[axis] = 1 + random_.below32(longest);
  }
}

void case_source::choose_dims(const case_class& wanted, tensor_spec& spec) {
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
    const auto covered = static_cast<std::uint32_t>(reach(spec, axis));
    spec.global_dim[axis] = 1 + random_.below32(covered + (axis == 0 ? elements_per_chunk(spec.type) : 3));
    if (wanted.where == place::inside) spec.global_dim[axis] = covered + random_.below32(4);
  }
}

void case_source::choose_strides(const case_class& wanted, tensor_spec& spec) {
  const std::uint64_t unit = spec.interleave == interleave::bytes_32 ? 32 : 16;
  std::uint64_t reached = spec.global_dim[0] * unit_bytes(spec);
  for (std::uint32_t axis = 1; axis < spec.rank; ++axis) {
    spec.global_stride_bytes[axis - 1] = round_up(reached, unit) + unit * random_.below(3);
    reached = spec.global_stride_bytes[axis - 1] * spec.global_dim[axis];
  }
  // Rows share bytes here. Stores to them would race, so these cases only load.
  if (wanted.kind == copy_kind::load && spec.rank > 1 && random_.one_in(12)) {
    spec.global_stride_bytes[random_.below(spec.rank - 1)] = random_.one_in(2) ? 0 : unit;
  }
}

std::int64_t case_source::corner_at(place where, std::int64_t dim, std::int64_t covered, bool may_be_negative) {
  const auto below = [&](std::int64_t count) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(std::max<std::int64_t>(count, 1))));
  };
  const bool negative = may_be_negative && random_.one_in(2);
  switch (where) {
    case place::inside: return below(dim - covered + 1);
    case place::low: return -1 - below(covered);
    case place::high: return std::max<std::int64_t>(0, dim - below(covered));
    case place::outside: return negative ? -covered - below(100) : dim + below(100);
    case place::far:
      return negative ? std::numeric_limits<std::int32_t>::min() + below(100)
                      : std::numeric_limits<std::int32_t>::max() - below(100);
    case place::anywhere: return may_be_negative ? below(dim + 2 * covered) - covered : below(dim + covered);
  }
  return 0;
}

void case_source::choose_corner(const case_class& wanted, tile_case& tile) {
  const tensor_spec& spec = tile.spec;
  const bool is_load = wanted.kind == copy_kind::load;
  const std::uint32_t chosen = random_.below32(spec.rank);
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
    const bool everywhere = wanted.where == place::inside || wanted.where == place::anywhere;
    const place where = everywhere || axis == chosen ? wanted.where : place::high;
    const auto dim = static_cast<std::int64_t>(spec.global_dim[axis]);
    std::int64_t corner = corner_at(where, dim, reach(spec, axis), is_load);
    if (where == place::high && axis != chosen && random_.one_in(2)) corner = 0;
    const std::int64_t unit = elements_per_chunk(spec.type);
    if (axis == 0 && spec.interleave == interleave::none) corner -= ((corner % unit) + unit) % unit;
    tile.coordinates[axis] = static_cast<std::int32_t>(corner);
  }
}

bool case_source::try_draw(const case_class& wanted, tile_case& tile) {
  tile = {};
  tensor_spec& spec = tile.spec;
  spec.type = wanted.type;
  spec.rank = wanted.rank;
  spec.swizzle = wanted.swizzle;
  spec.interleave = wanted.interleave;
  spec.oob_fill = wanted.fill;
  spec.l2_promotion = static_cast<l2_promotion>(random_.below32(4));
  spec.global_address = tensor_offset;
  choose_box(wanted, spec);
  choose_dims(wanted, spec);
  choose_strides(wanted, spec);
  choose_corner(wanted, tile);
  tile.kind = wanted.kind;
  tile.operation = wanted.operation;
  tile.where = wanted.where;
  tile.shared_offset = 128 * random_.below32(9);
  return extent_bytes(spec) <= arena_bytes - 2 * tensor_offset && tile_footprint_bytes(spec) <= largest_footprint &&
         broken_rules(spec).empty();
}

tile_case case_source::draw(const case_class& wanted) {
  tile_case tile;
  while (!try_draw(wanted, tile)) {
  }
  return tile;
}

std::vector<case_class> all_layouts() {
  std::vector<case_class> layouts;
  for (std::uint32_t type = 0; type < hopper_element_type_count; ++type) {
    for (std::uint32_t rank = 1; rank <= max_rank; ++rank) {
      for (const auto layout : {interleave::none, interleave::bytes_16, interleave::bytes_32}) {
        for (const auto mode : {swizzle::none, swizzle::bytes_32, swizzle::bytes_64, swizzle::bytes_128}) {
          if (layout != interleave::none && rank < 3) continue;
          if (layout == interleave::bytes_32 && mode != swizzle::bytes_32) continue;
          layouts.push_back(
              {.type = static_cast<element_type>(type), .rank = rank, .swizzle = mode, .interleave = layout});
        }
      }
    }
  }
  return layouts;
}

}  // namespace tmap::conformance
