// SPDX-License-Identifier: Apache-2.0
#pragma once

// The product kernel: one block on each multiprocessor takes every gridDim.x-th tile of all groups. One warp loads
// tiles of A and B through tensor maps into a ring of stages, two warpgroups multiply, each a half of the tile, and
// store their halves through the group's map of C, which ends where the group ends. The ring runs on from tile to tile
// and from group to group: while the last sums are rounded and stored, the next tile is on its way.

#include <tmap/device/acquire.cuh>
#include <tmap/device/ptx_wgmma.cuh>
#include <tmap/device/tensor_search.cuh>
#include <tmap/device/tile_copy.cuh>

#include <cstdint>

#include "kernels/gemm/epilogue.cuh"
#include "kernels/gemm/gemm_group.hpp"
#include "kernels/gemm/tile_math.hpp"

namespace tmap::kernels {

inline constexpr std::uint32_t consumers = 2;
inline constexpr std::uint32_t warpgroup_threads = 128;
inline constexpr std::uint32_t product_threads = (consumers + 1) * warpgroup_threads;
inline constexpr std::uint32_t consumer_warps = consumers * warpgroup_threads / 32;
inline constexpr int producer_registers = 40;
inline constexpr int consumer_registers = 232;

/// One compiled kernel. Operands are `along` K (their rows are it) or across. With own inputs each group has maps of A
/// and B; else all share one of each, and B has the group as its third dim.
template <gemm::operand_type Type, std::uint32_t TileM, std::uint32_t TileN, std::uint32_t Stages, bool AIsAcross,
          bool BIsAcross, bool HasOwnInputs>
struct product_config {
  static constexpr gemm::operand_type type = Type;
  static constexpr std::uint32_t tile_m = TileM;
  static constexpr std::uint32_t tile_n = TileN;
  static constexpr std::uint32_t stages = Stages;
  static constexpr bool a_is_across = AIsAcross;
  static constexpr bool b_is_across = BIsAcross;
  static constexpr bool has_own_inputs = HasOwnInputs;
  /// Consumers halve the rows, or of tiles of 64 the columns.
  static constexpr bool halves_rows = TileM == consumers * piece_lines;
  static constexpr std::uint32_t share_n = halves_rows ? TileN : TileN / consumers;
  static constexpr std::uint32_t sums = share_n / 2;
  static constexpr std::uint32_t tile_k = swizzle_bytes / gemm::operand_bytes(Type);
  static constexpr std::uint32_t a_bytes = TileM * swizzle_bytes;
  static constexpr std::uint32_t b_bytes = TileN * swizzle_bytes;
  static constexpr std::uint32_t stage_bytes = a_bytes + b_bytes;
  static constexpr std::uint32_t shared_bytes =
      Stages * stage_bytes + consumers * staged_results * piece_bytes + alignment_of_swizzle;
  static_assert(TileM == piece_lines || halves_rows);
  static_assert(share_n == 128 || share_n == 256);
};

struct product_arguments {
  tensor_map a;  ///< unless each group has its own
  tensor_map b;
  gemm_shape shape;
};

/// The tiles of this block, one after the other; one for each warp, all lanes the same.
template <class Config>
class tile_sequence {
 public:
  __device__ explicit tile_sequence(const gemm_shape& shape)
      : shape_(shape), total_(shape.scratch.tile_ends[shape.groups - 1]), tile_(blockIdx.x) {}

  __device__ bool has_tile() const { return tile_ < total_; }

  /// Reads the tile that the sequence is at.
  __device__ void read() {
    const std::uint64_t* const ends = shape_.scratch.tile_ends;
    group_ = static_cast<std::uint32_t>(device::find_tensor_near_warp(ends, tile_, group_, shape_.groups - 1));
    record_ = &shape_.scratch.groups[group_];
    const std::uint32_t columns = shape_.values != 0 ? shape_.values : record_->n;
    const std::uint32_t result_n = shape_.values != 0 ? Config::tile_n / 2 : Config::tile_n;
    const std::uint64_t first = group_ == 0 ? 0 : ends[group_ - 1];
    const std::uint32_t blocks_m = (record_->m + Config::tile_m - 1) / Config::tile_m;
    const std::uint32_t blocks_n = (columns + result_n - 1) / result_n;
    const tile_place at = place_tile(tile_ - first, blocks_m, blocks_n, shape_.band);
    row_ = at.block_m * Config::tile_m;
    column_ = at.block_n * result_n;
    columns_ = columns;
  }
  __device__ void advance() { tile_ += gridDim.x; }

  __device__ std::uint32_t group() const { return group_; }
  __device__ const gemm_group& record() const { return *record_; }
  __device__ std::uint32_t row() const { return row_; }          ///< of C, in the group
  __device__ std::uint32_t column() const { return column_; }    ///< of C
  __device__ std::uint32_t columns() const { return columns_; }  ///< that C has
  __device__ std::uint32_t k_blocks() const { return (record_->k + Config::tile_k - 1) / Config::tile_k; }

