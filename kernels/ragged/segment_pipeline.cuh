// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pipeline that the vector operations share. Each warp keeps a ring of stages of its own, loads
// the next segments into them by the tensor's route, and works on the oldest. Warps never wait for
// each other.
//
// An operation is a class with these members:
// - `arguments`: the type of the kernel's arguments;
// - `warps` of a block, and `stages` of a warp;
// - `inputs`: 1, or 2 if the destination is read as well;
// - `stage_bytes`: room for one input of a segment, a multiple of 128;
// - `scratch_bytes`: more shared memory for each warp;
// - `cuts`: where long rows are cut;
// - a constructor (work, arguments, scratch): each warp makes an object;
// - `steps(work)`: the pieces of this warp;
// - `sizes()`: the bytes of an element of both sides;
// - `reach()`: how many columns a segment needs before and after its own;
// - `staged(segment, row, other, pitch)`: works on rows in shared memory. `row` points to column
//   `first - reach` of the first row of the source, `other` to that of the last input;
// - `direct(segment)`: works on short rows in global memory.

#include "kernels/launch_behind.hpp"
#include "kernels/ragged/segment_load.cuh"
#include "kernels/ragged/segment_walk.cuh"

#include <tmap/device/acquire.cuh>
#include <tmap/device/stage_ring.cuh>
#include <tmap/device/tile_shares.cuh>

#include "kernels/ragged_launch.hpp"

#include <cuda/std/optional>

#include <cstdint>

namespace tmap::kernels {

inline constexpr std::uint32_t stage_alignment = 128;  // of boxes in shared memory
inline constexpr std::uint32_t box_columns = 256;      // of a piece's box in vectors: the most that a map takes

template <class Op>
struct pipeline_shared {
  device::tile_barrier full[Op::warps][Op::stages];
  segment segments[Op::warps][Op::stages];
  planned_tensor records[Op::warps];
};

template <class Op>
inline constexpr std::uint32_t warp_bytes = Op::stages* Op::inputs* Op::stage_bytes + Op::scratch_bytes;

/// With fewer pieces a tensor, entering a tensor at each turn costs more than turns gain.
inline constexpr std::uint64_t least_turn_pieces = 1024;

/// Returns the pieces of this warp. It takes turns over all pieces, or over the block's share with
/// the block's other warps. Either way neighbours in memory are loaded at about the same time.
template <std::uint32_t Warps>
__device__ piece_steps share_of_warp(const planned_work& work) {
  const std::uint64_t pieces = work.ends[work.count - 1];
  if (takes_turns(work, pieces, least_turn_pieces)) {
    return {std::uint64_t{threadIdx.x / 32} * gridDim.x + blockIdx.x, pieces, std::uint64_t{gridDim.x} * Warps};
  }
  const device::tile_range share = device::tile_shares(pieces, gridDim.x).run(blockIdx.x);
  return {share.first + threadIdx.x / 32, share.last, Warps};
}

namespace detail {

template <std::uint32_t Rank>
__device__ void load_box(unsigned char* to, device::acquired_map map, const box_corner& corner, std::int32_t shift,
                         device::tile_barrier& full) {
  std::int32_t coordinates[Rank];
#pragma unroll
  for (std::uint32_t axis = 0; axis < Rank; ++axis) coordinates[axis] = corner.coordinates[axis];
  coordinates[0] += shift;
  device::load_tile<Rank>(to, map, coordinates, full);
}

__device__ inline void load_box(unsigned char* to, device::acquired_map map, std::uint32_t rank,
                                const box_corner& corner, std::int32_t shift, device::tile_barrier& full) {
  switch (rank) {
    case 1: return load_box<1>(to, map, corner, shift, full);
    case 2: return load_box<2>(to, map, corner, shift, full);
    case 3: return load_box<3>(to, map, corner, shift, full);
    case 4: return load_box<4>(to, map, corner, shift, full);
    default: return load_box<5>(to, map, corner, shift, full);
  }
}

}  // namespace detail

template <class Op>
class segment_pipeline {
 public:
  /// `staged` is `warp_bytes` of shared memory. All lanes call it.
  __device__ segment_pipeline(const planned_work& work, Op& op, pipeline_shared<Op>& shared, unsigned char* staged,
                              std::uint32_t warp)
      : work_(work),
        op_(op),
        full_(shared.full[warp]),
        segments_(shared.segments[warp]),
        staged_(staged),
        walk_(work, &shared.records[warp], op.steps(work), op.sizes()) {
    if (lane() != 0) return;
    for (device::tile_barrier& barrier : shared.full[warp]) barrier.init(stage_arrivals);
    device::fence_barrier_init();
  }

