// SPDX-License-Identifier: Apache-2.0
#pragma once

// The transposing kernel. A persistent block takes a range of consecutive tiles and keeps as many of them on their way
// in as it has stages but one; each is turned while it goes from shared to global memory. One warp finds tiles and
// starts the copy engine, the others do the rest.

#include "kernels/launch_behind.hpp"
#include "kernels/ragged/transpose_exchange.cuh"
#include "kernels/ragged/transpose_load.cuh"
#include "kernels/ragged/transpose_piece.cuh"

#include <tmap/device/acquire.cuh>
#include <tmap/device/tensor_search.cuh>
#include <tmap/device/tile_shares.cuh>

#include <cuda/std/optional>

#include <cstdint>

namespace tmap::kernels {

inline constexpr std::uint32_t transpose_lanes = 32;

/// What a block of the kernel is made of. With `StoresInBulk` aligned tiles leave by the copy engine.
template <std::uint32_t Rows, std::uint32_t Panels, std::uint32_t Stages, std::uint32_t Workers, std::uint32_t Blocks,
          bool StoresInBulk>
struct transpose_shape {
  static constexpr std::uint32_t rows = Rows;  ///< of the largest tile
  static constexpr std::uint32_t panels = Panels;
  static constexpr std::uint32_t stages = Stages;
  static constexpr std::uint32_t workers =
      Workers;  ///< a block's first threads, which store tiles; one more warp finds
  static constexpr std::uint32_t warps = Workers / transpose_lanes;
  static constexpr std::uint32_t threads = Workers + transpose_lanes;
  static constexpr std::uint32_t blocks = Blocks;  ///< a multiprocessor
  static constexpr bool stores_in_bulk = StoresInBulk;
  /// Exchanged tiles: one may still be read by the copy engine.
  static constexpr std::uint32_t turned = StoresInBulk ? 2 : 1;
  /// Each 128 bytes of a row and of a column have a chunk more, for what rows are shifted by, and against conflicts.
  static constexpr std::uint32_t stage_bytes = Rows * Panels * (transpose_panel_bytes + transpose_chunk);
  static constexpr std::uint32_t stage_alignment = 1024;
  static constexpr std::uint32_t shared_bytes = (stages + turned) * stage_bytes + stage_alignment;
  static_assert(stage_bytes % stage_alignment == 0);
  static constexpr std::uint32_t batch = Stages < 4 ? 4 : 8;  ///< pieces found at once, a lane each
  static constexpr std::uint32_t records = 2 * batch;
};

template <class Shape>
struct transpose_state {
  device::tile_barrier full[Shape::stages];   // the engine's bytes, the finder, each warp of workers
  device::tile_barrier empty[Shape::stages];  // each warp of workers
  device::tile_barrier found[2];              // of two batches of records
  device::tile_barrier exchanged;             // each warp of workers
  transpose_piece pieces[Shape::records];

  __device__ void init() {
    for (device::tile_barrier& barrier : full) barrier.init(1 + Shape::warps);
    for (device::tile_barrier& barrier : empty) barrier.init(Shape::warps);
    for (device::tile_barrier& barrier : found) barrier.init(1);
    exchanged.init(Shape::warps);
    device::fence_barrier_init();
  }
};

/// One thread finds piece `g`, which is in tensor `low` or behind it. Returns its tensor.
__device__ inline std::uint64_t find_piece(const planned_work& work, std::uint64_t g, std::uint64_t low,
                                           std::uint32_t element_bytes, transpose_piece& piece) {
  const std::uint64_t index = device::find_tensor_near(work.ends, g, low, work.count - 1);
  const planned_tensor tensor = work.tensors[index];
  const transpose_tile tile = tile_of(tensor, work.rule);
  const std::uint64_t begin = index == 0 ? 0 : work.ends[index - 1];
  place(piece, tensor, tile, tile_place(tensor, tile, g - begin), element_bytes);
  lay_out(piece, tensor, tile, element_bytes);
  piece.map = tensor.way == route::tensor_map ? &work.maps[std::uint64_t{2} * tensor.tensor] : nullptr;
  return index;
}

/// Of the thread that loads through maps: the one it acquired last. The tiles of a tensor follow each other.
using held_map = cuda::std::optional<device::acquired_map>;

__device__ inline void load_through_map(const transpose_piece& piece, unsigned char* stage, std::uint32_t element_bytes,
                                        std::uint32_t rank, held_map& map, device::tile_barrier& full) {
  if (!map || map->get() != piece.map) map = device::acquire(piece.map);
  switch (rank) {
    case 2: return load_boxes<2>(piece, stage, *map, element_bytes, full);
    case 3: return load_boxes<3>(piece, stage, *map, element_bytes, full);
    case 4: return load_boxes<4>(piece, stage, *map, element_bytes, full);
    default: return load_boxes<5>(piece, stage, *map, element_bytes, full);
  }
}

/// A block's pieces. Piece n uses stage n % stages for the (n / stages)-th time.
template <class Shape, std::uint32_t ElementBytes>
struct transpose_turns {
  static constexpr std::uint32_t stages = Shape::stages;
  static constexpr std::uint32_t batch = Shape::batch;

  const planned_work& work;
  transpose_state<Shape>& state;
  unsigned char* shared;
  std::uint32_t element_bytes;
  device::tile_range range;

  __device__ std::uint64_t count() const { return range.last - range.first; }
  __device__ transpose_piece& piece(std::uint64_t n) const { return state.pieces[n % Shape::records]; }
  __device__ unsigned char* stage(std::uint64_t n) const { return shared + n % stages * Shape::stage_bytes; }
  __device__ unsigned char* turned(std::uint64_t n) const {
    return shared + (stages + n % Shape::turned) * Shape::stage_bytes;
  }
  __device__ device::tile_barrier& full(std::uint64_t n) const { return state.full[n % stages]; }
  __device__ device::tile_barrier& found(std::uint64_t n) const { return state.found[n / batch % 2]; }
  __device__ static worker_place worker() { return {threadIdx.x, Shape::workers}; }

