// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tensors of a batch, each in a slot of memory with an address window. Some of them are spoilt.

#include <tmap/map_patch.hpp>

#include <algorithm>
#include <cstdint>

#include "support/ragged_reference.hpp"
#include "support/random_spec.hpp"

namespace tmap::testing::spoilt {

inline constexpr std::uint64_t slot_count = 48;
inline constexpr std::uint64_t slot_bytes = 16384;

/// Turns the dims of a source into those of its destination.
using reshape = void (*)(extents& shape);
inline void same(extents&) {}
inline void swapped(extents& shape) {
  std::swap(shape.dim[0], shape.dim[1]);
}
inline void reduced(extents& shape) {
  shape.dim[0] = 1;
}

inline void summed(extents& shape) {
  shape.dim[1] = 1;
}

/// Returns a tensor of this shape in the slot that begins at `slot`, sometimes with gaps.
inline map_patch lay(random_source& random, std::uint64_t slot, const extents& shape, std::uint32_t item) {
  const std::uint64_t unit = random.pick<std::uint64_t>({element_alignment(item), 16, 16, 128});
  const std::uint64_t step = std::max<std::uint64_t>(unit, element_alignment(item));
  map_patch patch{};
  patch.global_address = slot + step * random.below(3);
  std::uint64_t extent = shape.dim[0] * item;
  patch.global_dim[0] = shape.dim[0];
  for (std::uint32_t axis = 1; axis < max_rank; ++axis) {
    patch.global_dim[axis] = shape.dim[axis];
    patch.global_stride_bytes[axis - 1] = random.one_in(2) ? extent : (extent + step - 1) / step * step;
    extent = patch.global_stride_bytes[axis - 1] * shape.dim[axis];
  }
  return patch;
}

inline void spoil(random_source& random, map_patch& patch) {
  const std::uint32_t axis = random.below32(max_rank);
  switch (random.below32(6)) {
    case 0: patch.global_dim[axis] = random.of_random_length(64); break;
    case 1: patch.global_dim[axis] = random.below(3); break;
    case 2: patch.global_stride_bytes[axis % 4] = random.of_random_length(64); break;
    case 3: patch.global_stride_bytes[axis % 4] /= 2; break;
    case 4: patch.global_address = random.pick<std::uint64_t>({0, ~std::uint64_t{0}, std::uint64_t{1} << 57}); break;
    default: patch.global_address += random.below(10000); break;
  }
}

/// The places of a batch's sides in the caller's memory.
struct slots {
  std::uint64_t source;
  std::uint64_t destination;
  map_patch* source_patches;
  map_patch* destination_patches;
};

inline void set_windows(const slots& where, address_window* windows) {
  for (std::uint64_t i = 0; i < slot_count; ++i) {
    const std::uint64_t from = where.source + i * slot_bytes;
    const std::uint64_t to = where.destination + i * slot_bytes;
    windows[2 * i] = {from, from + slot_bytes};
    windows[2 * i + 1] = {to, to + slot_bytes};
  }
}

struct drawn_from {
  std::uint32_t rank;
  std::uint32_t source_item;
  std::uint32_t destination_item;
  reshape to_destination{same};
};

inline void draw(random_source& random, const slots& where, const drawn_from& from) {
  for (std::uint64_t i = 0; i < slot_count; ++i) {
    extents shape = random_shape(random, {from.rank, 1, 300, false, 0});
    where.source_patches[i] = lay(random, where.source + i * slot_bytes, shape, from.source_item);
    from.to_destination(shape);
    where.destination_patches[i] = lay(random, where.destination + i * slot_bytes, shape, from.destination_item);
    if (random.one_in(4)) spoil(random, where.source_patches[i]);
    if (random.one_in(4)) spoil(random, where.destination_patches[i]);
  }
}

/// Returns the number of blocks of 128 elements along a dim of any size.
inline std::uint64_t blocks_of(std::uint64_t dim) {
  return dim / 128 + (dim % 128 != 0);
}

/// Draws scales of blocks of 1 x 128 for the sources in `patches`, which may be spoilt. Some are
/// spoilt themselves.
inline void draw_scales(random_source& random, const map_patch* patches, std::uint32_t rank, std::uint64_t memory,
                        map_patch* scales) {
  for (std::uint64_t i = 0; i < slot_count; ++i) {
    extents shape;
    for (std::uint32_t axis = 0; axis < rank; ++axis) {
      const std::uint64_t dim = patches[i].global_dim[axis];
      shape.dim[axis] = std::min<std::uint64_t>(axis == 0 ? blocks_of(dim) : dim, 300);
    }
    if (shape.elements() > 600) shape = {};
    scales[i] = lay(random, memory + i * slot_bytes, shape, sizeof(float));
    if (random.one_in(6)) spoil(random, scales[i]);
  }
}

}  // namespace tmap::testing::spoilt
