// SPDX-License-Identifier: Apache-2.0
#pragma once

// The product kernel. One block on each multiprocessor takes tiles of all groups from a queue. One
// warp finds the group and place of the tile. Another loads the tile's A and B through tensor maps
// into a ring of stages. Two warpgroups multiply, each a half of the tile, and store their halves
// through the group's map of C, which ends where the group ends. The ring runs on from tile to tile
// and from group to group: while the last sums are rounded and stored, the next tile is being
// loaded.
//
// In pairs, two blocks form a cluster and take two tiles next to or above each other. Of the
// operand that both need, each block loads half, into both. Their rings advance in step: a stage is
// empty when the consumers of both blocks have left it.
//
// Where A's rows are gathered by index, the two other warps of the loading warpgroup load them
// (tile_gather.cuh), each block all that it needs, and maps load B alone. Where an index names C's
// rows, the consumers store them without a map (results/indexed_rows.cuh).

#include <tmap/device/acquire.cuh>
#include <tmap/device/cluster_queue.cuh>
#include <tmap/device/ptx_wgmma.cuh>
#include <tmap/device/remote_store.cuh>
#include <tmap/device/tensor_search.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/device/work_queue.cuh>

#include <cuda/ptx>

#include <cstdint>

#include "kernels/gemm/await_rows.cuh"
#include "kernels/gemm/block_factors.cuh"
#include "kernels/gemm/epilogue.cuh"
#include "kernels/gemm/gemm_group.hpp"
#include "kernels/gemm/line_factors.cuh"
#include "kernels/gemm/product_launch.hpp"
#include "kernels/gemm/tile_gather.cuh"
#include "kernels/gemm/tile_loads.cuh"
#include "kernels/gemm/tile_math.hpp"
#include "kernels/gemm/tile_products.cuh"
#include "kernels/gemm/tile_ring.cuh"