  /// Until the stage of piece n has been read for the last time before it.
  __device__ void wait_empty(std::uint64_t n) const {
    if (n >= stages) state.empty[n % stages].wait(n / stages % 2 ^ 1);
  }

  /// The finder: the batch of records that begins with piece n, from the tensor of the batch before on.
  __device__ std::uint64_t find(std::uint64_t n, std::uint64_t tensor) const {
    const std::uint32_t lane = threadIdx.x % transpose_lanes;
    if (lane < batch && n + lane < count()) {
      tensor = find_piece(work, range.first + n + lane, tensor, element_bytes, piece(n + lane));
    }
    __syncwarp();
    if (lane == 0) found(n).arrive();
    return __shfl_sync(~0u, tensor, batch - 1);
  }

  __device__ void load_by_engine(std::uint64_t n, held_map& map) const {
    if (piece(n).way == route::bulk) return load_bulk(piece(n), stage(n), full(n));
    if (threadIdx.x % transpose_lanes != 0) return;
    if (piece(n).way != route::tensor_map) return full(n).arrive();
    load_through_map(piece(n), stage(n), element_bytes, work.rule.map_rank, map, full(n));
  }

  /// One warp. A batch of records takes the place of the last but one when all of that have been stored.
  __device__ void run_finder() const {
    held_map map;
    std::uint64_t tensor = device::find_tensor_warp(work.ends, range.first, 0, work.count - 1);
    tensor = find(0, tensor);
    for (std::uint64_t n = 0; n < count(); ++n) {
      wait_empty(n);
      load_by_engine(n, map);
      const std::uint64_t next = n / batch * batch + batch;
      if (n % batch == stages - 1 && next < count()) tensor = find(next, tensor);
    }
  }

  /// Some routes are the workers' own.
  __device__ void load_by_threads(std::uint64_t n) const {
    if (n < count()) {
      if (n % batch == 0) found(n).wait(n / batch / 2 % 2);
      if (piece(n).way != route::tensor_map) {
        wait_empty(n);
        load_by_workers(piece(n), stage(n), worker());
      }
    }
    device::commit_copies();
  }

  static __device__ void arrive_warp(device::tile_barrier& barrier) {
    __syncwarp();
    if (threadIdx.x % transpose_lanes == 0) barrier.arrive();
  }

  /// The first warp starts bulk stores, and says so when an exchanged tile has been read by them.
  __device__ void commit_bulk_stores() const {
    if (Shape::stores_in_bulk && threadIdx.x < transpose_lanes) device::commit_stores();
  }
  template <std::uint32_t Left>
  __device__ void wait_bulk_stores() const {
    if (Shape::stores_in_bulk && threadIdx.x < transpose_lanes) device::wait_stores_read<Left>();
  }

  /// All other threads: while piece n is stored the next ones are loaded.
  __device__ void run_worker() const {
    std::uint32_t meetings = 0;
    const auto meet = [&] {
      arrive_warp(state.exchanged);
      state.exchanged.wait(meetings++ % 2);
    };
    for (std::uint64_t n = 0; n + 1 < stages; ++n) load_by_threads(n);
    for (std::uint64_t n = 0; n < count(); ++n) {
      load_by_threads(n + stages - 1);
      device::wait_copies<stages - 1>();
      wait_bulk_stores<Shape::turned - 1>();
      arrive_warp(full(n));
      full(n).wait(n / stages % 2);
      store_transposed<ElementBytes, Shape::stores_in_bulk>(piece(n), stage(n), turned(n), element_bytes, worker(),
                                                            meet);
      commit_bulk_stores();
      if (piece(n).way != route::tensor_map) device::fence_shared_writes();
      arrive_warp(state.empty[n % stages]);
    }
    wait_bulk_stores<0>();
  }
};

/// `ElementBytes`: 1, 2, 4, 8, 16; or 0 for any, `element_bytes` then.
template <class Shape, std::uint32_t ElementBytes>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    transpose_kernel(const __grid_constant__ planned_work work, std::uint32_t element_bytes) {
  __shared__ transpose_state<Shape> state;
  extern __shared__ unsigned char dynamic[];
  cudaGridDependencySynchronize();
  const device::tile_range range = device::tile_shares(work.ends[work.count - 1], gridDim.x).run(blockIdx.x);
  if (range.first == range.last) return;
  if (threadIdx.x == 0) state.init();
  __syncthreads();
  const auto start = static_cast<std::uint32_t>(__cvta_generic_to_shared(dynamic));
  const std::uint32_t slack = (Shape::stage_alignment - start % Shape::stage_alignment) % Shape::stage_alignment;
  const transpose_turns<Shape, ElementBytes> turns{work, state, dynamic + slack,
                                                   ElementBytes == 0 ? element_bytes : ElementBytes, range};
  if (threadIdx.x < Shape::workers) {
    turns.run_worker();
  } else {
    turns.run_finder();
  }
}

template <class Shape, std::uint32_t ElementBytes>
cudaError_t start_transpose(const planned_work& work, std::uint32_t element_bytes, std::uint32_t multiprocessors,
                            cudaStream_t stream) {
  const launch_size size{multiprocessors * Shape::blocks, Shape::threads, Shape::shared_bytes};
  return launch_behind(transpose_kernel<Shape, ElementBytes>, size, stream, work, element_bytes);
}

}  // namespace tmap::kernels
