// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which tile of which tensor is the g-th of a ragged batch: all tiles of tensor 0, then of tensor 1, ..., each tensor's
// innermost axis first. A persistent block takes a range of g, seeks its first tile and steps through the rest.

#include <tmap/detail/spec_arithmetic.hpp>
#include <tmap/map_patch.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>

namespace tmap::device {

/// The most tiles of one tensor that a walk visits.
inline constexpr std::uint64_t max_walked_tiles = std::uint64_t{1} << 31;

/// Tiles that cover a tensor of these extents. 0 when any is 0, and for extents that are safe in no walk: one above
/// 2^31 (coordinates are signed), or more than `max_walked_tiles` tiles. Any bits are legal extents.
template <std::uint32_t Rank>
__host__ __device__ std::uint64_t count_tiles(const map_patch& extents, const std::uint32_t* box_dim) {
  std::uint64_t tiles = 1;
#pragma unroll
  for (std::uint32_t axis = 0; axis < Rank; ++axis) {
    const std::uint64_t dim = extents.global_dim[axis];
    const bool is_wild = dim > tmap::detail::max_copied_dim || tiles > max_walked_tiles;
    tiles = is_wild ? 0 : tiles * ((dim + box_dim[axis] - 1) / box_dim[axis]);  // at most 2^31 times 2^31
  }
  return tiles > max_walked_tiles ? 0 : tiles;
}

/// One thread's walk. Reads `extents[i].global_dim` and `tile_ends[i]`, the tiles of tensors 0 to i by `count_tiles`
/// (device memory, unchanged meanwhile). Tensors without tiles, by whatever reason, are passed over.
template <std::uint32_t Rank>
class tile_walk {
 public:
  /// `box_dim` may be a kernel parameter; it must outlive the walk.
  __device__ tile_walk(const map_patch* extents, const std::uint64_t* tile_ends, std::uint64_t count,
                       const std::uint32_t* box_dim)
      : extents_(extents), tile_ends_(tile_ends), count_(count), box_dim_(box_dim) {}

  /// Tiles of the whole batch.
  __device__ std::uint64_t tiles() const { return tile_ends_[count_ - 1]; }

  /// Goes to tile `g`, which must exist: a binary search, then mixed radix.
  __device__ void seek(std::uint64_t g) {
    enter(first_end_above(g, 0, count_ - 1));
    std::uint64_t within = g - (tensor_ == 0 ? 0 : tile_ends_[tensor_ - 1]);
    left_ -= within;
#pragma unroll
    for (std::uint32_t axis = 0; axis < Rank; ++axis) {
      const std::uint64_t tiles = (dim_[axis] + box_dim_[axis] - 1) / box_dim_[axis];
      coordinates_[axis] = static_cast<std::int32_t>(within % tiles * box_dim_[axis]);
      within /= tiles;
    }
  }

  /// Goes to the next tile, which must exist.
  __device__ void advance() {
    if (--left_ == 0) {
      enter(next_tensor());
      return;
    }
#pragma unroll
    for (std::uint32_t axis = 0; axis < Rank; ++axis) {
      const std::uint64_t next = static_cast<std::uint32_t>(coordinates_[axis]) + std::uint64_t{box_dim_[axis]};
      coordinates_[axis] = next < dim_[axis] ? static_cast<std::int32_t>(next) : 0;
      if (next < dim_[axis]) return;
    }
  }

  __device__ std::uint64_t tensor() const {
    return tensor_;
  }
  __device__ const std::int32_t (&coordinates() const)[Rank] {
    return coordinates_;
  }

 private:
  __device__ void enter(std::uint64_t tensor) {
    tensor_ = tensor;
    left_ = tile_ends_[tensor] - (tensor == 0 ? 0 : tile_ends_[tensor - 1]);
#pragma unroll
    for (std::uint32_t axis = 0; axis < Rank; ++axis) {
      dim_[axis] = extents_[tensor].global_dim[axis];
      coordinates_[axis] = 0;
    }
  }

  // The first tensor in [low, high] that ends after tile g; `high` does.
  __device__ std::uint64_t first_end_above(std::uint64_t g, std::uint64_t low, std::uint64_t high) const {
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (tile_ends_[middle] > g) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  // The tensor of the next tile, which exists: mostly the one after this; steps that double keep long runs of empty
  // tensors cheap.
  __device__ std::uint64_t next_tensor() const {
    const std::uint64_t g = tile_ends_[tensor_];
    std::uint64_t low = tensor_ + 1;
    std::uint64_t high = low;
    for (std::uint64_t step = 1; tile_ends_[high] <= g; step *= 2) {
      low = high + 1;
      high = count_ - 1 - high < step ? count_ - 1 : high + step;
    }
    return first_end_above(g, low, high);
  }

  const map_patch* extents_;
  const std::uint64_t* tile_ends_;
  std::uint64_t count_;
  const std::uint32_t* box_dim_;
  std::uint64_t tensor_{};
  std::uint64_t left_{};  // tiles of this tensor from the current one on
  std::uint64_t dim_[Rank]{};
  std::int32_t coordinates_[Rank]{};
};

}  // namespace tmap::device
