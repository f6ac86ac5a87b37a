// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loads the operands of one tile into the ring. Of an operand that both blocks of a pair need, each
// loads half, into both.

#include <tmap/device/acquire.cuh>
#include <tmap/device/remote_store.cuh>
#include <tmap/device/tile_copy.cuh>

#include <cstdint>

#include "kernels/gemm/gemm_group.hpp"
#include "kernels/gemm/tile_math.hpp"
#include "kernels/gemm/tile_products.cuh"
#include "kernels/gemm/tile_ring.cuh"

namespace tmap::kernels {

/// Names the operand that the blocks of a pair have in common.
enum class common_operand : std::uint32_t { none, a, b };

/// The lines of an operand's tile that this block loads.
struct load_share {
  std::uint32_t begin;
  std::uint32_t end;
};
template <bool IsForBoth>
__device__ load_share share_of(std::uint32_t lines) {
  if (!IsForBoth) return {0, lines};
  const std::uint32_t half = lines / 2;
  const std::uint32_t begin = device::block_of_cluster() * half;
  return {begin, begin + half};
}

template <bool IsForBoth, std::uint32_t Rank>
__device__ void load_piece(unsigned char* to, device::acquired_map map, const std::int32_t (&at)[Rank],
                           device::tile_barrier& full) {
  constexpr std::uint16_t both = 0b11;
  if constexpr (IsForBoth) {
    device::load_tile_multicast(to, map, at, full, both);
  } else {
    device::load_tile(to, map, at, full);
  }
}

template <class Config, bool IsForBoth>
__device__ void load_a(unsigned char* to, device::acquired_map map, std::uint32_t row, std::uint32_t k,
                       device::tile_barrier& full) {
  const load_share share = share_of<IsForBoth>(Config::tile_m);
#pragma unroll
  for (std::uint32_t i = 0; i < (IsForBoth ? Config::tile_m / 2 : Config::tile_m); i += Config::a_piece) {
    const std::uint32_t at = share.begin + i;
    const auto at_row = static_cast<std::int32_t>(row + at);
    const auto at_k = static_cast<std::int32_t>(k);
    if constexpr (Config::a_is_across) {
      load_piece<IsForBoth>(to + at * swizzle_bytes, map, {at_row, at_k}, full);
    } else {
      load_piece<IsForBoth>(to + at * swizzle_bytes, map, {at_k, at_row}, full);
    }
  }
}

template <class Config, bool IsForBoth>
__device__ void load_b(unsigned char* to, device::acquired_map map, std::uint32_t column, std::uint32_t k,
                       std::uint32_t group, bool is_own, device::tile_barrier& full) {
  const auto inner = static_cast<std::int32_t>(Config::b_is_across ? column : k);
  const auto outer = static_cast<std::int32_t>(Config::b_is_across ? k : column);
  if (is_own) {
    load_piece<IsForBoth>(to, map, {inner, outer}, full);
  } else {
    load_piece<IsForBoth>(to, map, {inner, outer, static_cast<std::int32_t>(group)}, full);
  }
}

/// The next tile is asked for so many stages before the end of one. That is as long as the reply
/// takes, some microseconds.
inline constexpr std::uint32_t ask_ahead = 8;

/// Loads one tile's operands. One thread calls it.
template <class Config, common_operand Common>
__device__ void load_tile_stages(const tile_note& note, const gemm_shape& shape, device::acquired_map a,
                                 device::acquired_map b, device::tile_barrier& wanted,
                                 device::ring_barriers<Config::stages>& barriers, unsigned char* ring,
                                 device::ring_position& at) {
  constexpr bool has_common_b = Common == common_operand::b;
  const b_columns columns{Config::share_n, shape.per_result, shape.values};
  const std::uint32_t piece_columns = Config::tile_n / shape.b_pieces;
  const load_share share = share_of<has_common_b>(Config::tile_n);
  const std::uint32_t first_row = note.record.first_row + note.row;
  const std::uint32_t first_column = note.record.first_column;
  const bool has_own_b = shape.has_own_b;
  const std::uint32_t asks_at = note.k_blocks > ask_ahead ? note.k_blocks - ask_ahead : 0;
  for (std::uint32_t block = 0; block < note.k_blocks; ++block, at.advance()) {
    if (block == asks_at) wanted.arrive();
    const std::uint32_t k = note.record.first_k + block * Config::tile_k;
    unsigned char* const stage = ring + at.stage() * Config::stage_bytes;
    device::tile_barrier& full = barriers.full[at.stage()];
    wait_for(barriers.empty[at.stage()], at.parity() ^ 1);
    full.arrive_expect(Config::mapped_bytes);
    if constexpr (!Config::gathers) load_a<Config, Common == common_operand::a>(stage, a, first_row, k, full);
    for (std::uint32_t column = share.begin; column < share.end; column += piece_columns) {
      load_b<Config, has_common_b>(stage + Config::a_bytes + column * swizzle_bytes, b,
                                   first_column + columns.source(note.column, column), k, note.group, has_own_b, full);
    }
  }
  for (std::uint32_t unused = unused_stages<Config>(note.k_blocks); unused != 0; --unused, at.advance()) {
    wait_for(barriers.empty[at.stage()], at.parity() ^ 1);
    barriers.full[at.stage()].arrive();
  }
}

}  // namespace tmap::kernels
