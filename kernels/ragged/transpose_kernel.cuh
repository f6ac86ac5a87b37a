// SPDX-License-Identifier: Apache-2.0
#pragma once

// The transposing kernel. As tiles differ in size, a persistent block takes a few consecutive tiles
// at a time from a queue. It loads ahead by one tile less than it has stages. Each tile is
// transposed while it goes from shared to global memory. One warp finds tiles, one starts the copy
// engine, and the others do the rest. Finding a tile takes as long as storing one, and no stage may
// be idle meanwhile.

#include "kernels/launch_behind.hpp"
#include "kernels/ragged/transpose_exchange.cuh"
#include "kernels/ragged/transpose_load.cuh"
#include "kernels/ragged/transpose_piece.cuh"

#include <tmap/device/acquire.cuh>
#include <tmap/device/tensor_search.cuh>
#include <tmap/device/work_queue.cuh>
#include <tmap/device_limits.hpp>

#include <cuda/std/optional>

#include <cstdint>

namespace tmap::kernels {

inline constexpr std::uint32_t transpose_lanes = 32;

/// The shape of a block of the kernel. In addition to its stages it has one more place, in which
/// tiles are exchanged.
template <std::uint32_t Rows, std::uint32_t Panels, std::uint32_t Stages, std::uint32_t Workers, std::uint32_t Blocks>
struct transpose_shape {
  static constexpr std::uint32_t rows = Rows;  ///< of the largest tile
  static constexpr std::uint32_t panels = Panels;
  static constexpr std::uint32_t stages = Stages;
  /// A block's first threads, which store tiles. After them come a warp that finds tiles and one
  /// that loads them.
  static constexpr std::uint32_t workers = Workers;
  static constexpr std::uint32_t warps = Workers / transpose_lanes;
  static constexpr std::uint32_t threads = Workers + 2 * transpose_lanes;
  static constexpr std::uint32_t blocks = Blocks;  ///< a multiprocessor
  /// Each 128 bytes of a row and of a column have one more chunk, as rows may be shifted, and
  /// against bank conflicts.
  static constexpr std::uint32_t stage_bytes = Rows * Panels * (transpose_panel_bytes + transpose_chunk);
  static constexpr std::uint32_t stage_alignment = 1024;
  static constexpr std::uint32_t shared_bytes = (stages + 1) * stage_bytes + stage_alignment;
  static_assert(stage_bytes % stage_alignment == 0);
  static_assert(shared_bytes <= tmap::detail::ragged_shared_memory_bytes);
  static constexpr std::uint32_t batch = 4;  ///< pieces taken and found at once, a lane each
  static constexpr std::uint32_t records = 2 * batch;
  static_assert(stages <= batch + 1, "pieces after the last one are asked for");
};

template <class Shape>
struct transpose_state {
  device::tile_barrier full[Shape::stages];   // the engine's bytes, the loading warp, each warp of workers
  device::tile_barrier empty[Shape::stages];  // each warp of workers
  device::tile_barrier found[2];              // of two batches of records: the finder
  device::tile_barrier passed[2];             // their records have been read: the loading warp, each warp of workers
  device::tile_barrier exchanged;             // each warp of workers
  transpose_piece pieces[Shape::records];
  std::uint32_t counts[2];  // of pieces in the batches; fewer than there is room for: the block has no more