  __device__ void run() {
    __syncwarp();
    std::uint32_t filled = 0;
    while (filled < Op::stages && fill(filled)) ++filled;
    for (std::uint32_t stage = 0; filled != 0; stage = stage + 1 == Op::stages ? 0 : stage + 1) {
      use(stage);
      __syncwarp();
      if (!fill(stage)) --filled;
    }
  }

 private:
  __device__ static std::uint32_t lane() { return threadIdx.x % 32; }
  __device__ unsigned char* input(std::uint32_t stage, std::uint32_t i) const {
    return staged_ + (stage * Op::inputs + i) * Op::stage_bytes;
  }
  __device__ std::uint32_t element_bytes(std::uint32_t i) const {
    return i == 0 ? op_.sizes().source : op_.sizes().destination;
  }
  __device__ std::uint32_t boxes_aside() const {
    const std::uint32_t width = work_.rule.box_dim[0];
    return (op_.reach() + width - 1) / width;
  }
  __device__ std::uint32_t box_bytes(std::uint32_t i) const {
    const std::uint32_t rows = work_.rule.map_rank == 1 ? 1 : work_.rule.box_dim[1];
    return work_.rule.box_dim[0] * rows * element_bytes(i);
  }

  __device__ bool fill(std::uint32_t stage) {
    segment next;
    box_corner corner;
    if (!walk_.next(next, corner)) return false;
    if (lane() == 0) segments_[stage] = next;
    if (next.way == route::bulk || next.way == route::tensor_map) device::fence_shared_writes();
    __syncwarp();
    if (!next.staged) return true;
    if (next.way == route::tensor_map) {
      if (lane() == 0) load_boxes(stage, next, corner);
    } else {
      load_rows(stage, next);
    }
    device::arrive_after_copies(full_[stage]);
    return true;
  }

  __device__ span span_of(const segment& s, std::uint32_t i) const {
    const std::uint64_t columns_after = s.length - s.first - s.columns;
    const std::uint32_t before = s.first < op_.reach() ? static_cast<std::uint32_t>(s.first) : op_.reach();
    const std::uint32_t after = columns_after < op_.reach() ? static_cast<std::uint32_t>(columns_after) : op_.reach();
    const std::uint64_t address = i == 0 ? s.source : s.destination;
    return {address - std::uint64_t{before} * element_bytes(i), (before + s.columns + after) * element_bytes(i)};
  }

  __device__ void load_rows(std::uint32_t stage, const segment& s) {
    if (lane() == 0) {
      std::uint32_t bytes = 0;
      for (std::uint32_t i = 0; i < Op::inputs && s.way == route::bulk; ++i) bytes += span_of(s, i).body;
      full_[stage].arrive_expect(bytes);
    }
    for (std::uint32_t i = 0; i < Op::inputs; ++i) {
      const span part = span_of(s, i);
      const std::uint64_t row = (i == 0 ? s.source : s.destination) - std::uint64_t{op_.reach()} * element_bytes(i);
      load_span(input(stage, i) + row % unit_bytes + (part.address - row), part, s.way, full_[stage]);
    }
  }

