// SPDX-License-Identifier: Apache-2.0
// Exchanges dims 0 and 1 of the planned tensors of a batch. A persistent block takes a range of consecutive tiles and
// keeps as many of them on their way in as it has stages but one; each is turned while it goes from shared to global
// memory. One warp finds tiles and starts the copy engine, the others do the rest.
#include "kernels/launch_behind.hpp"
#include "kernels/ragged/transpose_exchange.cuh"
#include "kernels/ragged/transpose_load.cuh"
#include "kernels/ragged/transpose_piece.cuh"
#include "kernels/ragged_launch.hpp"

#include <tmap/device/acquire.cuh>
#include <tmap/device/tensor_search.cuh>
#include <tmap/device/tile_shares.cuh>

#include <cuda/std/optional>

#include <cstdint>

namespace tmap::kernels {
namespace {

constexpr std::uint32_t lanes = 32;
constexpr std::uint32_t block_threads = transpose_workers + lanes;
constexpr std::uint32_t blocks_a_multiprocessor = 3;
constexpr std::uint32_t stages = 3;
constexpr std::uint32_t batch_pieces = 8;  // found at once, a lane each
constexpr std::uint32_t records = 2 * batch_pieces;
static_assert(stages < batch_pieces);
// Rows are padded by a chunk where they have 128 bytes or more.
constexpr std::uint32_t stage_bytes =
    transpose_tile_bytes + transpose_tile_bytes / transpose_box_row_bytes * transpose_chunk;
constexpr std::uint32_t stage_alignment = 1024;
static_assert(stage_bytes % stage_alignment == 0);
constexpr std::uint32_t exchanged_bytes = transpose_tile_bytes + transpose_chunk;  // a word beyond the last is read
constexpr std::uint32_t shared_bytes = stages * stage_bytes + exchanged_bytes + stage_alignment;

struct block_state {
  device::tile_barrier full[stages];   // the engine's bytes, the finder, each warp of workers
  device::tile_barrier empty[stages];  // each warp of workers
  device::tile_barrier found[2];       // of two batches of records
  device::tile_barrier exchanged;      // each warp of workers
  transpose_piece pieces[records];

