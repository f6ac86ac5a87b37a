// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_spec.hpp>
#include <tmap/validate.hpp>

#include <vector>

// The specs of the golden file: every combination of modes, and every number at its limits. Only
// legal ones are kept.

namespace tmap::testing {

class structured_specs {
 public:
  structured_specs() {
    add_modes();
    add_interleaves();
    add_numbers();
    add_im2col();
  }

  const std::vector<tensor_spec>& tiled() const { return tiled_; }
  const std::vector<im2col_spec>& im2col() const { return im2col_; }

 private:
  static tensor_spec base(element_type type, std::uint32_t rank, swizzle mode) {
    tensor_spec spec;
    spec.global_address = 0x7f1200000000;
    spec.type = type;
    spec.rank = rank;
    const auto bytes = static_cast<std::uint32_t>(element_bytes(type));
    const std::uint32_t span = mode == swizzle::none ? 64 : swizzle_span_bytes(mode);
    for (std::uint32_t axis = 0; axis < rank; ++axis) {
      spec.global_dim[axis] = 100 + 7 * axis;
      spec.box_dim[axis] = axis == 0 ? span / bytes : 1 + axis;
      if (axis + 1 < rank) spec.global_stride_bytes[axis] = 1024ull << (8 * axis);
    }
    spec.swizzle = mode;
    return spec;
  }

  void keep(const tensor_spec& spec) {
    if (broken_rules(spec).empty()) tiled_.push_back(spec);
  }
  void keep(const im2col_spec& spec) {
    if (broken_rules(spec).empty()) im2col_.push_back(spec);
  }

  template <class Change>
  void keep_changed(tensor_spec spec, Change change) {
    change(spec);
    keep(spec);
  }

  /// Adds element type x rank x swizzle; fill and L2 promotion take turns.
  void add_modes() {
    for (std::uint32_t type = 0; type < hopper_element_type_count; ++type) {
      for (std::uint32_t rank = 1; rank <= max_rank; ++rank) {
        for (std::uint32_t mode = 0; mode < 4; ++mode) {
          tensor_spec spec = base(static_cast<element_type>(type), rank, static_cast<swizzle>(mode));
          spec.l2_promotion = static_cast<l2_promotion>((type + rank + mode) % 4);
          keep(spec);
          spec.oob_fill = oob_fill::nan;
          if ((rank + mode) % 2 == 0) keep(spec);
        }
      }
    }
  }

  void add_interleaves() {
    for (std::uint32_t type = 0; type < hopper_element_type_count; ++type) {
      for (std::uint32_t rank = 3; rank <= max_rank; ++rank) {
        tensor_spec spec = base(static_cast<element_type>(type), rank, static_cast<swizzle>((type + rank) % 4));
        spec.interleave = interleave::bytes_16;
        keep(spec);
        spec.element_stride[0] = 2;
        keep(spec);
        spec.interleave = interleave::bytes_32;
        spec.swizzle = swizzle::bytes_32;
        keep(spec);
      }
    }
  }

  void add_numbers() {
    for (std::uint32_t rank = 1; rank <= max_rank; ++rank) {
      const tensor_spec spec = base(element_type::u8, rank, swizzle::none);
      for (const std::uint64_t address : {std::uint64_t{16}, (std::uint64_t{1} << 47) - 16, std::uint64_t{1} << 48}) {
        keep_changed(spec, [&](tensor_spec& s) { s.global_address = address; });
      }
      for (std::uint32_t axis = 0; axis < rank; ++axis) add_numbers(spec, axis);
    }
  }

  void add_numbers(const tensor_spec& spec, std::uint32_t axis) {
    for (const std::uint64_t dim : {std::uint64_t{1}, std::uint64_t{0x01020304}, std::uint64_t{1} << 31}) {
      keep_changed(spec, [&](tensor_spec& s) { s.global_dim[axis] = dim; });
    }
    for (const std::uint32_t extent : {1u, 16u, 255u, 256u}) {
      keep_changed(spec, [&](tensor_spec& s) { s.box_dim[axis] = extent; });
    }
    for (const std::uint32_t step : {2u, 3u, 5u, 8u}) {
      keep_changed(spec, [&](tensor_spec& s) { s.element_stride[axis] = step; });
    }
    if (axis + 1 >= spec.rank) return;
    for (const std::uint64_t stride : {0ull, 16ull, 0xabcdef0ull, (1ull << 36) - 16, 1ull << 36, (1ull << 40) - 16}) {
      keep_changed(spec, [&](tensor_spec& s) { s.global_stride_bytes[axis] = stride; });
    }
  }

  void add_im2col() {
    for (std::uint32_t rank = 3; rank <= max_rank; ++rank) {
      for (std::uint32_t type = 0; type < hopper_element_type_count; ++type) {
        const auto mode = static_cast<swizzle>((type + rank) % 4);
        im2col_spec spec{.tensor = base(static_cast<element_type>(type), rank, mode), .pixels_per_column = 32};
        spec.channels_per_pixel = spec.tensor.box_dim[0];
        for (std::uint32_t& extent : spec.tensor.box_dim) extent = 0;
        keep(spec);
        if (spec.tensor.type == element_type::f16) add_im2col_numbers(spec);
        if (mode == swizzle::bytes_32) add_im2col_interleaves(spec);
      }
    }
  }

  void add_im2col_interleaves(im2col_spec spec) {
    spec.tensor.interleave = interleave::bytes_16;
    keep(spec);
    spec.tensor.interleave = interleave::bytes_32;
    keep(spec);
  }

  void add_im2col_numbers(const im2col_spec& spec) {
    const std::int32_t lowest = spec.tensor.rank == 3 ? -32768 : spec.tensor.rank == 4 ? -128 : -16;
    im2col_spec changed = spec;
    for (auto& dim : changed.tensor.global_dim) dim = 1 << 17;
    for (std::uint32_t axis = 0; axis + 2 < spec.tensor.rank; ++axis) {
      for (const std::int32_t corner : {lowest, -2, 3, -lowest - 1}) {
        im2col_spec lower = changed;
        lower.lower_corner[axis] = corner;
        keep(lower);
        im2col_spec upper = changed;
        upper.upper_corner[axis] = corner;
        keep(upper);
      }
    }
    for (const std::uint32_t pixels : {1u, 255u, 256u, 1024u}) {
      changed.pixels_per_column = pixels;
      keep(changed);
    }
    for (std::uint32_t axis = 0; axis < spec.tensor.rank; ++axis) {
      im2col_spec strided = spec;
      strided.tensor.element_stride[axis] = 3;
      keep(strided);
    }
  }

  std::vector<tensor_spec> tiled_;
  std::vector<im2col_spec> im2col_;
};

}  // namespace tmap::testing
