// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/item_status.hpp>
#include <tmap/make_template.hpp>

#include "support/random_patch.hpp"

// Specs and patches of which most are at a limit of some rule, or one step to either side of it.
// The same seed gives the same ones on every machine.

namespace tmap::testing {

/// Makes tiled and im2col specs for a Hopper GPU, and patches for a template. More than half break
/// a rule, mostly just one.
class corner_source {
 public:
  explicit corner_source(std::uint64_t seed) : specs_{seed} {}

  tensor_spec tiled() { return moved(specs_.legal()); }

  /// Returns a spec of a packed type, which no Hopper GPU supports.
  tensor_spec packed() {
    tensor_spec spec = specs_.legal();
    spec.type = random().pick({element_type::u4_align8, element_type::u4_align16, element_type::u6_align16});
    spec.interleave = interleave::none;
    spec.swizzle = random().pick({swizzle::none, swizzle::bytes_128, swizzle::bytes_128_atom_32});
    spec.oob_fill = oob_fill::zero;
    spec.global_address = 32 * (1 + random().of_random_length(36));
    spec.global_dim[0] = 128 * (1 + random().of_random_length(8));
    for (std::uint64_t& stride : spec.global_stride_bytes) stride = stride / 32 * 32;
    for (std::uint32_t& box : spec.box_dim) box = 1 + random().below32(4);
    spec.box_dim[0] = 128;
    if (random().one_in(4)) spec.global_dim[0] = near(spec.global_dim[0], random().pick({1u, 64u}));
    return moved(spec);
  }

  im2col_spec im2col() {
    im2col_spec spec = specs_.legal_im2col();
    for (std::uint32_t moves = move_count(); moves > 0; --moves) {
      switch (random().below(4)) {
        case 0: move_mode(spec.tensor); break;
        case 1: move_number(spec.tensor); break;
        default: move_im2col(spec);
      }
    }
    return spec;
  }

  /// Returns a template that allows any subset of the fields to change. Needs no driver.
  map_template base() {
    const tensor_spec spec = specs_.legal();
    const patch_fields every = patch_everything(spec.rank);
    const bool some = random().one_in(2);
    return make_zeroed_template(spec, some ? every & static_cast<patch_fields>(random().bits()) : every).value();
  }

  /// Returns a window that contains most ordinary tensors, or a part of them.
  address_window window() {
    const std::uint64_t begin = random().one_in(2) ? 0 : random().of_random_length(40);
    const std::uint64_t end = random().one_in(2) ? detail::address_limit : begin + random().of_random_length(50);
    return {begin, end};
  }

  map_patch patch(const map_template& base, const address_window* windows, std::uint32_t window_count) {
    tensor_spec spec = specs_.with_modes_of(base.spec);
    for (std::uint32_t moves = move_count(); moves > 0; --moves) {
      const bool at_window = window_count > 0 && random().one_in(4);
      at_window ? move_to_window(spec, windows[random().below(window_count)]) : move_number(spec);
    }
    return patch_of(spec);
  }

  random_source& random() { return specs_.random(); }

 private:
  tensor_spec moved(tensor_spec spec) {
    for (std::uint32_t moves = move_count(); moves > 0; --moves) {
      random().one_in(3) ? move_mode(spec) : move_number(spec);
    }
    return spec;
  }

  std::uint32_t move_count() { return random().pick({0u, 1u, 1u, 1u, 1u, 1u, 2u, 2u, 3u, 4u}); }

  /// Returns the limit, or one step below or above it; sums wrap.
  std::uint64_t near(std::uint64_t limit, std::uint64_t step) { return limit + step * random().below(3) - step; }
  std::uint32_t near32(std::uint32_t limit, std::uint32_t step) {
    return static_cast<std::uint32_t>(near(limit, step));
  }

  /// Returns an axis, mostly one that the rank uses.
  std::uint32_t axis_of(const tensor_spec& spec) {
    const bool any = spec.rank == 0 || spec.rank > max_rank || random().one_in(16);
    return random().below32(any ? max_rank : spec.rank);
  }

  void move_number(tensor_spec& spec);
  void move_mode(tensor_spec& spec);
  void move_im2col(im2col_spec& spec);

  void move_address(tensor_spec& spec);
  void move_end(tensor_spec& spec, std::uint64_t limit);
  void move_to_window(tensor_spec& spec, const address_window& window);
  void move_dim(tensor_spec& spec);
  void move_stride(tensor_spec& spec);
  void move_box(tensor_spec& spec);
  void move_inner_box(tensor_spec& spec);
  void move_box_bytes(tensor_spec& spec);
  void move_element_stride(tensor_spec& spec);