 private:
  const gemm_shape& shape_;
  std::uint64_t total_;
  std::uint64_t tile_;
  std::uint32_t group_{};
  const gemm_group* record_{};
  std::uint32_t row_{};
  std::uint32_t column_{};
  std::uint32_t columns_{};
};

/// Where a role is in the ring.
template <std::uint32_t Stages>
struct ring_position {
  std::uint32_t stage{};
  std::uint32_t parity{};
  __device__ void advance() {
    if (++stage != Stages) return;
    stage = 0;
    parity ^= 1;
  }
};

template <std::uint32_t Stages>
struct ring_barriers {
  device::tile_barrier full[Stages];
  device::tile_barrier empty[Stages];
};

template <class Config>
__device__ void load_a(unsigned char* to, device::acquired_map map, std::uint32_t row, std::uint32_t k,
                       device::tile_barrier& full) {
  const auto at_row = static_cast<std::int32_t>(row);
  const auto at_k = static_cast<std::int32_t>(k);
  if constexpr (Config::a_is_across) {
#pragma unroll
    for (std::uint32_t at = 0; at < Config::tile_m; at += piece_lines) {
      device::load_tile(to + at * swizzle_bytes, map, {at_row + static_cast<std::int32_t>(at), at_k}, full);
    }
  } else {
    device::load_tile(to, map, {at_k, at_row}, full);
  }
}

template <class Config>
__device__ void load_b(unsigned char* to, device::acquired_map map, std::uint32_t column, std::uint32_t k,
                       std::uint32_t group, device::tile_barrier& full) {
  const auto inner = static_cast<std::int32_t>(Config::b_is_across ? column : k);
  const auto outer = static_cast<std::int32_t>(Config::b_is_across ? k : column);
  if constexpr (Config::has_own_inputs) {
    device::load_tile(to, map, {inner, outer}, full);
  } else {
    device::load_tile(to, map, {inner, outer, static_cast<std::int32_t>(group)}, full);
  }
}

/// By one warp, of which one lane waits and loads. It runs a ring ahead of the products, so that the acquire of another
/// group's maps costs them nothing.
template <class Config>
__device__ void load_tiles(const product_arguments& arguments, ring_barriers<Config::stages>& barriers,
                           unsigned char* ring) {
  const gemm_shape& shape = arguments.shape;
  const b_columns columns{Config::share_n, shape.values};
  const std::uint32_t piece_columns = Config::tile_n / shape.b_pieces;
  device::acquired_map a = device::parameter_map(arguments.a);
  device::acquired_map b = device::parameter_map(arguments.b);
  std::uint32_t acquired = ~0u;
  ring_position<Config::stages> at;
  for (tile_sequence<Config> tiles(shape); tiles.has_tile(); tiles.advance()) {
    tiles.read();
    const std::uint32_t k_blocks = tiles.k_blocks();
    if (threadIdx.x % 32 == 0 && k_blocks != 0) {
      if (Config::has_own_inputs && acquired != tiles.group()) {
        acquired = tiles.group();
        a = device::acquire(shape.scratch.a + acquired);
        b = device::acquire(shape.scratch.b + acquired);
      }
      const auto first_row = Config::has_own_inputs ? 0 : static_cast<std::uint32_t>(tiles.record().first_row);
      for (std::uint32_t k = 0; k < k_blocks * Config::tile_k; k += Config::tile_k, at.advance()) {
        unsigned char* const stage = ring + at.stage * Config::stage_bytes;
        device::tile_barrier& full = barriers.full[at.stage];
        barriers.empty[at.stage].wait(at.parity ^ 1);
        full.arrive_expect(Config::stage_bytes);
        load_a<Config>(stage, a, first_row + tiles.row(), k, full);
        for (std::uint32_t column = 0; column < Config::tile_n; column += piece_columns) {
          load_b<Config>(stage + Config::a_bytes + column * swizzle_bytes, b, columns.source(tiles.column(), column), k,
                         tiles.group(), full);
        }
      }
    }
    __syncwarp();
  }
}

template <class Config>
__device__ void multiply_step(float (&sums)[Config::sums], std::uint64_t a, std::uint64_t b, std::uint32_t keeps) {
  namespace ptx = device::ptx;
  if constexpr (Config::type == gemm::operand_type::bf16) {
    ptx::wgmma_bf16<Config::a_is_across, Config::b_is_across>(sums, a, b, keeps);
  } else if constexpr (Config::type == gemm::operand_type::f16) {
    ptx::wgmma_f16<Config::a_is_across, Config::b_is_across>(sums, a, b, keeps);
  } else {
    ptx::wgmma_e4m3(sums, a, b, keeps);
  }
}

template <std::uint32_t Count>
__device__ void keep_sums(float (&sums)[Count]) {
#pragma unroll
  for (std::uint32_t i = 0; i < Count; ++i) device::ptx::keep_sum(sums[i]);
}

/// The sums of one tile. A stage is free again once the step behind it has been given to the tensor cores.
template <class Config>
__device__ void multiply_tile(float (&sums)[Config::sums], std::uint32_t k_blocks,
                              ring_barriers<Config::stages>& barriers, std::uint32_t ring,
                              ring_position<Config::stages>& at) {
  namespace ptx = device::ptx;
  const std::uint32_t consumer = threadIdx.x / warpgroup_threads;
  const std::uint32_t a_begin = ring + (Config::halves_rows ? consumer * piece_bytes : 0);
  const std::uint32_t b_begin =
      ring + Config::a_bytes + (Config::halves_rows ? 0 : consumer * Config::share_n * swizzle_bytes);
  const bool frees = threadIdx.x % 32 == 0;
  std::uint32_t used = 0;
  keep_sums(sums);
  for (std::uint32_t block = 0; block < k_blocks; ++block) {
    const std::uint32_t begin = at.stage * Config::stage_bytes;
    const std::uint64_t a = operand_descriptor(a_begin + begin, Config::a_is_across);
    const std::uint64_t b = operand_descriptor(b_begin + begin, Config::b_is_across);
    barriers.full[at.stage].wait(at.parity);
    ptx::wgmma_fence();
#pragma unroll
    for (std::uint32_t step = 0; step < swizzle_bytes / step_bytes; ++step) {
      multiply_step<Config>(sums, a + step * descriptor_step(Config::a_is_across),
                            b + step * descriptor_step(Config::b_is_across), block + step);
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<1>();
    if (frees && block != 0) barriers.empty[used].arrive();
    used = at.stage;
    at.advance();
  }
  ptx::wgmma_wait_group<0>();
  keep_sums(sums);
  if (frees && k_blocks != 0) barriers.empty[used].arrive();
}

/// A consumer whose half of the tile lies behind the group's last row lets the stages pass.
template <class Config>
__device__ void pass_tile(std::uint32_t k_blocks, ring_barriers<Config::stages>& barriers,
                          ring_position<Config::stages>& at) {
  for (std::uint32_t block = 0; block < k_blocks; ++block, at.advance()) {
    barriers.full[at.stage].wait(at.parity);
    __syncwarp();
    if (threadIdx.x % 32 == 0) barriers.empty[at.stage].arrive();
  }
}

/// By one warpgroup.
template <class Config>
__device__ void multiply_tiles(const product_arguments& arguments, ring_barriers<Config::stages>& barriers,
                               unsigned char* ring, unsigned char* staging) {
  const std::uint32_t consumer = threadIdx.x / warpgroup_threads;
  const auto ring_address = static_cast<std::uint32_t>(__cvta_generic_to_shared(ring));
  const b_columns columns{Config::share_n, arguments.shape.values};
  result_store store(arguments.a, staging + consumer * staged_results * piece_bytes, consumer);
  ring_position<Config::stages> at;
  for (tile_sequence<Config> tiles(arguments.shape); tiles.has_tile(); tiles.advance()) {
    tiles.read();
    const std::uint32_t k_blocks = tiles.k_blocks();
    const std::uint32_t row = tiles.row() + (Config::halves_rows ? consumer * piece_lines : 0);
    if (row >= tiles.record().m) {
      pass_tile<Config>(k_blocks, barriers, at);
      continue;
    }
    float sums[Config::sums];
#pragma unroll
    for (float& sum : sums) sum = 0;
    multiply_tile<Config>(sums, k_blocks, barriers, ring_address, at);
    const std::uint32_t column = tiles.column() + (Config::halves_rows ? 0 : consumer * columns.result_share());
    const result_place place{tiles.group(), row, column, tiles.columns()};
    store.template write<Config::type>(sums, arguments.shape, tiles.record(), place);
  }
  store.finish();
}

template <class Config>
__global__ void __launch_bounds__(product_threads, 1)
    product_kernel(const __grid_constant__ product_arguments arguments) {
  extern __shared__ unsigned char memory[];
  __shared__ ring_barriers<Config::stages> barriers;
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
  unsigned char* const ring = memory + (alignment_of_swizzle - address % alignment_of_swizzle) % alignment_of_swizzle;
  if (threadIdx.x == 0) {
    for (std::uint32_t i = 0; i < Config::stages; ++i) {
      barriers.full[i].init(1);
      barriers.empty[i].init(consumer_warps);
    }
    device::fence_barrier_init();
  }
  __syncthreads();
  // Nothing above reads or writes memory that another kernel writes.
  cudaGridDependencySynchronize();
  if (threadIdx.x >= consumers * warpgroup_threads) {
    device::ptx::setmaxnreg_dec<producer_registers>();
    if (threadIdx.x < consumers * warpgroup_threads + 32) load_tiles<Config>(arguments, barriers, ring);
  } else {
    device::ptx::setmaxnreg_inc<consumer_registers>();
    multiply_tiles<Config>(arguments, barriers, ring, ring + Config::stages * Config::stage_bytes);
  }
}

}  // namespace tmap::kernels
