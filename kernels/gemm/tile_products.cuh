// SPDX-License-Identifier: Apache-2.0
#pragma once

// A consumer passes the stages of one tile to the tensor cores, leaves them, and keeps the sums.
// 8-bit products can be *promoted*: the tensor cores, which keep 13 bits of a sum, then sum up at
// most one stage, and registers add up the stages.

#include <tmap/device/ptx_wgmma.cuh>
#include <tmap/device/remote_store.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/grouped_gemm.hpp>

#include <cuda/ptx>

#include <cstdint>

#include "kernels/gemm/tile_math.hpp"
#include "kernels/gemm/tile_ring.cuh"

namespace tmap::kernels {

inline constexpr std::uint32_t consumers = 2;
inline constexpr std::uint32_t warpgroup_threads = 128;

/// A consumer's share of a stage, as the low words of descriptors. Only they change with stages,
/// columns and steps of K, so one addition makes the next.
struct stage_share {
  std::uint32_t a;
  std::uint32_t b;
};

/// Returns the share of the ring's first stage. It is kept in registers, and not computed again for
/// each stage.
template <class Config>
__device__ stage_share first_share(std::uint32_t ring) {
  const std::uint32_t consumer = threadIdx.x / warpgroup_threads;
  const std::uint32_t a = ring + (Config::halves_rows ? consumer * piece_bytes : 0);
  const std::uint32_t b =
      ring + Config::a_bytes + (Config::halves_rows ? 0 : consumer * Config::share_n * swizzle_bytes);
  stage_share first{static_cast<std::uint32_t>(operand_descriptor(a, Config::a_is_across)),
                    static_cast<std::uint32_t>(operand_descriptor(b, Config::b_is_across))};
  device::ptx::keep_word(first.a);
  device::ptx::keep_word(first.b);
  return first;
}

template <class Config>
__device__ stage_share share_of(const stage_share& first, std::uint32_t stage) {
  constexpr std::uint32_t stage_step = Config::stage_bytes / 16;
  return {first.a + stage * stage_step, first.b + stage * stage_step};
}

template <class Config, std::uint32_t Count>
__device__ void multiply_step(float (&sums)[Count], const stage_share& share, std::uint32_t step, std::uint32_t keeps) {
  namespace ptx = device::ptx;
  constexpr std::uint64_t high_word = operand_descriptor(0, false) >> 32 << 32;
  static_assert(high_word == operand_descriptor(0, true) >> 32 << 32);
  constexpr auto a_step = static_cast<std::uint32_t>(descriptor_step(Config::a_is_across));
  constexpr auto b_step = static_cast<std::uint32_t>(descriptor_step(Config::b_is_across));
  const std::uint64_t a = high_word | (share.a + step * a_step);
  const std::uint64_t b = high_word | (share.b + step * b_step);
  if constexpr (Config::type == gemm::operand_type::bf16) {
    ptx::wgmma_bf16<Config::a_is_across, Config::b_is_across>(sums, a, b, keeps);
  } else if constexpr (Config::type == gemm::operand_type::f16) {
    ptx::wgmma_f16<Config::a_is_across, Config::b_is_across>(sums, a, b, keeps);
  } else if constexpr (Config::type == gemm::operand_type::f8_e4m3) {
    ptx::wgmma_e4m3(sums, a, b, keeps);
  } else {
    ptx::wgmma_e5m2_e4m3(sums, a, b, keeps);
  }
}

template <std::uint32_t Count>
__device__ void keep_sums(float (&sums)[Count]) {
#pragma unroll
  for (std::uint32_t i = 0; i < Count; ++i) device::ptx::keep_sum(sums[i]);
}

/// Signals that this warp has left the stage, in pairs to both blocks, as both load into it. Whole
/// warps call it.
template <class Config>
__device__ void leave_stage(device::tile_barrier& empty) {
  const std::uint32_t lane = threadIdx.x % 32;
  if (lane >= Config::cluster_blocks) return;
  if constexpr (Config::is_paired) {
    // Relaxed: the warp has read the stage to its end, and wrote nothing that the other block
    // reads.
    namespace ptx = cuda::ptx;
    const device::remote_barrier of_block(lane, empty);
    ptx::mbarrier_arrive(ptx::sem_relaxed, ptx::scope_cluster, ptx::space_cluster, of_block.word());
  } else {
    empty.arrive();
  }
}

inline constexpr std::uint32_t stage_steps = swizzle_bytes / step_bytes;

/// Multiplies the steps of a stage that K does not fill, one at a time. If products were under way
/// at a branch, ptxas would wait for every product of the kernel.
template <class Config>
__device__ void multiply_last_steps(float (&sums)[Config::sums], const stage_share& share, std::uint32_t steps,
                                    std::uint32_t keeps) {
  namespace ptx = device::ptx;
#pragma unroll 1
  for (std::uint32_t step = 0; step < steps; ++step) {
    ptx::wgmma_fence();
    multiply_step<Config>(sums, share, step, keeps + step);
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
  }
  keep_sums(sums);
}

/// Computes the sums of one tile. A stage is left once the next one has been passed to the tensor
/// cores. In a last stage that K does not fill, steps that would only add zeros are left out. That
/// matters where K is short, as in gradients.
template <class Config>
__device__ void multiply_tile(float (&sums)[Config::sums], std::uint32_t k,
                              device::ring_barriers<Config::stages>& barriers, std::uint32_t ring,
                              device::ring_position& at) {
  namespace ptx = device::ptx;
  constexpr std::uint32_t step_k = Config::tile_k / stage_steps;
  const stage_share first = first_share<Config>(ring);
  std::uint32_t used = 0;
  keep_sums(sums);
  const std::uint32_t steps = (k + step_k - 1) / step_k;
  const std::uint32_t whole = steps / stage_steps;
  const std::uint32_t last_steps = steps % stage_steps;
  for (std::uint32_t block = 0; block < whole; ++block) {
    const stage_share share = share_of<Config>(first, at.stage());
    wait_for(barriers.full[at.stage()], at.parity());
    ptx::wgmma_fence();
#pragma unroll
    for (std::uint32_t step = 0; step < stage_steps; ++step) {
      multiply_step<Config>(sums, share, step, step == 0 ? block : 1);
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<1>();
    if (block != 0) leave_stage<Config>(barriers.empty[used]);
    used = at.stage();
    at.advance();
  }
  ptx::wgmma_wait_group<0>();
  keep_sums(sums);
  if (whole != 0) leave_stage<Config>(barriers.empty[used]);
  if (last_steps == 0) return;
  const stage_share share = share_of<Config>(first, at.stage());
  wait_for(barriers.full[at.stage()], at.parity());
  multiply_last_steps<Config>(sums, share, last_steps, whole);
  leave_stage<Config>(barriers.empty[at.stage()]);
  at.advance();
}

inline constexpr std::uint32_t part_columns = 128;
inline constexpr std::uint32_t part_sums = part_columns / 2;

/// Passes all steps of a stage for 128 columns to the tensor cores. Their sums start from 0.
template <class Config>
__device__ void multiply_part(float (&partial)[part_sums], const stage_share& share) {
  keep_sums(partial);
  device::ptx::wgmma_fence();
#pragma unroll
  for (std::uint32_t step = 0; step < stage_steps; ++step) {
    multiply_step<Config>(partial, share, step, step);
  }
  device::ptx::wgmma_commit_group();
}

/// Returns the order in which sums are added: those of one of a thread's rows, then those of the
/// other. Multiplications that follow each other then have a factor in common.
__device__ constexpr std::uint32_t by_rows(std::uint32_t i) {
  constexpr std::uint32_t of_row = part_sums / 2;
  return i % of_row / 2 * 4 + i % 2 + i / of_row * 2;
}

/// Adds the sums of one stage for the `part`-th 128 columns.
template <class Config, class Factors>
__device__ void add_part(float (&sums)[Config::sums], const float (&partial)[part_sums], const Factors& factors,
                         std::uint32_t part) {
  if constexpr (Config::has_line_scales) {
    factors.add(sums, partial, part);
  } else {
#pragma unroll
    for (std::uint32_t n = 0; n < part_sums; ++n) {
      const std::uint32_t i = Config::has_block_scales ? by_rows(n) : n;
      const std::uint32_t at = part * part_sums + i;
      if constexpr (Config::has_block_scales) {
        sums[at] = fmaf(factors.of(i / 2 % 2, at / (Config::sums / 2)), partial[i], sums[at]);
      } else {
        sums[at] += partial[i];
      }
    }
  }
}

/// A ring of this many stages may have an address that is known when this is compiled. Then the
/// words of descriptors are constants, and nothing but additions stands between the products of two
/// stages.
inline constexpr std::uint32_t fixed_stages = 4;
/// The address in shared memory. The first 1,024 bytes belong to CUDA, the next to static memory.
inline constexpr std::uint32_t fixed_ring = 2048;
__device__ inline bool is_fixed(std::uint32_t ring) {
  constexpr std::uint32_t address_bits = 0xffffff;  // above them is the block's rank in its cluster
  return (ring & address_bits) == fixed_ring;
}

/// Computes one of the four stages of a turn, for the consumer `Consumer`. A stage is left, and the
/// next one waited for, while products run.
template <class Config, std::uint32_t Consumer, std::uint32_t Stage, class Factors>
__device__ void multiply_fixed_stage(float (&sums)[Config::sums], float (&partial)[part_sums], Factors& factors,
                                     std::uint32_t block, std::uint32_t blocks, std::uint32_t parity,
                                     device::ring_barriers<Config::stages>& barriers) {
  constexpr std::uint32_t parts = Config::share_n / part_columns;
  constexpr std::uint32_t stage = fixed_ring + Stage * Config::stage_bytes;
  constexpr auto a = static_cast<std::uint32_t>(operand_descriptor(stage + Consumer * piece_bytes, false));
  constexpr auto b = static_cast<std::uint32_t>(operand_descriptor(stage + Config::a_bytes, false));
  constexpr std::uint32_t next = (Stage + 1) % fixed_stages;
#pragma unroll
  for (std::uint32_t part = 0; part < parts; ++part) {
    multiply_part<Config>(partial, {a, b + part * (part_columns * swizzle_bytes / 16)});
    if (part == 0) {
      if (block + Stage != 0) leave_stage<Config>(barriers.empty[(Stage + fixed_stages - 1) % fixed_stages]);
      factors.take(block + Stage);
    }
    if (part + 1 == parts && (next != 0 || block + fixed_stages < blocks)) {
      wait_for(barriers.full[next], next == 0 ? parity ^ 1 : parity);
    }
    device::ptx::wgmma_wait_group<0>();
    keep_sums(partial);
    add_part<Config>(sums, partial, factors, part);
  }
}

/// Adds up the stages of `blocks` blocks of K, a multiple of `fixed_stages`. The ring is at its
/// first stage.
template <class Config, std::uint32_t Consumer, class Factors>
__device__ void multiply_fixed_turns(float (&sums)[Config::sums], Factors& factors, std::uint32_t blocks,
                                     device::ring_barriers<Config::stages>& barriers, device::ring_position& at) {
  float partial[part_sums] = {};
  wait_for(barriers.full[0], at.parity());
#pragma unroll 1
  for (std::uint32_t block = 0; block < blocks; block += fixed_stages) {
    const std::uint32_t parity = at.parity();
    multiply_fixed_stage<Config, Consumer, 0>(sums, partial, factors, block, blocks, parity, barriers);
    multiply_fixed_stage<Config, Consumer, 1>(sums, partial, factors, block, blocks, parity, barriers);
    multiply_fixed_stage<Config, Consumer, 2>(sums, partial, factors, block, blocks, parity, barriers);
    multiply_fixed_stage<Config, Consumer, 3>(sums, partial, factors, block, blocks, parity, barriers);
    at.advance_round();
  }
  leave_stage<Config>(barriers.empty[fixed_stages - 1]);
}

/// Adds up the stages from block `first` of K on. There is no room for partial sums of all columns,
/// nor for the next ones while these are added. So only these additions stand between the end of
/// products and the next ones: stages are left and waited for while products run.
template <class Config, class Factors>
__device__ void multiply_stages(float (&sums)[Config::sums], Factors& factors, std::uint32_t first_block,
                                std::uint32_t blocks, device::ring_barriers<Config::stages>& barriers,
                                std::uint32_t ring, device::ring_position& at) {
  constexpr std::uint32_t parts = Config::share_n / part_columns;
  const stage_share first = first_share<Config>(ring);
  float partial[part_sums] = {};
  std::uint32_t used = 0;
  wait_for(barriers.full[at.stage()], at.parity());
  stage_share share = share_of<Config>(first, at.stage());
#pragma unroll 1
  for (std::uint32_t block = first_block; block < blocks; ++block) {
#pragma unroll
    for (std::uint32_t part = 0; part < parts; ++part) {
      multiply_part<Config>(partial, {share.a, share.b + part * (part_columns * swizzle_bytes / 16)});
      if (part == 0) {
        if (block != first_block) leave_stage<Config>(barriers.empty[used]);
        factors.take(block);
      }
      if (part + 1 == parts) {
        used = at.stage();
        at.advance();
        if (block + 1 < blocks) wait_for(barriers.full[at.stage()], at.parity());
        share = share_of<Config>(first, at.stage());
      }
      device::ptx::wgmma_wait_group<0>();
      keep_sums(partial);
      add_part<Config>(sums, partial, factors, part);
    }
  }
  leave_stage<Config>(barriers.empty[used]);
}

/// Leaves stages unused.
template <class Config>
__device__ void pass_stages(std::uint32_t count, device::ring_barriers<Config::stages>& barriers,
                            device::ring_position& at) {
  for (std::uint32_t i = 0; i < count; ++i, at.advance()) {
    wait_for(barriers.full[at.stage()], at.parity());
    __syncwarp();
    leave_stage<Config>(barriers.empty[at.stage()]);
  }
}

/// Returns how many stages follow those of a tile, without operands. With a fixed ring each tile
/// begins at the first stage.
template <class Config>
__device__ std::uint32_t unused_stages(std::uint32_t k_blocks) {
  return Config::has_fixed_ring ? (fixed_stages - k_blocks % fixed_stages) % fixed_stages : 0;
}

/// Computes the sums of one tile, promoted. The tensor cores sum up one stage for 128 columns at a
/// time. The result is multiplied by the factors, if there are any, and added to the sums in
/// registers. K is not 0.
template <class Config, class Factors>
__device__ void multiply_tile_promoted(float (&sums)[Config::sums], Factors factors, std::uint32_t k_blocks,
                                       device::ring_barriers<Config::stages>& barriers, std::uint32_t ring,
                                       device::ring_position& at) {
  std::uint32_t done = 0;
  if constexpr (Config::has_fixed_ring) {
    done = is_fixed(ring) ? k_blocks / fixed_stages * fixed_stages : 0;
    if (done != 0 && threadIdx.x < warpgroup_threads)
      multiply_fixed_turns<Config, 0>(sums, factors, done, barriers, at);
    if (done != 0 && threadIdx.x >= warpgroup_threads)
      multiply_fixed_turns<Config, 1>(sums, factors, done, barriers, at);
  }
  if (done < k_blocks) multiply_stages<Config>(sums, factors, done, k_blocks, barriers, ring, at);
  pass_stages<Config>(unused_stages<Config>(k_blocks), barriers, at);
}

/// Leaves the stages of a tile unused: this consumer's half of it lies outside the group's product.
template <class Config>
__device__ void pass_tile(std::uint32_t k_blocks, device::ring_barriers<Config::stages>& barriers,
                          device::ring_position& at) {
  pass_stages<Config>(k_blocks + unused_stages<Config>(k_blocks), barriers, at);
}

}  // namespace tmap::kernels