  __device__ void init() {
    for (device::tile_barrier& barrier : full) barrier.init(1 + transpose_worker_warps);
    for (device::tile_barrier& barrier : empty) barrier.init(transpose_worker_warps);
    for (device::tile_barrier& barrier : found) barrier.init(1);
    exchanged.init(transpose_worker_warps);
    device::fence_barrier_init();
  }
};

/// One thread finds piece `g`, which is in tensor `low` or behind it. Returns its tensor.
template <std::uint32_t ElementBytes>
__device__ std::uint64_t find_piece(const planned_work& work, std::uint64_t g, std::uint64_t low,
                                    std::uint32_t element_bytes, transpose_piece& piece) {
  const std::uint64_t index = device::find_tensor_near(work.ends, g, low, work.count - 1);
  const planned_tensor tensor = work.tensors[index];
  const transpose_tile tile = tile_of(tensor, work.rule);
  const std::uint64_t begin = index == 0 ? 0 : work.ends[index - 1];
  place(piece, tensor, tile, tile_place(tensor, tile, g - begin), element_bytes);
  lay_out<ElementBytes>(piece, tensor, tile, element_bytes);
  piece.map = tensor.way == route::tensor_map ? &work.maps[std::uint64_t{2} * tensor.tensor] : nullptr;
  return index;
}

/// Of the thread that loads through maps: the one it acquired last. The tiles of a tensor follow each other.
using held_map = cuda::std::optional<device::acquired_map>;

__device__ void load_through_map(const transpose_piece& piece, unsigned char* stage, std::uint32_t element_bytes,
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
template <std::uint32_t ElementBytes>
struct turns {
  const planned_work& work;
  block_state& state;
  unsigned char* staged;
  std::uint32_t element_bytes;
  device::tile_range range;

  __device__ std::uint64_t count() const { return range.last - range.first; }
  __device__ transpose_piece& piece(std::uint64_t n) const { return state.pieces[n % records]; }
  __device__ unsigned char* stage(std::uint64_t n) const { return staged + n % stages * stage_bytes; }
  __device__ device::tile_barrier& full(std::uint64_t n) const { return state.full[n % stages]; }
  __device__ device::tile_barrier& found(std::uint64_t n) const { return state.found[n / batch_pieces % 2]; }

  /// Until the stage of piece n has been read for the last time before it.
  __device__ void wait_empty(std::uint64_t n) const {
    if (n >= stages) state.empty[n % stages].wait(n / stages % 2 ^ 1);
  }

  /// The finder: the batch of records that begins with piece n, from the tensor of the batch before on.
  __device__ std::uint64_t find(std::uint64_t n, std::uint64_t tensor) const {
    const std::uint32_t lane = threadIdx.x % lanes;
    if (lane < batch_pieces && n + lane < count()) {
      tensor = find_piece<ElementBytes>(work, range.first + n + lane, tensor, element_bytes, piece(n + lane));
    }
    __syncwarp();
    if (lane == 0) found(n).arrive();
    return __shfl_sync(~0u, tensor, batch_pieces - 1);
  }

  __device__ void load_by_engine(std::uint64_t n, held_map& map) const {
    if (piece(n).way == route::bulk) return load_bulk(piece(n), stage(n), full(n));
    if (threadIdx.x % lanes != 0) return;
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
      const std::uint64_t next = n / batch_pieces * batch_pieces + batch_pieces;
      if (n % batch_pieces == stages - 1 && next < count()) tensor = find(next, tensor);
    }
  }

  /// Some routes are the workers' own.
  __device__ void load_by_threads(std::uint64_t n) const {
    if (n < count()) {
      if (n % batch_pieces == 0) found(n).wait(n / batch_pieces / 2 % 2);
      const route way = piece(n).way;
      if (way != route::tensor_map) wait_empty(n);
      if (way == route::bulk) load_row_ends<transpose_chunk>(piece(n), stage(n));
      if (way == route::ldgsts) load_async(piece(n), stage(n));
      if (way == route::plain) load_plain(piece(n), stage(n));
    }
    device::commit_copies();
  }

  static __device__ void arrive_warp(device::tile_barrier& barrier) {
    __syncwarp();
    if (threadIdx.x % lanes == 0) barrier.arrive();
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
      arrive_warp(full(n));
      full(n).wait(n / stages % 2);
      store_transposed<ElementBytes>(piece(n), stage(n), staged + stages * stage_bytes, element_bytes, meet);
      if (piece(n).way != route::tensor_map) device::fence_shared_writes();
      arrive_warp(state.empty[n % stages]);
    }
  }
};

/// `ElementBytes`: 1, 2, 4, 8, 16; or 0 for any, `element_bytes` then.
template <std::uint32_t ElementBytes>
__global__ void __launch_bounds__(block_threads, blocks_a_multiprocessor)
    transpose_kernel(const __grid_constant__ planned_work work, std::uint32_t element_bytes) {
  __shared__ block_state state;
  extern __shared__ unsigned char dynamic[];
  cudaGridDependencySynchronize();
  const device::tile_range range = device::tile_shares(work.ends[work.count - 1], gridDim.x).run(blockIdx.x);
  if (range.first == range.last) return;
  if (threadIdx.x == 0) state.init();
  __syncthreads();
  const auto start = static_cast<std::uint32_t>(__cvta_generic_to_shared(dynamic));
  const std::uint32_t slack = (stage_alignment - start % stage_alignment) % stage_alignment;
  const turns<ElementBytes> turns_of_block{work, state, dynamic + slack,
                                           ElementBytes == 0 ? element_bytes : ElementBytes, range};
  if (threadIdx.x < transpose_workers) {
    turns_of_block.run_worker();
  } else {
    turns_of_block.run_finder();
  }
}

template <std::uint32_t ElementBytes>
cudaError_t launch(const planned_work& work, std::uint32_t element_bytes, const device_shape& device,
                   cudaStream_t stream) {
  const launch_size size{device.multiprocessors * blocks_a_multiprocessor, block_threads, shared_bytes};
  return launch_behind(transpose_kernel<ElementBytes>, size, stream, work, element_bytes);
}

}  // namespace

piece_rule transpose_pieces(std::uint32_t element_bytes, std::uint32_t rank) {
  piece_rule rule = transpose_rule(element_bytes);
  rule.map_rank = rank;
  return rule;
}

cudaError_t launch_transpose(const planned_work& work, std::uint32_t element_bytes, const device_shape& device,
                             cudaStream_t stream) {
  switch (element_bytes) {
    case 1: return launch<1>(work, element_bytes, device, stream);
    case 2: return launch<2>(work, element_bytes, device, stream);
    case 4: return launch<4>(work, element_bytes, device, stream);
    case 8: return launch<8>(work, element_bytes, device, stream);
    case 16: return launch<16>(work, element_bytes, device, stream);
    default: return launch<0>(work, element_bytes, device, stream);
  }
}

}  // namespace tmap::kernels