  __device__ void init() {
    for (device::tile_barrier& barrier : full) barrier.init(1 + Shape::warps);
    for (device::tile_barrier& barrier : empty) barrier.init(Shape::warps);
    for (device::tile_barrier& barrier : found) barrier.init(1);
    for (device::tile_barrier& barrier : passed) barrier.init(1 + Shape::warps);
    exchanged.init(Shape::warps);
    device::fence_barrier_init();
  }
};

/// Finds piece `g`, which is in tensor `low` or after it. One thread calls it.
__device__ inline void find_piece(const planned_work& work, std::uint64_t g, std::uint64_t low,
                                  std::uint32_t element_bytes, transpose_piece& piece) {
  const std::uint64_t index = device::find_tensor_near(work.ends, g, low, work.count - 1);
  const planned_tensor tensor = work.tensors[index];
  const transpose_tile tile = tile_of(tensor, work.rule);
  const std::uint64_t begin = index == 0 ? 0 : work.ends[index - 1];
  place(piece, tensor, tile, tile_place(tensor, tile, g - begin), element_bytes);
  lay_out(piece, tensor, tile, element_bytes);
  piece.map = tensor.way == route::tensor_map ? &work.maps[std::uint64_t{2} * tensor.tensor] : nullptr;
}

/// The map that the loading thread acquired last. The tiles of a tensor follow each other.
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

/// A block's pieces. Piece n uses stage n % stages for the (n / stages)-th time. Every role counts
/// n for its records anyway: a `ring_position` next to it adds 3 % to the kernel's instructions.
template <class Shape, std::uint32_t ElementBytes>
struct transpose_turns {
  static constexpr std::uint32_t stages = Shape::stages;
  static constexpr std::uint32_t batch = Shape::batch;

  const planned_work& work;
  transpose_state<Shape>& state;
  unsigned char* shared;
  std::uint32_t element_bytes;

  __device__ transpose_piece& piece(std::uint64_t n) const { return state.pieces[n % Shape::records]; }
  __device__ unsigned char* stage(std::uint64_t n) const { return shared + n % stages * Shape::stage_bytes; }
  __device__ unsigned char* turned() const { return shared + stages * Shape::stage_bytes; }
  __device__ device::tile_barrier& full(std::uint64_t n) const { return state.full[n % stages]; }
  __device__ static worker_place worker() { return {threadIdx.x, Shape::workers}; }

  /// Waits until the previous piece in the stage of piece n has been read.
  __device__ void wait_empty(std::uint64_t n) const {
    if (n >= stages) state.empty[n % stages].wait(n / stages % 2 ^ 1);
  }

  /// Waits, if a batch begins with piece n, until it has been found.
  __device__ void wait_found(std::uint64_t n) const {
    if (n % batch == 0) state.found[n / batch % 2].wait(n / batch / 2 % 2);
  }
  /// Returns whether piece n exists. Its batch must have been found.
  __device__ bool exists(std::uint64_t n) const { return n % batch < state.counts[n / batch % 2]; }

  /// Signals that this warp does not read the record of piece n again.
  __device__ void pass(std::uint64_t n) const {
    if (n % batch == batch - 1) arrive_warp(state.passed[n / batch % 2]);
  }

  /// Finds the batch that begins with piece n. It consists of the pieces from `first` on, below
  /// `last`. Returns a tensor near the next ones. One warp calls it.
  __device__ std::uint64_t find(std::uint64_t n, std::uint64_t first, std::uint64_t last, std::uint64_t tensor) const {
    const std::uint32_t lane = threadIdx.x % transpose_lanes;
    if (n >= 2 * batch) state.passed[n / batch % 2].wait((n / batch / 2 - 1) % 2);
    const auto found = static_cast<std::uint32_t>(last - first < batch ? last - first : batch);
    if (found != 0) tensor = device::find_tensor_warp(work.ends, first, tensor, work.count - 1);
    if (lane < found) find_piece(work, first + lane, tensor, element_bytes, piece(n + lane));
    if (lane == 0) state.counts[n / batch % 2] = found;
    arrive_warp(state.found[n / batch % 2]);
    return tensor;
  }

  /// Finds batches from the queue, and an empty one after them. Each takes the place of the last
  /// but one. One warp runs it.
  __device__ void run_finder() const {
    const std::uint64_t all = work.ends[work.count - 1];
    constexpr std::uint64_t most_items = std::uint64_t{1} << 31;
    const std::uint64_t item_pieces = (all / (batch * most_items) + 1) * batch;
    const auto items = static_cast<std::uint32_t>((all + item_pieces - 1) / item_pieces);
    device::work_queue queue(work.queue, items, blockIdx.x, gridDim.x);
    std::uint64_t tensor = 0;
    std::uint64_t n = 0;
    for (std::uint32_t item = queue.take_warp(); item != device::no_item; item = queue.take_warp()) {
      const std::uint64_t begin = item * item_pieces;
      const std::uint64_t end = all - begin < item_pieces ? all : begin + item_pieces;
      for (std::uint64_t first = begin; first < end; first += batch, n += batch) tensor = find(n, first, end, tensor);
    }
    find(n, all, all, tensor);
  }

