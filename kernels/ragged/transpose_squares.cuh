// SPDX-License-Identifier: Apache-2.0
#pragma once

// Transposes tiles in which all is aligned to chunks of 16 bytes. A chunk has V elements, so V
// chunks below each other are a square. A thread takes such a square, transposes it in registers,
// and writes V chunks of V columns.

#include "kernels/ragged/small_divisor.cuh"
#include "kernels/ragged/transpose_load.cuh"
#include "kernels/ragged/transpose_piece.cuh"

#include <cstdint>

namespace tmap::kernels {

/// The words of the V chunks that a thread holds. Each thread reads them in its own order: number k
/// is of row k ^ `twist`. Neighbouring threads read chunks of the same columns, and rows 8 apart
/// share banks. Low bits of the twist are undone by picking bytes, high ones by exchanging rows.
template <std::uint32_t ElementBytes>
class chunk_square {
 public:
  static constexpr std::uint32_t side = transpose_chunk / ElementBytes;
  static constexpr std::uint32_t twists = side < 8 ? side : 8;

  /// Returns a twist by which the rows of 8 neighbouring groups differ modulo 8.
  __device__ static std::uint32_t twist_of(std::uint32_t group) { return group / (8 / twists) % twists; }

  explicit __device__ chunk_square(std::uint32_t twist) {
    if constexpr (ElementBytes == 2) {
      picks_[0] = twist % 2 == 0 ? 0x5410 : 0x1054;
      picks_[1] = twist % 2 == 0 ? 0x7632 : 0x3276;
    } else if constexpr (ElementBytes == 1) {
      picks_[0] = twist & 2 ? twist & 1 ? 0x0145 : 0x1054 : twist & 1 ? 0x4501 : 0x5410;
    }
  }
  __device__ void set(std::uint32_t k, const uint4& chunk) {
    word_[k][0] = chunk.x;
    word_[k][1] = chunk.y;
    word_[k][2] = chunk.z;
    word_[k][3] = chunk.w;
  }
  __device__ void untwist(std::uint32_t twist) {
#pragma unroll
    for (std::uint32_t bit = ElementBytes == 1 ? 4 : ElementBytes == 2 ? 2 : 1; bit < twists; bit *= 2) {
#pragma unroll
      for (std::uint32_t k = 0; k < side; ++k) {
        if ((k & bit) == 0) exchange_rows(k, k | bit, (twist & bit) != 0);
      }
    }
  }

  /// Returns column `c`.
  __device__ uint4 turned(std::uint32_t c) const {
    return make_uint4(turned(c, 0), turned(c, 1), turned(c, 2), turned(c, 3));
  }

 private:
  __device__ void exchange_rows(std::uint32_t a, std::uint32_t b, bool exchanges) {
#pragma unroll
    for (std::uint32_t w = 0; w < 4; ++w) {
      const std::uint32_t first = exchanges ? word_[b][w] : word_[a][w];
      word_[b][w] = exchanges ? word_[a][w] : word_[b][w];
      word_[a][w] = first;
    }
  }
  __device__ std::uint32_t turned(std::uint32_t c, std::uint32_t w) const {
    if constexpr (ElementBytes == 16) {
      return word_[0][w];
    } else if constexpr (ElementBytes == 8) {
      return word_[w / 2][2 * c + w % 2];
    } else if constexpr (ElementBytes == 4) {
      return word_[w][c];
    } else if constexpr (ElementBytes == 2) {
      return __byte_perm(word_[2 * w][c / 2], word_[2 * w + 1][c / 2], picks_[c % 2]);
    } else {
      const std::uint32_t pick = (c % 4) | (4 + c % 4) << 4;
      const std::uint32_t low = __byte_perm(word_[4 * w][c / 4], word_[4 * w + 1][c / 4], pick);
      const std::uint32_t high = __byte_perm(word_[4 * w + 2][c / 4], word_[4 * w + 3][c / 4], pick);
      return __byte_perm(low, high, picks_[0]);
    }
  }

  std::uint32_t word_[side][4];
  std::uint32_t picks_[2];
};

/// Loads chunk `chunk` of the rows of group `group`.
template <std::uint32_t ElementBytes>
__device__ chunk_square<ElementBytes> load_square(const transpose_piece& piece, const unsigned char* stage,
                                                  std::uint32_t chunk, std::uint32_t group) {
  using square = chunk_square<ElementBytes>;
  const std::uint32_t twist = square::twist_of(group);
  square block(twist);
  const std::uint32_t panel = chunk / 8 * piece.stage.panel_pitch;
#pragma unroll
  for (std::uint32_t k = 0; k < square::side; ++k) {
    const std::uint32_t row = group * square::side + (k ^ twist);
    const std::uint32_t at = row * piece.stage.pitch + panel + (chunk % 8 ^ (row & piece.stage.mask)) * transpose_chunk;
    block.set(k, *reinterpret_cast<const uint4*>(stage + at));
  }
  block.untwist(twist);
  return block;
}

/// Stores the first `bytes` bytes of a chunk, which are whole elements.
template <std::uint32_t ElementBytes>
__device__ void store_begin(std::uint64_t to, const uint4& chunk, std::uint32_t bytes) {
  const std::uint32_t words[4]{chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
  for (std::uint32_t at = 0; at < transpose_chunk; at += ElementBytes) {
    if (at >= bytes) continue;
    if constexpr (ElementBytes == 1) {
      *reinterpret_cast<unsigned char*>(to + at) = static_cast<unsigned char>(words[at / 4] >> at % 4 * 8);
    } else if constexpr (ElementBytes == 2) {
      *reinterpret_cast<std::uint16_t*>(to + at) = static_cast<std::uint16_t>(words[at / 4] >> at % 4 * 8);
    } else {
#pragma unroll
      for (std::uint32_t i = 0; i < ElementBytes; i += 4) {
        *reinterpret_cast<std::uint32_t*>(to + at + i) = words[(at + i) / 4];
      }
    }
  }
}

/// Stores a tile straight to global memory. Consecutive threads take chunks below each other, so
/// that a warp stores consecutive bytes of a column.
template <std::uint32_t ElementBytes>
__device__ void store_squares(const transpose_piece& piece, const unsigned char* stage, const worker_place& worker) {
  constexpr std::uint32_t side = chunk_square<ElementBytes>::side;
  const std::uint64_t address = piece.store.address;
  const std::uint64_t pitch = piece.destination_pitch;
  const std::uint32_t columns = piece.columns;
  const std::uint32_t rows = piece.rows;
  const std::uint32_t groups = (rows + side - 1) / side;
  const std::uint32_t squares = (columns + side - 1) / side * groups;
  const small_divisor by_groups(groups);
#pragma unroll 1
  for (std::uint32_t i = worker.index; i < squares; i += worker.count) {
    const std::uint32_t chunk = by_groups(i);
    const std::uint32_t group = i - chunk * groups;
    const chunk_square<ElementBytes> block = load_square<ElementBytes>(piece, stage, chunk, group);
    const std::uint32_t left = columns - chunk * side;
    const std::uint32_t bytes = (rows - group * side) * ElementBytes;
    std::uint64_t to = address + chunk * side * pitch + group * transpose_chunk;
#pragma unroll
    for (std::uint32_t c = 0; c < side; ++c, to += pitch) {
      if (c >= left) break;
      if (bytes >= transpose_chunk) {
        *reinterpret_cast<uint4*>(to) = block.turned(c);
      } else {
        store_begin<ElementBytes>(to, block.turned(c), bytes);
      }
    }
  }
}

}  // namespace tmap::kernels
