// SPDX-License-Identifier: Apache-2.0
// Exchanges dims 0 and 1 of the planned tensors of a batch. A persistent block takes a range of consecutive tiles and
// keeps as many of them on their way in as it has stages but one; each is turned while it goes from shared to global
// memory.
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
constexpr std::uint32_t block_threads = 256;
constexpr std::uint32_t blocks_a_multiprocessor = 3;
constexpr std::uint32_t stages = 3;
constexpr std::uint32_t records = stages + 1;  // one is found while all stages are in use
// Rows are padded by a chunk, of which a tile has at most 128 (tile_of).
constexpr std::uint32_t stage_bytes = transpose_tile_bytes + 128 * transpose_chunk;
constexpr std::uint32_t stage_alignment = 1024;
static_assert(stage_bytes % stage_alignment == 0);
constexpr std::uint32_t exchanged_bytes = transpose_tile_bytes + transpose_chunk;  // a word beyond the last is read
constexpr std::uint32_t shared_bytes = stages * stage_bytes + exchanged_bytes + stage_alignment;

/// What the first warp knows of the tensor that it cuts into pieces.
struct tensor_walk {
  planned_tensor tensor;
  transpose_tile tile;
  std::uint64_t index;
  std::uint64_t begin;  // pieces of all tensors before it
  std::uint64_t end;
};

struct block_state {
  device::tile_barrier full[stages];
  transpose_piece pieces[records];
  tensor_walk walk;
};

/// The first warp goes to the tensor of piece `g`, at or behind the one it is at.
__device__ void enter_tensor(const planned_work& work, tensor_walk& walk, std::uint64_t g, bool is_first) {
  const std::uint64_t last = work.count - 1;
  const std::uint64_t index = is_first ? device::find_tensor_warp(work.ends, g, 0, last)
                                       : device::find_tensor_near_warp(work.ends, g, walk.index + 1, last);
  __syncwarp();
  const auto* const from = reinterpret_cast<const uint4*>(&work.tensors[index]);
  if (threadIdx.x < sizeof(planned_tensor) / sizeof(uint4)) {
    reinterpret_cast<uint4*>(&walk.tensor)[threadIdx.x] = from[threadIdx.x];
  }
  __syncwarp();
  if (threadIdx.x == 0) {
    walk.tile = tile_of(walk.tensor, work.rule);
    walk.index = index;
    walk.begin = index == 0 ? 0 : work.ends[index - 1];
    walk.end = work.ends[index];
  }
  __syncwarp();
}

/// The first warp finds piece `g` and writes its record.
template <std::uint32_t ElementBytes>
__device__ __noinline__ void find_piece(const planned_work& work, block_state& state, std::uint64_t g, bool is_first,
                                        transpose_piece& piece, std::uint32_t element_bytes) {
  if (is_first || g >= state.walk.end) enter_tensor(work, state.walk, g, is_first);
  if (threadIdx.x != 0) return;
  const planned_tensor& tensor = state.walk.tensor;
  place(piece, tensor, state.walk.tile, g - state.walk.begin, element_bytes);
  lay_out<ElementBytes>(piece, tensor, state.walk.tile, element_bytes);
  piece.map = tensor.way == route::tensor_map ? &work.maps[std::uint64_t{2} * tensor.tensor] : nullptr;
}

/// The first thread's: the map it acquired last. The tiles of a tensor follow each other.
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

/// All threads.
__device__ void load_piece(const transpose_piece& piece, unsigned char* stage, std::uint32_t element_bytes,
                           std::uint32_t rank, held_map& map, device::tile_barrier& full) {
  if (piece.way == route::bulk) return load_bulk(piece, stage, full);
  if (piece.way == route::tensor_map && threadIdx.x == 0) {
    return load_through_map(piece, stage, element_bytes, rank, map, full);
  }
  if (piece.way == route::ldgsts) load_async(piece, stage);
  if (piece.way == route::plain) load_plain(piece, stage);
  device::arrive_after_copies(full);
}

template <std::uint32_t ElementBytes>
struct transposer {
  const planned_work& work;
  block_state& state;
  unsigned char* staged;
  std::uint32_t element_bytes;
  held_map map{};

  __device__ transpose_piece& piece(std::uint64_t n) const { return state.pieces[n % records]; }
  __device__ unsigned char* stage(std::uint64_t n) const { return staged + n % stages * stage_bytes; }
  __device__ device::tile_barrier& full(std::uint64_t n) const { return state.full[n % stages]; }

  __device__ void find(device::tile_range range, std::uint64_t n) {
    if (threadIdx.x >= lanes || range.first + n >= range.last) return;
    find_piece<ElementBytes>(work, state, range.first + n, n == 0, piece(n), element_bytes);
  }
  __device__ void load(std::uint64_t n) {
    load_piece(piece(n), stage(n), element_bytes, work.rule.map_rank, map, full(n));
  }

  /// Piece n is stored while the next ones are loaded and the one behind them is found. A stage is loaded again behind
  /// the barrier that ends the turn that read it.
  __device__ void run(device::tile_range range) {
    const std::uint64_t count = range.last - range.first;
    for (std::uint64_t n = 0; n < stages; ++n) find(range, n);
    __syncthreads();
    for (std::uint64_t n = 0; n + 1 < stages && n < count; ++n) load(n);
    for (std::uint64_t n = 0; n < count; ++n) {
      if (n + stages - 1 < count) load(n + stages - 1);
      find(range, n + stages);
      full(n).wait(n / stages % 2);
      store_transposed<ElementBytes>(piece(n), stage(n), staged + stages * stage_bytes, element_bytes);
      device::fence_shared_writes();
      __syncthreads();
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
  if (threadIdx.x == 0) {
    for (device::tile_barrier& full : state.full) full.init(block_threads);
    device::fence_barrier_init();
  }
  const auto start = static_cast<std::uint32_t>(__cvta_generic_to_shared(dynamic));
  const std::uint32_t slack = (stage_alignment - start % stage_alignment) % stage_alignment;
  transposer<ElementBytes> work_of_block{work, state, dynamic + slack,
                                         ElementBytes == 0 ? element_bytes : ElementBytes};
  work_of_block.run(range);
}

template <std::uint32_t ElementBytes>
cudaError_t launch(const planned_work& work, std::uint32_t element_bytes, const device_shape& device,
                   cudaStream_t stream) {
  const cudaError_t raised = cudaFuncSetAttribute(
      transpose_kernel<ElementBytes>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
  if (raised != cudaSuccess) return raised;
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = device.multiprocessors * blocks_a_multiprocessor;
  config.blockDim = block_threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, transpose_kernel<ElementBytes>, work, element_bytes);
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