  __device__ void load_by_engine(std::uint64_t n, held_map& map) const {
    if (piece(n).way == route::bulk) return load_bulk(piece(n), stage(n), full(n));
    if (threadIdx.x % transpose_lanes != 0) return;
    if (piece(n).way != route::tensor_map) return full(n).arrive();
    load_through_map(piece(n), stage(n), element_bytes, work.rule.map_rank, map, full(n));
  }

  /// Loads pieces by the copy engine. One warp runs it.
  __device__ void run_loader() const {
    held_map map;
    for (std::uint64_t n = 0;; ++n) {
      wait_found(n);
      if (!exists(n)) return;
      wait_empty(n);
      load_by_engine(n, map);
      pass(n);
    }
  }

  /// Loads the parts that the copy engine does not load.
  __device__ void load_by_threads(std::uint64_t n) const {
    wait_found(n);
    if (exists(n) && piece(n).way != route::tensor_map) {
      wait_empty(n);
      load_by_workers(piece(n), stage(n), worker());
    }
    device::commit_copies();
  }

  static __device__ void arrive_warp(device::tile_barrier& barrier) {
    __syncwarp();
    if (threadIdx.x % transpose_lanes == 0) barrier.arrive();
  }

  /// Stores pieces, and loads the next ones meanwhile. All other threads run it.
  __device__ void run_worker() const {
    std::uint32_t meetings = 0;
    const auto meet = [&] {
      arrive_warp(state.exchanged);
      state.exchanged.wait(meetings++ % 2);
    };
    for (std::uint64_t n = 0; n + 1 < stages; ++n) load_by_threads(n);
    for (std::uint64_t n = 0; exists(n); ++n) {
      load_by_threads(n + stages - 1);
      device::wait_copies<stages - 1>();
      arrive_warp(full(n));
      full(n).wait(n / stages % 2);
      store_transposed<ElementBytes>(piece(n), stage(n), turned(), element_bytes, worker(), meet);
      if (piece(n).way != route::tensor_map) device::fence_shared_writes();
      arrive_warp(state.empty[n % stages]);
      pass(n);
    }
  }
};

/// `ElementBytes` is 1, 2, 4, 8 or 16, or 0 for elements of `element_bytes`.
template <class Shape, std::uint32_t ElementBytes>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    transpose_kernel(const __grid_constant__ planned_work work, std::uint32_t element_bytes) {
  __shared__ transpose_state<Shape> state;
  extern __shared__ unsigned char dynamic[];
  if (threadIdx.x == 0) state.init();
  __syncthreads();
  cudaGridDependencySynchronize();
  const auto start = static_cast<std::uint32_t>(__cvta_generic_to_shared(dynamic));
  const std::uint32_t slack = (Shape::stage_alignment - start % Shape::stage_alignment) % Shape::stage_alignment;
  const transpose_turns<Shape, ElementBytes> turns{work, state, dynamic + slack,
                                                   ElementBytes == 0 ? element_bytes : ElementBytes};
  if (threadIdx.x < Shape::workers) {
    turns.run_worker();
  } else if (threadIdx.x < Shape::workers + transpose_lanes) {
    turns.run_finder();
  } else {
    turns.run_loader();
  }
}

template <class Shape, std::uint32_t ElementBytes>
cudaError_t start_transpose(const planned_work& work, std::uint32_t element_bytes, std::uint32_t multiprocessors,
                            cudaStream_t stream) {
  const launch_size size{multiprocessors * Shape::blocks, Shape::threads, Shape::shared_bytes};
  return launch_behind(transpose_kernel<Shape, ElementBytes>, size, stream, work, element_bytes);
}

}  // namespace tmap::kernels
