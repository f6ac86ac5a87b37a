// SPDX-License-Identifier: Apache-2.0
#include <tmap/decode.hpp>
#include <tmap/validate.hpp>

#include "lib/codec/axis_fields.hpp"
#include "lib/codec/codes.hpp"
#include "lib/codec/layout.hpp"
#include "lib/spec/rule_error.hpp"

namespace tmap {
namespace {

template <class Spec>
result<void> require_legal(const Spec& spec, const device_limits& limits) {
  if (broken_rules(spec, limits).empty()) return {};
  return failure{detail::error_of(status::rule_broken, validate(spec, limits))};
}

void write_modes(tensor_map& map, const tensor_spec& spec) {
  codec::write(map, codec::row("rank"), spec.rank);
  codec::write(map, codec::row("element_type"), codec::element_codes[static_cast<std::uint32_t>(spec.type)]);
  codec::write(map, codec::row("interleave"), static_cast<std::uint64_t>(spec.interleave));
  codec::write(map, codec::row("swizzle"), codec::swizzle_codes[static_cast<std::uint32_t>(spec.swizzle)]);
  codec::write(map, codec::row("oob_fill"), static_cast<std::uint64_t>(spec.oob_fill));
  codec::write(map, codec::row("l2_promotion"), static_cast<std::uint64_t>(spec.l2_promotion));
}

/// Documented only: Blackwell's copy engine may read ahead in tensors that are marked as large.
void write_large_mark(tensor_map& map, const tensor_spec& spec, const device_limits& limits) {
  const bool is_marked = limits.compute_capability >= blackwell_limits().compute_capability &&
                         detail::reach_bytes(spec, spec.rank) >= detail::large_tensor_bytes;
  codec::write(map, codec::row("large_tensor"), is_marked ? 1 : 0);
}

void write_extents(tensor_map& map, const tensor_spec& spec) {
  codec::write(map, codec::row("global_address"), spec.global_address);
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
    codec::write(map, *codec::global_dim[axis], spec.global_dim[axis]);
    codec::write(map, *codec::element_stride[axis], spec.element_stride[axis]);
    if (axis + 1 < spec.rank) {
      codec::write(map, *codec::global_stride_bytes[axis], spec.global_stride_bytes[axis]);
    }
  }
}

/// The driver's note rounds down, but the copy engine rounds up (docs/measurements). Dimension 0
/// may have an element stride of 0 if that has no effect.
std::uint64_t noted_box_bytes(const tensor_spec& spec) {
  std::uint64_t elements = 1;
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
    const std::uint32_t step = spec.element_stride[axis];
    elements *= spec.box_dim[axis] / (step == 0 ? 1 : step);
  }
  return element_bytes(spec.type, elements);
}

std::uint64_t noted_shared_alignment(swizzle mode) {
  return mode == swizzle::none ? 16 : shared_alignment(mode);
}

void write_notes(tensor_map& map, std::uint64_t box_bytes, swizzle mode) {
  codec::write(map, codec::row("noted_box_bytes"), box_bytes);
  codec::write(map, codec::row("noted_shared_alignment"), noted_shared_alignment(mode));
}

void write_im2col(tensor_map& map, const im2col_spec& spec) {
  const std::uint32_t spatial = spec.tensor.rank - 2;
  for (std::uint32_t axis = 0; axis < spatial; ++axis) {
    codec::write(map, *codec::lower_corner[spatial - 1][axis], static_cast<std::uint64_t>(spec.lower_corner[axis]));
    codec::write(map, *codec::upper_corner[spatial - 1][axis], static_cast<std::uint64_t>(spec.upper_corner[axis]));
  }
  codec::write(map, codec::row("channels_per_pixel"), spec.channels_per_pixel);
  codec::write(map, codec::row("pixels_per_column"), spec.pixels_per_column);
}

}  // namespace

result<tensor_map> encode_bits(const tensor_spec& spec, const device_limits& limits) {
  if (const auto legal = require_legal(spec, limits); !legal) return failure{legal.error()};
  tensor_map map{};
  write_modes(map, spec);
  write_large_mark(map, spec, limits);
  write_extents(map, spec);
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) codec::write(map, *codec::box_dim[axis], spec.box_dim[axis]);
  write_notes(map, noted_box_bytes(spec), spec.swizzle);
  return map;
}

result<tensor_map> encode_bits(const im2col_spec& spec, const device_limits& limits) {
  if (const auto legal = require_legal(spec, limits); !legal) return failure{legal.error()};
  tensor_map map{};
  codec::write(map, codec::row("kind"), static_cast<std::uint64_t>(map_kind::im2col));
  write_modes(map, spec.tensor);
  write_large_mark(map, spec.tensor, limits);
  write_extents(map, spec.tensor);
  write_im2col(map, spec);
  const std::uint64_t elements = std::uint64_t{spec.channels_per_pixel} * spec.pixels_per_column;
  write_notes(map, element_bytes(spec.tensor.type, elements), spec.tensor.swizzle);
  return map;
}

}  // namespace tmap
