// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loads the rows of A that an index names. Two warps copy them into the ring, in the order in which
// the copy engine would have put them there.

#include <tmap/device/async_copy.cuh>
#include <tmap/device/report_bad.cuh>
#include <tmap/device/tile_copy.cuh>

#include <cstdint>

#include "kernels/gemm/gemm_group.hpp"
#include "kernels/gemm/tile_math.hpp"
#include "kernels/gemm/tile_ring.cuh"

namespace tmap::kernels {

inline constexpr std::uint32_t gather_warps = 2;
inline constexpr std::uint32_t gather_threads = gather_warps * 32;

/// Reports the rows of a tile that A does not have. All lanes of a warp call it. The loop stays
/// rolled: code that hardly ever runs must not take registers.
__device__ inline void report_rows(const row_index& index, std::uint32_t first, std::uint32_t count) {
  TMAP_KEEP_ROLLED
  for (std::uint32_t i = 0; i < count; i += 32) {
    const std::uint32_t at = i + threadIdx.x % 32;
    const std::int32_t row = at < count ? index.rows[first + at] : -1;
    device::report_bad(index.faults, item_kind::group, std::uint64_t{first} + at,
                       row != -1 && !index.has(row) ? static_cast<std::uint32_t>(gemm::fault::a_row) : 0);
  }
}

/// Lists the rows of A of a tile for the gathering warps, and reports those that do not exist. A
/// row belongs to several tiles, and the first of them reports it. One warp calls it.
///
/// __syncwarp orders the list before what lane 0 does next, and lane 0's arrival at the note's
/// barrier, a release, passes that order on to the gathering warps. So there is no race, although
/// racecheck reports one.
template <class Config>
__device__ void list_rows(const row_index& index, const tile_note& note, std::uint32_t* rows) {
  const std::uint32_t first = note.record.first_row + note.row;
  const std::uint32_t left = note.row < note.record.m ? note.record.m - note.row : 0;
  bool has_bad = false;
#pragma unroll
  for (std::uint32_t i = 0; i < Config::tile_m; i += 32) {
    const std::uint32_t at = i + threadIdx.x % 32;
    const std::int32_t row = at < left ? index.rows[first + at] : -1;
    rows[at] = index.has(row) ? static_cast<std::uint32_t>(row) : no_row;
    has_bad = has_bad || (row != -1 && !index.has(row));
  }
  __syncwarp();
  if (note.column == 0 && __any_sync(~0u, has_bad)) report_rows(index, first, min(left, Config::tile_m));
}

/// One lane's share of the rows of a tile. Four lanes copy a row, 64 bytes at once and then the
/// other half. Neighbouring rows of a lane are a multiple of eight apart, so that its units have
/// the same places in each of them.
template <class Config>
class row_share {
 public:
  explicit __device__ row_share(const row_index& index)
      : index_(index),
        row_((threadIdx.x % gather_threads) / row_lanes),
        byte_(threadIdx.x % row_lanes * unit_bytes),
        first_(staged_byte(row_, byte_)),
        second_(staged_byte(row_, byte_ + half_bytes)) {}

  /// Reads which rows the tile has. `rows` may then be overwritten.
  __device__ void take(const tile_note& note, const std::uint32_t* rows) {
    k_bytes_ = std::uint64_t{note.record.k} * gemm::operand_bytes(Config::type);
    rows_ = note.row < note.record.m ? note.record.m - note.row : 0;
    has_ = 0;
#pragma unroll
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t row = rows[row_ + i * step_rows];
      from_[i] = index_.of.address + byte_ + (row == no_row ? 0 : row * index_.of.pitch_bytes);
      has_ |= (row == no_row ? 0u : 1u) << i;
    }
  }

