// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loads one tile into shared memory by its route. Through a map and by bulk copies the warp that finds the tiles does,
// and the tile is there when the phase of the stage's barrier completes; otherwise the threads that store the tiles do,
// and it is there when they have waited for their copies and met.

#include "kernels/ragged/small_divisor.cuh"
#include "kernels/ragged/transpose_piece.cuh"

#include <tmap/device/acquire.cuh>
#include <tmap/device/async_copy.cuh>
#include <tmap/device/bulk_copy.cuh>
#include <tmap/device/tile_copy.cuh>

#include <cstdint>

namespace tmap::kernels {

/// One thread. Boxes side by side make the tile; those wholly outside the tensor are left out.
template <std::uint32_t Rank>
__device__ void load_boxes(const transpose_piece& piece, unsigned char* stage, device::acquired_map map,
                           std::uint32_t element_bytes, device::tile_barrier& barrier) {
  const std::uint32_t box_columns = transpose_box_row_bytes / element_bytes;
  const std::uint32_t boxes = (piece.columns + box_columns - 1) / box_columns;
  barrier.arrive_expect(boxes * piece.stage.panel_pitch);
  std::int32_t at[Rank];
  for (std::uint32_t axis = 0; axis < Rank; ++axis) at[axis] = piece.coordinates[axis];
  for (std::uint32_t box = 0; box < boxes; ++box) {
    device::load_tile<Rank>(stage + box * piece.stage.panel_pitch, map, at, barrier);
    at[0] += static_cast<std::int32_t>(box_columns);
  }
}

/// The last bytes of each row, fewer than a unit of `Bytes`.
template <std::uint32_t Bytes>
__device__ void load_row_ends(const transpose_piece& piece, unsigned char* stage) {
  const std::uint32_t whole = piece.load.bytes / Bytes * Bytes;
  if (whole == piece.load.bytes) return;
  for (std::uint32_t row = threadIdx.x; row < piece.load.rows; row += transpose_workers) {
    const auto* const from = reinterpret_cast<const unsigned char*>(piece.source + row * piece.load.pitch);
    for (std::uint32_t i = whole; i < piece.load.bytes; ++i) stage[row * piece.stage.row_pitch + i] = from[i];
  }
}

/// One warp. Rows, but for their last bytes.
__device__ inline void load_bulk(const transpose_piece& piece, unsigned char* stage, device::tile_barrier& barrier) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t bytes = piece.load.bytes / transpose_chunk * transpose_chunk;
  if (lane == 0) barrier.arrive_expect(piece.load.rows * bytes);
  __syncwarp();
  if (bytes == 0) return;
  for (std::uint32_t row = lane; row < piece.load.rows; row += 32) {
    device::load_bytes(stage + row * piece.stage.row_pitch,
                       reinterpret_cast<const void*>(piece.source + row * piece.load.pitch), bytes, barrier);
  }
}

template <std::uint32_t Bytes>
__device__ void load_async(const transpose_piece& piece, unsigned char* stage) {
  load_row_ends<Bytes>(piece, stage);
  const std::uint32_t units = piece.load.bytes / Bytes;
  if (units == 0) return;
  const small_divisor by_units(units);
#pragma unroll 4
  for (std::uint32_t i = threadIdx.x; i < units * piece.load.rows; i += transpose_workers) {
    const std::uint32_t row = by_units(i);
    const std::uint32_t at = (i - row * units) * Bytes;
    device::copy_async<Bytes>(stage + row * piece.stage.row_pitch + at,
                              reinterpret_cast<const void*>(piece.source + row * piece.load.pitch + at));
  }
}

__device__ inline void load_async(const transpose_piece& piece, unsigned char* stage) {
  const std::uint64_t bits =
      piece.load.rows == 1 ? piece.source : piece.source | piece.load.pitch | piece.stage.row_pitch;
  if (bits % 16 == 0) {
    load_async<16>(piece, stage);
  } else if (bits % 8 == 0) {
    load_async<8>(piece, stage);
  } else {
    load_async<4>(piece, stage);
  }
}

