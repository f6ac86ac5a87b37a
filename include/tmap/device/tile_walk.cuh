// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which tile of which tensor is the g-th of a ragged batch: all tiles of tensor 0, then of tensor
// 1, ..., each tensor's innermost axis first. A worker of a persistent grid takes ranges of g
// (tile_shares.cuh, work_queue.cuh), seeks the first tile of each and steps through the rest.

#include <tmap/detail/spec_arithmetic.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/device/tensor_search.cuh>
#include <tmap/map_patch.hpp>
#include <tmap/tensor_spec.hpp>

namespace tmap::device {

/// The most tiles of one tensor that a walk visits.
inline constexpr std::uint64_t max_walked_tiles = std::uint64_t{1} << 31;

/// Tiles that cover a tensor of these extents. 0 when any is 0, and for extents that are safe in no
/// walk: one above 2^31 (coordinates are signed), or more than `max_walked_tiles` tiles. Any bits
/// are legal extents.
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

/// The walk of one thread, or of a warp whose lanes all make the same calls, those that end in
/// `_warp`, which load side by side. Reads `extents[i].global_dim` and `tile_ends[i]`, the tiles of
/// tensors 0 to i by `count_tiles` (device memory, unchanged meanwhile). Tensors without tiles, by
/// whatever reason, are passed over.
template <std::uint32_t Rank>
class tile_walk {
 public:
  /// `box_dim` may be a kernel parameter; it must outlive the walk.
  __device__ tile_walk(const map_patch* extents, const std::uint64_t* tile_ends, std::uint64_t count,
                       const std::uint32_t* box_dim)
      : extents_(extents), tile_ends_(tile_ends), count_(count), box_dim_(box_dim) {}

  /// Tiles of the whole batch.
  __device__ std::uint64_t tiles() const { return count_ == 0 ? 0 : tile_ends_[count_ - 1]; }

  /// Goes to tile `g`, which must exist: a binary search, then mixed radix.
  __device__ void seek(std::uint64_t g) { enter_at(find_tensor(tile_ends_, g, 0, count_ - 1), g); }
  __device__ void seek_warp(std::uint64_t g) { enter_at(find_tensor_warp(tile_ends_, g, 0, count_ - 1), g); }

  /// The same for a `g` not before the current tile: cheap where it is not far.
  __device__ void seek_ahead(std::uint64_t g) { enter_at(find_tensor_near(tile_ends_, g, tensor_, count_ - 1), g); }
  __device__ void seek_ahead_warp(std::uint64_t g) {
    enter_at(find_tensor_near_warp(tile_ends_, g, tensor_, count_ - 1), g);
  }

  /// The same where a work list names the tensor: nothing to search for.
  __device__ void seek_listed(std::uint64_t g, std::uint32_t tensor) { enter_at(tensor, g); }

  /// Goes to the next tile, which must exist. The tensor after this one is mostly the next with
  /// tiles.
  __device__ void advance() {
    if (--left_ != 0) return step();
    enter(find_tensor_near(tile_ends_, tile_ends_[tensor_], tensor_ + 1, count_ - 1));
  }
  __device__ void advance_warp() {
    if (--left_ != 0) return step();
    enter(find_tensor_near_warp(tile_ends_, tile_ends_[tensor_], tensor_ + 1, count_ - 1));
  }

  __device__ std::uint64_t tensor() const { return tensor_; }
  __device__ const std::int32_t (&coordinates() const)[Rank] { return coordinates_; }

 private:
  // A tensor with tiles: its extents are at most 2^31, as are its tiles.
  __device__ std::uint64_t enter(std::uint64_t tensor) {
    tensor_ = tensor;
    const std::uint64_t begin = tensor == 0 ? 0 : tile_ends_[tensor - 1];
    left_ = static_cast<std::uint32_t>(tile_ends_[tensor] - begin);
#pragma unroll
    for (std::uint32_t axis = 0; axis < Rank; ++axis) {
      dim_[axis] = static_cast<std::uint32_t>(extents_[tensor].global_dim[axis]);
      coordinates_[axis] = 0;
    }
    return begin;
  }

  __device__ void enter_at(std::uint64_t tensor, std::uint64_t g) {
    auto within = static_cast<std::uint32_t>(g - enter(tensor));
    left_ -= within;
#pragma unroll
    for (std::uint32_t axis = 0; axis < Rank; ++axis) {
      const std::uint32_t tiles = (dim_[axis] + box_dim_[axis] - 1) / box_dim_[axis];
      coordinates_[axis] = static_cast<std::int32_t>(within % tiles * box_dim_[axis]);
      within /= tiles;
    }
  }

  __device__ void step() {
#pragma unroll
    for (std::uint32_t axis = 0; axis < Rank; ++axis) {
      const std::uint32_t next = static_cast<std::uint32_t>(coordinates_[axis]) + box_dim_[axis];
      coordinates_[axis] = next < dim_[axis] ? static_cast<std::int32_t>(next) : 0;
      if (next < dim_[axis]) return;
    }
  }

  const map_patch* extents_;
  const std::uint64_t* tile_ends_;
  std::uint64_t count_;
  const std::uint32_t* box_dim_;
  std::uint64_t tensor_{};
  std::uint32_t left_{};  // tiles of this tensor from the current one on
  std::uint32_t dim_[Rank]{};
  std::int32_t coordinates_[Rank]{};
};

}  // namespace tmap::device