  /// Starts copying what stage `block` of the tile has of the rows. Missing rows become zeros, as
  /// does what lies past the end of K. No result of a row past the group's end is stored, but zeros
  /// take less power than other values. Once all stages have these zeros, they stay.
  __device__ void copy(unsigned char* stage, std::uint32_t block) {
    const std::uint64_t at = std::uint64_t{block} * swizzle_bytes;
    const std::uint32_t rows = block < Config::stages ? Config::tile_m : rows_;
    const std::uint32_t has_first = at + byte_ < k_bytes_ ? has_ : 0;
    const std::uint32_t has_second = at + byte_ + half_bytes < k_bytes_ ? has_ : 0;
#pragma unroll
    for (std::uint32_t i = 0; i < count; ++i) {
      if (i * step_rows >= rows) break;
      const auto* const from = reinterpret_cast<const unsigned char*>(from_[i] + at);
      unsigned char* const to = stage + i * step_rows * swizzle_bytes;
      device::copy_async_zero_filled<unit_bytes>(to + first_, from, (has_first >> i & 1) * unit_bytes);
      device::copy_async_zero_filled<unit_bytes>(to + second_, from + half_bytes, (has_second >> i & 1) * unit_bytes);
    }
  }

 private:
  static constexpr std::uint32_t unit_bytes = 16;
  static constexpr std::uint32_t half_bytes = swizzle_bytes / 2;
  static constexpr std::uint32_t row_lanes = half_bytes / unit_bytes;
  /// The rows that both warps copy at once.
  static constexpr std::uint32_t step_rows = gather_threads / row_lanes;
  static constexpr std::uint32_t count = Config::tile_m / step_rows;
  static_assert(step_rows % 8 == 0);

  const row_index& index_;
  std::uint32_t row_;  ///< the first one
  std::uint32_t byte_;
  std::uint32_t first_;  ///< places in a stage
  std::uint32_t second_;
  std::uint64_t k_bytes_{};
  std::uint32_t rows_{};  ///< of the tile in the group
  std::uint32_t has_{};   ///< bit i: the i-th row exists
  std::uint64_t from_[count]{};
};

/// The stages that this warp has filled, in order. The copies of the newest ones are under way. A
/// stage is full once they have landed and the tensor cores may read them.
///
/// A stage becomes empty when the next one has been passed to the tensor cores. So that one must be
/// full before its place is waited for, and at most `stages - 2` are under way then.
template <class Config>
class landing_stages {
 public:
  explicit __device__ landing_stages(device::ring_barriers<Config::stages>& barriers) : barriers_(barriers) {}

  /// Closes the copies of one more stage, and passes on the stage whose copies are old enough.
  __device__ void add() {
    device::commit_copies();
    if (under_way_ == most) {
      device::wait_copies<most>();
      pass_on();
    } else {
      ++under_way_;
    }
  }

  /// Waits for all copies and passes on their stages.
  __device__ void finish() {
    device::wait_copies<0>();
    for (; under_way_ != 0; --under_way_) pass_on();
  }

 private:
  static constexpr std::uint32_t most = Config::stages - 2;

  __device__ void pass_on() {
    // The tensor cores read through the asynchronous proxy.
    device::fence_shared_writes();
    __syncwarp();
    if (threadIdx.x % 32 == 0) barriers_.full[at_.stage()].arrive();
    at_.advance();
  }

  device::ring_barriers<Config::stages>& barriers_;
  device::ring_position at_{Config::stages};
  std::uint32_t under_way_{};
};

/// Loads A's rows. Two warps call it, each for its share. A warp that would have to wait for a note
/// first passes on what it has loaded, because the note may depend on it.
template <class Config>
__device__ void gather_tiles(const row_index& index, tile_notes& notes, const std::uint32_t* rows,
                             device::ring_barriers<Config::stages>& barriers, unsigned char* ring) {
  row_share<Config> share(index);
  landing_stages<Config> landing(barriers);
  device::ring_position at(Config::stages);
  for (device::ring_position note_at(noted_tiles);; note_at.advance()) {
    device::tile_barrier& noted = notes.barriers.full[note_at.stage()];
    if (__any_sync(~0u, !cuda::ptx::mbarrier_test_wait_parity(noted.word(), note_at.parity()))) landing.finish();
    wait_for(noted, note_at.parity());
    const tile_note& note = notes.notes[note_at.stage()];
    if (note.columns == 0) break;
    const std::uint32_t k_blocks = note.k_blocks;
    share.take(note, rows);
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      notes.barriers.empty[note_at.stage()].arrive();
      notes.wanted.arrive();
    }
    for (std::uint32_t block = 0; block < k_blocks; ++block, at.advance()) {
      wait_for(barriers.empty[at.stage()], at.parity() ^ 1);
      share.copy(ring + at.stage() * Config::stage_bytes, block);
      landing.add();
    }
  }
  landing.finish();
}

}  // namespace tmap::kernels
