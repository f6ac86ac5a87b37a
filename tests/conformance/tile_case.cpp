// SPDX-License-Identifier: Apache-2.0
#include "conformance/tile_case.hpp"

#include "support/spec_text.hpp"

#include <algorithm>
#include <sstream>

namespace tmap::conformance {

const char* name(reduction operation) {
  constexpr const char* names[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  return names[static_cast<std::uint32_t>(operation)];
}

const char* name(place where) {
  constexpr const char* names[] = {"inside", "low", "high", "outside", "far", "anywhere"};
  return names[static_cast<std::uint32_t>(where)];
}

std::string to_text(const tile_case& tile) {
  std::ostringstream text;
  text << (tile.kind == copy_kind::load    ? "load"
           : tile.kind == copy_kind::store ? "store"
                                           : name(tile.operation))
       << ' ' << name(tile.where) << " of " << tmap::name(tile.spec.type) << ", swizzle "
       << tmap::name(tile.spec.swizzle) << ", interleave " << tmap::name(tile.spec.interleave) << ", at";
  for (std::uint32_t axis = 0; axis < tile.spec.rank; ++axis) text << ' ' << tile.coordinates[axis];
  text << ", shared offset " << tile.shared_offset << "; " << testing::spec_columns << ": "
       << testing::to_text(tile.spec);
  return text.str();
}

namespace {

bool leaves_tensor(const tile_case& tile) {
  const tensor_spec& spec = tile.spec;
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
    const bool steps = axis != 0 || spec.interleave != interleave::none;
    const std::int64_t step = steps ? spec.element_stride[axis] : 1;
    const std::int64_t last = tile.coordinates[axis] + (std::int64_t{tile_dim(spec, axis)} - 1) * step;
    if (tile.coordinates[axis] < 0 || last >= static_cast<std::int64_t>(spec.global_dim[axis])) return true;
  }
  return false;
}

bool has_steps(const tensor_spec& spec) {
  const std::uint32_t first = spec.interleave == interleave::none ? 1 : 0;
  return std::any_of(spec.element_stride + first, spec.element_stride + spec.rank, [](auto step) { return step > 1; });
}

bool overlaps(const tensor_spec& spec) {
  return std::any_of(spec.global_stride_bytes, spec.global_stride_bytes + spec.rank - 1,
                     [&](auto stride) { return stride < spec.global_dim[0] * element_bytes(spec.type); });
}

}  // namespace

std::vector<std::string> features_of(const tile_case& tile) {
  const tensor_spec& spec = tile.spec;
  const bool is_load = tile.kind == copy_kind::load;
  const bool plain_rows = spec.interleave == interleave::none;
  std::vector<std::string> features;
  const auto add = [&](bool has, std::string feature) {
    if (has) features.push_back(std::move(feature));
  };
  add(is_load, "load");
  add(tile.kind == copy_kind::store, "store");
  add(tile.kind == copy_kind::reduce, std::string{"reduce "} + name(tile.operation));
  add(true, "rank " + std::to_string(spec.rank));
  add(true, std::string{"type "} + tmap::name(spec.type));
  add(true, std::string{"swizzle "} + tmap::name(spec.swizzle));
  add(true, std::string{"interleave "} + tmap::name(spec.interleave));
  add(has_steps(spec), "element strides");
  add(is_load && leaves_tensor(tile), spec.oob_fill == oob_fill::nan ? "fill NaN" : "fill zero");
  add(!is_load && leaves_tensor(tile), "clipped stores");
  add(!is_load && plain_rows && spec.global_dim[0] * element_bytes(spec.type) % 16 != 0, "store past a ragged row");
  add(tile.where == place::far, "coordinates near 2^31");
  add(tile.coordinates[0] < 0 || *std::min_element(tile.coordinates, tile.coordinates + spec.rank) < 0,
      "negative coordinates");
  add(spec.swizzle != swizzle::none && tile.shared_offset % 1024 != 0, "tile in the middle of a swizzle pattern");
  add(plain_rows && tile_row_pitch_bytes(spec) != tile_row_bytes(spec), "box narrower than the swizzle span");
  add(spec.rank > 1 && overlaps(spec), "overlapping rows");
  add(is_load && (spec.type == element_type::tf32 || spec.type == element_type::tf32_ftz), "TF32 rounding");
  return features;
}

}  // namespace tmap::conformance