/// Four bytes at any address, of which those below `limit` exist: two words where no byte of them is outside the row.
__device__ inline std::uint32_t load_word(std::uint64_t row_begin, std::uint32_t offset, std::uint32_t row_bytes) {
  const std::uint64_t at = row_begin + offset;
  const std::uint32_t shift = at % 4 * 8;
  if (shift == 0 && offset + 4 <= row_bytes) return *reinterpret_cast<const std::uint32_t*>(at);
  if (shift != 0 && offset != 0 && offset + 8 <= row_bytes) {
    const auto* const words = reinterpret_cast<const std::uint32_t*>(at / 4 * 4);
    return __funnelshift_r(words[0], words[1], shift);
  }
  std::uint32_t word = 0;
  for (std::uint32_t i = 0; i < 4 && offset + i < row_bytes; ++i) {
    word |= std::uint32_t{*reinterpret_cast<const unsigned char*>(at + i)} << (8 * i);
  }
  return word;
}

/// Units of a row, several in flight a thread.
template <class Unit, class Load>
__device__ void load_units(const transpose_piece& piece, unsigned char* stage, const Load& load) {
  constexpr std::uint32_t in_flight = sizeof(Unit) == 16 ? 4 : 8;
  const std::uint32_t units = (piece.load.bytes + sizeof(Unit) - 1) / sizeof(Unit);
  const std::uint32_t all = units * piece.load.rows;
  const small_divisor by_units(units);
  for (std::uint32_t first = threadIdx.x; first < all; first += in_flight * transpose_workers) {
    Unit values[in_flight];
    std::uint32_t places[in_flight];
#pragma unroll
    for (std::uint32_t k = 0; k < in_flight; ++k) {
      const std::uint32_t i = first + k * transpose_workers;
      if (i >= all) continue;
      const std::uint32_t row = by_units(i);
      const std::uint32_t at = (i - row * units) * static_cast<std::uint32_t>(sizeof(Unit));
      places[k] = row * piece.stage.row_pitch + at;
      values[k] = load(piece.source + row * piece.load.pitch, at);
    }
#pragma unroll
    for (std::uint32_t k = 0; k < in_flight; ++k) {
      if (first + k * transpose_workers < all) *reinterpret_cast<Unit*>(stage + places[k]) = values[k];
    }
  }
}

inline constexpr std::uint32_t load_words_rows = 8;

/// Rows at any address, a warp some of them at a time.
__device__ inline void load_words(const transpose_piece& piece, unsigned char* stage) {
  constexpr std::uint32_t in_flight = load_words_rows;
  constexpr std::uint32_t step = transpose_workers / 32 * in_flight;
  const std::uint32_t words = (piece.load.bytes + 3) / 4;
  for (std::uint32_t first = threadIdx.x / 32 * in_flight; first < piece.load.rows; first += step) {
    for (std::uint32_t word = threadIdx.x % 32; word < words; word += 32) {
      std::uint32_t values[in_flight];
#pragma unroll
      for (std::uint32_t k = 0; k < in_flight; ++k) {
        if (first + k >= piece.load.rows) continue;
        values[k] = load_word(piece.source + (first + k) * piece.load.pitch, 4 * word, piece.load.bytes);
      }
#pragma unroll
      for (std::uint32_t k = 0; k < in_flight; ++k) {
        if (first + k >= piece.load.rows) continue;
        *reinterpret_cast<std::uint32_t*>(stage + (first + k) * piece.stage.row_pitch + 4 * word) = values[k];
      }
    }
  }
}

__device__ __noinline__ inline void load_plain(const transpose_piece& piece, unsigned char* stage) {
  const std::uint64_t bits = piece.load.rows == 1 ? 0 : piece.load.pitch | piece.stage.row_pitch;
  if ((bits | piece.source | piece.load.bytes) % 16 == 0) {
    load_units<uint4>(piece, stage,
                      [](std::uint64_t row, std::uint32_t at) { return *reinterpret_cast<const uint4*>(row + at); });
  } else if (piece.stage.row_pitch % 4 == 0 && piece.load.rows >= transpose_workers / 32 * load_words_rows &&
             piece.load.bytes >= 64) {
    load_words(piece, stage);
  } else if (piece.load.rows == 1 || piece.stage.row_pitch % 4 == 0) {
    load_units<std::uint32_t>(
        piece, stage, [&](std::uint64_t row, std::uint32_t at) { return load_word(row, at, piece.load.bytes); });
  } else {
    load_units<unsigned char>(piece, stage, [](std::uint64_t row, std::uint32_t at) {
      return *reinterpret_cast<const unsigned char*>(row + at);
    });
  }
}

}  // namespace tmap::kernels