  random_spec_source specs_;
};

inline void corner_source::move_number(tensor_spec& spec) {
  switch (random().below(9)) {
    case 0: return move_address(spec);
    case 1: return move_end(spec, random().pick({detail::address_limit, detail::address_limit / 2}));
    case 2:
    case 3: return move_dim(spec);
    case 4: return move_stride(spec);
    case 5: return move_box(spec);
    case 6: return move_inner_box(spec);
    case 7: return move_box_bytes(spec);
    default: return move_element_stride(spec);
  }
}

inline void corner_source::move_address(tensor_spec& spec) {
  const std::uint64_t limit = random().pick<std::uint64_t>(
      {0, spec.global_address, spec.global_address, 1ull << 48, detail::address_limit / 2, detail::address_limit});
  spec.global_address = near(limit, random().pick({1u, 8u, 16u, 32u}));
  if (random().one_in(8)) spec.global_address = random().of_random_length(64);
}

/// Lets the tensor end at `limit`, up to 15 bytes before it, or one step of the address further.
inline void corner_source::move_end(tensor_spec& spec, std::uint64_t limit) {
  const auto reach = detail::saturate(detail::reach_bytes(spec, detail::readable_rank(spec)));
  if (reach > limit) return;
  const std::uint64_t step = random().pick({16u, 32u});
  spec.global_address = near((limit - reach) / step * step, step);
}

inline void corner_source::move_to_window(tensor_spec& spec, const address_window& window) {
  if (random().one_in(2)) return move_end(spec, window.end);
  const std::uint64_t step = random().pick({16u, 32u});
  spec.global_address = near((window.begin + step - 1) / step * step, step);
}

inline void corner_source::move_dim(tensor_spec& spec) {
  const std::uint64_t limit = random().pick({1ull, 1ull << 31, 1ull << 32});
  std::uint64_t& dim = spec.global_dim[axis_of(spec)];
  dim = random().one_in(6) ? random().of_random_length(64) : near(limit, 1);
}

inline void corner_source::move_stride(tensor_spec& spec) {
  const std::uint32_t axis = axis_of(spec);
  std::uint64_t& stride = spec.global_stride_bytes[axis == 0 ? 0 : axis - 1];
  const std::uint64_t limit = random().pick<std::uint64_t>({0, stride, stride, 1ull << 36, 1ull << 40});
  stride = random().one_in(8) ? random().of_random_length(64) : near(limit, random().pick({1u, 8u, 16u, 32u}));
}

inline void corner_source::move_box(tensor_spec& spec) {
  std::uint32_t& box = spec.box_dim[axis_of(spec)];
  const std::uint64_t random_box = random().of_random_length(32);
  box = random().one_in(8) ? static_cast<std::uint32_t>(random_box) : near32(random().pick({1u, 256u}), 1);
}

/// Moves the inner box to the limit of a swizzle, by 16 bytes or by one element.
inline void corner_source::move_inner_box(tensor_spec& spec) {
  const auto bytes = static_cast<std::uint32_t>(element_bytes(spec.type));
  if (bytes == 0) return;
  const std::uint32_t limit = random().pick({16u, 32u, 64u, 128u, 256u}) / bytes;
  spec.box_dim[0] = near32(limit, random().one_in(2) ? 1 : 16 / bytes);
}

/// Moves the box to the most bytes, 228 KiB = 57 * 4096, with two outer dims whose product reaches
/// it. One more row is too many.
inline void corner_source::move_box_bytes(tensor_spec& spec) {
  const std::uint64_t bytes = element_bytes(spec.type);
  if (spec.rank < 3 || spec.rank > max_rank || bytes == 0) return;
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) spec.element_stride[axis] = 1;
  for (std::uint32_t axis = 1; axis < max_rank; ++axis) spec.box_dim[axis] = 1;
  const std::uint32_t row_bytes = spec.swizzle == swizzle::bytes_32 ? 32 : 64;
  spec.box_dim[0] = static_cast<std::uint32_t>(row_bytes / bytes);
  const std::uint32_t step = 1 + random().below32(4);  // 57 steps of it, plus the remainder of a division, fit 256
  spec.element_stride[1] = step;
  spec.box_dim[1] = near32(57 * step + random().below32(step), step);
  spec.box_dim[2] = 4096 / row_bytes;
}

inline void corner_source::move_element_stride(tensor_spec& spec) {
  std::uint32_t& step = spec.element_stride[axis_of(spec)];
  step = random().one_in(8) ? random().below32(1 << 16) : near32(random().pick({1u, 8u}), 1);
}

inline void corner_source::move_mode(tensor_spec& spec) {
  const std::uint32_t value = random().below32(9);
  switch (random().below(6)) {
    case 0: spec.type = static_cast<element_type>(near32(random().pick({12u, 15u}), 1)); break;
    case 1: spec.rank = random().below32(8); break;
    case 2: spec.interleave = static_cast<interleave>(near32(random().pick({1u, 2u}), 1)); break;
    case 3: spec.swizzle = static_cast<swizzle>(value); break;
    case 4: spec.l2_promotion = static_cast<l2_promotion>(near32(3, 1)); break;
    default: spec.oob_fill = static_cast<oob_fill>(near32(1, 1)); break;
  }
}

inline void corner_source::move_im2col(im2col_spec& spec) {
  const std::uint32_t axis = random().below32(spec.tensor.rank == 5 ? 3 : spec.tensor.rank == 4 ? 2 : 1);
  const std::int64_t limit = detail::corner_limit(detail::spatial_dims(spec.tensor));
  const auto corner =
      static_cast<std::int32_t>(near(static_cast<std::uint64_t>(random().one_in(2) ? limit : -limit), 1));
  const std::uint64_t dim = spec.tensor.global_dim[detail::spatial_dimension(spec.tensor, axis)];
  switch (random().below(5)) {
    case 0: spec.lower_corner[axis] = corner; break;
    case 1: spec.upper_corner[axis] = corner; break;
    case 2:  // an extent of -1, 0 or 1
      spec.upper_corner[axis] =
          static_cast<std::int32_t>(near(static_cast<std::uint64_t>(spec.lower_corner[axis]) - dim, 1));
      break;
    case 3: spec.channels_per_pixel = near32(random().pick({1u, 16u, 32u, 64u, 128u, 256u}), 1); break;
    default: spec.pixels_per_column = near32(random().pick({1u, 1024u}), 1); break;
  }
}

}  // namespace tmap::testing