namespace tmap::kernels {

inline constexpr std::uint32_t product_threads = (consumers + 1) * warpgroup_threads;
inline constexpr std::uint32_t consumer_warps = consumers * warpgroup_threads / 32;
/// The rows of blocks that are walked together, so that they share the part of B that L2 holds.
inline constexpr std::uint32_t band_blocks = 16;

/// The kind of product that a kernel is compiled for. An operand's rows run along K, or across it.
struct product_traits {
  gemm::operand_type type;
  bool a_is_across{};
  bool b_is_across{};
  promotion sums{};
  bool gathers{};   ///< A's rows are named by an index
  bool scatters{};  ///< C's rows are named by an index
};

inline constexpr std::uint32_t alignment_of_swizzle = 1024;

/// How a kernel cuts its products into tiles.
struct tile_traits {
  std::uint32_t tile_m;
  std::uint32_t tile_n;
  std::uint32_t stages;
  bool is_paired{};
};

/// One compiled kernel. Each group has a map of A.
template <product_traits Product, tile_traits Tile>
struct product_config {
  static constexpr gemm::operand_type type = Product.type;
  static constexpr bool a_is_across = Product.a_is_across;
  static constexpr bool b_is_across = Product.b_is_across;
  static constexpr bool promotes = Product.sums != promotion::none;
  static constexpr bool has_block_scales = Product.sums == promotion::scaled;
  static constexpr bool has_line_scales = Product.sums == promotion::lines;
  static constexpr bool has_scales = has_block_scales || has_line_scales;
  static constexpr bool gathers = Product.gathers;
  static constexpr bool scatters = Product.scatters;
  /// Only sums over rows have scales of lines, and they have no epilogue.
  static constexpr bool has_epilogue = !has_line_scales;
  static constexpr std::uint32_t tile_m = Tile.tile_m;
  static constexpr std::uint32_t tile_n = Tile.tile_n;
  static constexpr std::uint32_t stages = Tile.stages;
  static constexpr bool is_paired = Tile.is_paired;
  static constexpr std::uint32_t cluster_blocks = is_paired ? 2 : 1;
  /// Consumers halve the rows of a tile, or its columns if it has only 64 rows.
  static constexpr bool halves_rows = tile_m == consumers * piece_lines;
  static constexpr std::uint32_t share_n = halves_rows ? tile_n : tile_n / consumers;
  static constexpr std::uint32_t sums = share_n / 2;
  static constexpr std::uint32_t tile_k = swizzle_bytes / gemm::operand_bytes(type);
  static constexpr std::uint32_t a_bytes = tile_m * swizzle_bytes;
  static constexpr std::uint32_t b_bytes = tile_n * swizzle_bytes;
  /// The rows of A of one load. In pairs each block may load half of them.
  static constexpr std::uint32_t a_piece = a_is_across || is_paired ? piece_lines : tile_m;
  static constexpr std::uint32_t stage_bytes = a_bytes + b_bytes;
  /// The bytes of a stage that maps load.
  static constexpr std::uint32_t mapped_bytes = gathers ? b_bytes : stage_bytes;
  static constexpr std::uint32_t shared_bytes =
      stages * stage_bytes + consumer_warps * staged_results * strip_bytes + alignment_of_swizzle;
  static_assert(tile_m == piece_lines || halves_rows);
  static_assert(share_n == 128 || share_n == 256);
  static_assert(!is_paired || halves_rows);
  static_assert(!gathers || !a_is_across);
  /// Whether stages are multiplied four at a time, with addresses that are known when this is
  /// compiled.
  static constexpr bool has_fixed_ring = promotes && is_paired && !gathers;
  /// The registers of a thread of a consumer, and of the other warps. Sums, partial sums and
  /// factors of a wide tile need 240, or the turns of four stages spill. Gathering warps leave them
  /// 232, with which nothing spills between the products of two stages.
  static constexpr int consumer_registers = has_scales && is_paired ? (gathers ? 232 : 240)
                                            : has_fixed_ring        ? 232
                                                                    : 224;
  static constexpr int producer_registers = 504 - consumers * consumer_registers;
  static_assert(!has_fixed_ring || stages == fixed_stages);
};

/// Returns the queue of the tiles, or pairs of them, that this block takes. Tiles that run at the
/// same time follow each other, even if their costs differ, and find their common data in L2.
template <class Config>
__device__ auto tile_queue(const gemm_shape& shape, device::cluster_mailbox& mailbox) {
  // Below 2^31, as memory holds C.
  const auto tiles = static_cast<std::uint32_t>(shape.scratch.tile_ends[shape.groups - 1]);
  if constexpr (Config::is_paired) {
    return device::cluster_queue(mailbox, shape.scratch.taken, tiles, 0, device::asks::late);
  } else {
    return device::work_queue(shape.scratch.taken, tiles, blockIdx.x, gridDim.x, device::asks::late);
  }
}

/// Reads tile `tile`, which belongs to `group` or to one after it. Of a pair it reads this block's
/// tile. One warp calls it, all lanes with the same arguments.
template <class Config>
__device__ tile_note read_tile(const gemm_shape& shape, std::uint32_t tile, std::uint32_t& group) {
  const std::uint64_t* const ends = shape.scratch.tile_ends;
  group = static_cast<std::uint32_t>(device::find_tensor_near_warp(ends, tile, group, shape.groups - 1));
  tile_note note;
  note.record = shape.scratch.groups[group];
  note.group = group;
  note.columns = note.record.n / shape.per_result;
  note.k_blocks = (note.record.k + Config::tile_k - 1) / Config::tile_k;
  const std::uint32_t result_n = Config::tile_n / shape.per_result;
  const std::uint64_t in_group = tile - (group == 0 ? 0 : ends[group - 1]);
  const std::uint32_t blocks_m = (note.record.m + Config::tile_m - 1) / Config::tile_m;
  const std::uint32_t blocks_n = (note.columns + result_n - 1) / result_n;
  tile_place at;
  if constexpr (Config::is_paired) {
    const bool last_is_low = note.record.m % Config::tile_m - 1 < Config::tile_m / consumers;
    const tile_pair pair = place_pair(in_group, blocks_m, blocks_n, band_blocks, last_is_low);
    at = pair.of_block(device::block_of_cluster());
    note.is_beside = pair.is_beside;
  } else {
    at = place_tile(in_group, blocks_m, blocks_n, band_blocks);
    note.is_beside = false;
  }
  note.row = at.block_m * Config::tile_m;
  note.column = at.block_n * result_n;
  return note;
}

/// Finds tiles. One warp calls it. It asks for a tile when the loading warp nears the end of the
/// one before. If this block is late, no other block can take a tile that this one took early. Such
/// a tile also begins long after its neighbours, when L2 no longer holds the data that they share.
template <class Config>
__device__ void find_tiles(const gemm_shape& shape, device::cluster_mailbox& mailbox, tile_notes& notes,
                           std::uint32_t* rows) {
  const bool writes = threadIdx.x % 32 == 0;
  device::ring_position at(noted_tiles);
  std::uint32_t parity = 0;
  std::uint32_t group = 0;
  auto queue = tile_queue<Config>(shape, mailbox);
  for (std::uint32_t tile = queue.take_warp(); tile != device::no_item; tile = queue.take_warp()) {
    const tile_note note = read_tile<Config>(shape, tile, group);
    if constexpr (Config::gathers) list_rows<Config>(shape.a_rows, note, rows);
    if (writes) pass_on(notes, at, note);
    wait_for(notes.wanted, parity);
    parity ^= 1;
    __syncwarp();
  }
  if (writes) pass_on(notes, at, {});
}

/// Loads tiles. One thread calls it. It runs a ring ahead of the products, so that acquiring
/// another group's maps does not delay them.
template <class Config>
__device__ void load_tiles(const product_arguments& arguments, tile_notes& notes,
                           device::ring_barriers<Config::stages>& barriers, unsigned char* ring) {
  const gemm_shape& shape = arguments.shape;
  device::acquired_map b = device::parameter_map(arguments.b);
  device::acquired_map a = b;
  std::uint32_t acquired = ~0u;
  device::ring_position at(Config::stages);
  for (device::ring_position note_at(noted_tiles);; note_at.advance()) {
    wait_for(notes.barriers.full[note_at.stage()], note_at.parity());
    const tile_note note = notes.notes[note_at.stage()];
    if (note.columns == 0) return;
    notes.barriers.empty[note_at.stage()].arrive();
    if (note.k_blocks == 0) notes.wanted.arrive();
    if (acquired != note.group && note.k_blocks != 0) {
      acquired = note.group;
      if constexpr (!Config::gathers) {
        await_rows(shape.pending, acquired);
        a = device::acquire(shape.scratch.a + acquired);
      }
      if (shape.has_own_b) b = device::acquire(shape.scratch.b + acquired);
    }
    constexpr common_operand beside = Config::gathers ? common_operand::none : common_operand::a;
    if constexpr (!Config::is_paired) {
      load_tile_stages<Config, common_operand::none>(note, shape, a, b, notes.wanted, barriers, ring, at);
    } else if (note.is_beside) {
      load_tile_stages<Config, beside>(note, shape, a, b, notes.wanted, barriers, ring, at);
    } else {
      load_tile_stages<Config, common_operand::b>(note, shape, a, b, notes.wanted, barriers, ring, at);
    }
  }
}

/// Multiplies half a tile and stores it. One warpgroup calls it.
template <class Config>
__device__ void make_half_tile(const tile_note& note, const gemm_shape& shape,
                               device::ring_barriers<Config::stages>& barriers, std::uint32_t ring,
                               device::ring_position& at, result_store<Config::scatters>& store) {
  const std::uint32_t consumer = threadIdx.x / warpgroup_threads;
  const b_columns columns{Config::share_n, shape.per_result, shape.values};
  const std::uint32_t row = note.row + (Config::halves_rows ? consumer * piece_lines : 0);
  const bool has_columns = !Config::is_paired || note.column < note.columns;
  if (row >= note.record.m || !has_columns) {
    pass_tile<Config>(note.k_blocks, barriers, at);
    return;
  }
  float sums[Config::sums];
#pragma unroll
  for (float& sum : sums) sum = 0;
  if constexpr (Config::has_line_scales) {
    // Sums over rows may be empty.
    if (note.k_blocks != 0) {
      multiply_tile_promoted<Config>(sums, line_factors_of<Config>(shape, note, row), note.k_blocks, barriers, ring,
                                     at);
    }
  } else if constexpr (Config::promotes) {
    multiply_tile_promoted<Config>(sums, factors_of<Config>(shape, note, row), note.k_blocks, barriers, ring, at);
  } else {
    multiply_tile<Config>(sums, note.record.k, barriers, ring, at);
  }
  const std::uint32_t column = note.column + (Config::halves_rows ? 0 : consumer * columns.result_share());
  store.template write<Config::type, Config::has_epilogue>(sums, shape, note.record,
                                                           {note.group, row, column, note.columns});
}

template <class Config>
__device__ void multiply_tiles(const product_arguments& arguments, tile_notes& notes,
                               device::ring_barriers<Config::stages>& barriers, unsigned char* ring) {
  const auto ring_address = static_cast<std::uint32_t>(__cvta_generic_to_shared(ring));
  unsigned char* const staging = ring + Config::stages * Config::stage_bytes;
  unsigned char* const tiles = staging + threadIdx.x / 32 * staged_results * strip_bytes;
  result_store<Config::scatters> store(arguments.shape, arguments.b, tiles);
  // A pointer in registers. The compiler would compute the address of known shared memory again at
  // each wait.
  device::ring_barriers<Config::stages>* kept = &barriers;
  device::ptx::keep_word(kept);
  device::ring_position at(Config::stages);
  for (device::ring_position note_at(noted_tiles);; note_at.advance()) {
    wait_for(notes.barriers.full[note_at.stage()], note_at.parity());
    const tile_note& note = notes.notes[note_at.stage()];
    if (note.columns == 0) break;
    make_half_tile<Config>(note, arguments.shape, *kept, ring_address, at, store);
    __syncwarp();
    if (threadIdx.x % 32 == 0) notes.barriers.empty[note_at.stage()].arrive();
  }
  store.finish();
}

template <class Config>
__device__ void init_barriers(device::ring_barriers<Config::stages>& barriers, tile_notes& notes) {
  constexpr std::uint32_t gathering = Config::gathers ? gather_warps : 0;
  constexpr std::uint32_t readers = consumer_warps * Config::cluster_blocks;
  if constexpr (Config::gathers) {
    for (std::uint32_t i = 0; i < Config::stages; ++i) {
      barriers.full[i].init(1 + gathering);
      barriers.empty[i].init(readers);
    }
  } else {
    barriers.init(Config::stages, readers);
  }
  notes.barriers.init(noted_tiles, consumer_warps + 1 + gathering);
  notes.wanted.init(1 + gathering);
}

/// Synchronises the blocks whose rings advance in step.
template <class Config>
__device__ void sync_blocks() {
  if constexpr (Config::is_paired) {
    device::sync_cluster();
  } else {
    __syncthreads();
  }
}

template <class Config>
__global__ void __launch_bounds__(product_threads, 1)
    product_kernel(const __grid_constant__ product_arguments arguments) {
  extern __shared__ unsigned char memory[];
  __shared__ device::ring_barriers<Config::stages> barriers;
  __shared__ tile_notes notes;
  __shared__ device::cluster_mailbox mailbox;
  __shared__ std::uint32_t rows[Config::gathers ? Config::tile_m : 1];
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
  unsigned char* const ring = memory + (alignment_of_swizzle - address % alignment_of_swizzle) % alignment_of_swizzle;
  if (threadIdx.x == 0) {
    init_barriers<Config>(barriers, notes);
    if (Config::is_paired) mailbox.init(1);
    device::fence_barrier_init();
  }
  sync_blocks<Config>();
  // Nothing above reads or writes memory that another kernel writes.
  cudaGridDependencySynchronize();
  if (threadIdx.x >= consumers * warpgroup_threads) {
    device::ptx::setmaxnreg_dec<Config::producer_registers>();
    const std::uint32_t warp = threadIdx.x / 32 - consumer_warps;
    if (warp == 0) find_tiles<Config>(arguments.shape, mailbox, notes, rows);
    if (warp == 1 && device::ptx::elect_one()) load_tiles<Config>(arguments, notes, barriers, ring);
    if constexpr (Config::gathers) {
      if (warp >= 2) gather_tiles<Config>(arguments.shape.a_rows, notes, rows, barriers, ring);
    }
  } else {
    device::ptx::setmaxnreg_inc<Config::consumer_registers>();
    multiply_tiles<Config>(arguments, notes, barriers, ring);
  }
  // A block's barriers must live until the other block has left its last stage.
  if constexpr (Config::is_paired) device::sync_cluster();
}

}  // namespace tmap::kernels