  /// Loads the box of the segment and, if the operation reaches further, its neighbours that are
  /// not wholly outside the row.
  __device__ void load_boxes(std::uint32_t stage, const segment& s, const box_corner& corner) {
    acquire_maps(s.tensor);
    const std::int32_t width = static_cast<std::int32_t>(work_.rule.box_dim[0]);
    const std::int32_t aside = static_cast<std::int32_t>(boxes_aside());
    const auto is_inside = [&](std::int32_t k) {
      const std::int64_t column = corner.coordinates[0] + std::int64_t{k} * width;
      return column >= 0 && static_cast<std::uint64_t>(column) < s.length;
    };
    std::uint32_t bytes = 0;
    for (std::int32_t k = -aside; k <= aside; ++k) {
      for (std::uint32_t i = 0; i < Op::inputs && is_inside(k); ++i) bytes += box_bytes(i);
    }
    full_[stage].arrive_expect(bytes);
    for (std::int32_t k = -aside; k <= aside; ++k) {
      for (std::uint32_t i = 0; i < Op::inputs && is_inside(k); ++i) {
        unsigned char* const to = input(stage, i) + static_cast<std::uint32_t>(k + aside) * box_bytes(i);
        detail::load_box(to, *maps_[i], work_.rule.map_rank, corner, k * width, full_[stage]);
      }
    }
  }

  __device__ void acquire_maps(std::uint32_t tensor) {
    if (tensor == acquired_tensor_) return;
    for (std::uint32_t i = 0; i < Op::inputs; ++i) {
      maps_[i] = device::acquire(&work_.maps[std::uint64_t{2} * tensor + i]);
    }
    acquired_tensor_ = tensor;
  }

  __device__ unsigned char* first_row(std::uint32_t stage, const segment& s, std::uint32_t i) const {
    const std::uint64_t reach = std::uint64_t{op_.reach()} * element_bytes(i);
    if (s.way == route::tensor_map) return input(stage, i) + boxes_aside() * box_bytes(i) - reach;
    return input(stage, i) + ((i == 0 ? s.source : s.destination) - reach) % unit_bytes;
  }

  __device__ void use(std::uint32_t stage) {
    const segment& s = segments_[stage];
    if (!s.staged) return op_.direct(s);
    phases_.wait_full(full_[stage], stage);
    __syncwarp();
    op_.staged(s, first_row(stage, s, 0), first_row(stage, s, Op::inputs - 1), work_.rule.box_dim[0]);
  }

  static constexpr std::uint32_t no_tensor = ~0u;

  const planned_work& work_;
  Op& op_;
  device::tile_barrier* full_;
  segment* segments_;
  unsigned char* staged_;
  segment_walk<Op::cuts> walk_;
  device::stage_phases phases_;
  std::uint32_t acquired_tensor_{no_tensor};
  cuda::std::optional<device::acquired_map> maps_[Op::inputs];
};

template <class Op>
__global__ void __launch_bounds__(Op::warps * 32, 1)
    segment_kernel(const __grid_constant__ planned_work work,
                   const __grid_constant__ typename Op::arguments arguments) {
  __shared__ pipeline_shared<Op> shared;
  extern __shared__ unsigned char dynamic[];
  const std::uint32_t start = static_cast<std::uint32_t>(__cvta_generic_to_shared(dynamic));
  const std::uint32_t slack = (stage_alignment - start % stage_alignment) % stage_alignment;
  const std::uint32_t warp = threadIdx.x / 32;
  unsigned char* const own = dynamic + slack + warp * warp_bytes<Op>;
  cudaGridDependencySynchronize();
  Op op(work, arguments, own + Op::stages * Op::inputs * Op::stage_bytes);
  segment_pipeline<Op> pipeline(work, op, shared, own, warp);
  pipeline.run();
}

template <class Op>
cudaError_t launch_segments(const planned_work& work, const typename Op::arguments& arguments,
                            const device_shape& device, cudaStream_t stream) {
  constexpr std::uint32_t shared_bytes = Op::warps * warp_bytes<Op> + stage_alignment;
  static_assert(shared_bytes + sizeof(pipeline_shared<Op>) <= tmap::detail::ragged_shared_memory_bytes);
  return launch_behind(segment_kernel<Op>, {device.multiprocessors, Op::warps * 32, shared_bytes}, stream, work,
                       arguments);
}

}  // namespace tmap::kernels
