// SPDX-License-Identifier: Apache-2.0
#include <tmap/decode.hpp>
#include <tmap/validate.hpp>

#include "lib/codec/axis_fields.hpp"
#include "lib/codec/codes.hpp"
#include "lib/codec/layout.hpp"

namespace tmap {
namespace {

constexpr device_limits newest_limits{blackwell_limits().compute_capability, ~0u};

failure refused() {
  return failure{error{.code = status::not_a_tensor_map}};
}

failure refused(const violation& v, rule_set broken) {
  return failure{error{.code = status::not_a_tensor_map,
                       .rules = broken,
                       .first = v.id,
                       .axis = v.axis,
                       .found = v.found,
                       .allowed = v.allowed}};
}

std::uint32_t read32(const tensor_map& map, const codec::field& f) {
  return static_cast<std::uint32_t>(codec::read(map, f));
}

bool has_unknown_bits(const tensor_map& map, std::uint32_t layout) {
  for (std::uint32_t word = 0; word < 16; ++word) {
    if ((map.words[word] & ~codec::known_bits(word, layout)) != 0) return true;
  }
  return false;
}

/// Reads the modes. False if one holds a number without a meaning.
bool read_modes(const tensor_map& map, tensor_spec& spec) {
  const auto type = codec::element_type_of(codec::read(map, codec::row("element_type")));
  const auto mode = codec::swizzle_of(codec::read(map, codec::row("swizzle")));
  const auto layout = codec::interleave_of(codec::read(map, codec::row("interleave")));
  if (!type || !mode || !layout) return false;
  spec.type = *type;
  spec.swizzle = *mode;
  spec.interleave = *layout;
  spec.l2_promotion = static_cast<l2_promotion>(codec::read(map, codec::row("l2_promotion")));
  spec.oob_fill = static_cast<oob_fill>(codec::read(map, codec::row("oob_fill")));
  return true;
}

/// Reads the used axes. The others keep the values of a default spec, even if a device encoder left
/// bits there.
void read_extents(const tensor_map& map, tensor_spec& spec, bool has_box) {
  spec.global_address = codec::read(map, codec::row("global_address"));
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
    spec.global_dim[axis] = codec::read(map, *codec::global_dim[axis]);
    if (has_box) spec.box_dim[axis] = read32(map, *codec::box_dim[axis]);
    spec.element_stride[axis] = read32(map, *codec::element_stride[axis]);
    if (axis + 1 < spec.rank) {
      spec.global_stride_bytes[axis] = codec::read(map, *codec::global_stride_bytes[axis]);
    }
  }
}

void read_im2col(const tensor_map& map, decoded_map& decoded) {
  const std::uint32_t spatial = decoded.spec.rank - 2;
  for (std::uint32_t axis = 0; axis < spatial; ++axis) {
    decoded.lower_corner[axis] = static_cast<std::int32_t>(codec::read(map, *codec::lower_corner[spatial - 1][axis]));
    decoded.upper_corner[axis] = static_cast<std::int32_t>(codec::read(map, *codec::upper_corner[spatial - 1][axis]));
  }
  decoded.channels_per_pixel = read32(map, codec::row("channels_per_pixel"));
  decoded.pixels_per_column = read32(map, codec::row("pixels_per_column"));
}

violations broken(const decoded_map& decoded) {
  if (decoded.kind == map_kind::tiled) return validate(decoded.spec, newest_limits);
  im2col_spec spec{.tensor = decoded.spec,
                   .channels_per_pixel = decoded.channels_per_pixel,
                   .pixels_per_column = decoded.pixels_per_column};
  for (std::uint32_t axis = 0; axis < 3; ++axis) {
    spec.lower_corner[axis] = decoded.lower_corner[axis];
    spec.upper_corner[axis] = decoded.upper_corner[axis];
  }
  return validate(spec, newest_limits);
}

}  // namespace

result<decoded_map> decode(const tensor_map& map) {
  const std::uint32_t layout = codec::layout_of(map);
  decoded_map decoded;
  decoded.spec.rank = read32(map, codec::row("rank"));
  const bool is_known = layout != 0 && decoded.spec.rank <= max_rank && codec::read(map, codec::row("version")) == 0;
  if (!is_known || has_unknown_bits(map, layout) || !read_modes(map, decoded.spec)) return refused();
  decoded.kind = layout == codec::tiled ? map_kind::tiled : map_kind::im2col;
  read_extents(map, decoded.spec, decoded.kind == map_kind::tiled);
  if (decoded.kind == map_kind::im2col) read_im2col(map, decoded);
  decoded.noted_box_bytes = codec::read(map, codec::row("noted_box_bytes"));
  decoded.noted_shared_alignment = codec::read(map, codec::row("noted_shared_alignment"));
  decoded.large_tensor = codec::read(map, codec::row("large_tensor")) != 0;
  const violations found = broken(decoded);
  for (const violation& v : found) {
    if (info(v.id).driver_refuses) return refused(v, found.rules());
  }
  return decoded;
}

}  // namespace tmap
