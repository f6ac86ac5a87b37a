// SPDX-License-Identifier: Apache-2.0
#pragma once

// Exchanges rows and columns of one tile in shared memory and stores it. Where both directions hold whole chunks of 16
// bytes, a thread takes the square of elements that V chunks below each other are (V elements a chunk), turns it in
// registers and writes V chunks: to global memory, or, where that is not aligned to chunks, to shared memory again.
// Other tiles are exchanged element by element. What is in shared memory then goes out as words of the destination.

#include "kernels/ragged/transpose_load.cuh"
#include "kernels/ragged/transpose_piece.cuh"

#include <cstdint>

namespace tmap::kernels {

/// Words of the V chunks that a thread holds.
template <std::uint32_t ElementBytes>
struct chunk_square {
  static constexpr std::uint32_t side = transpose_chunk / ElementBytes;
  std::uint32_t word[side][4];

  /// Word `w` of column `c`.
  __device__ std::uint32_t turned(std::uint32_t c, std::uint32_t w) const {
    if constexpr (ElementBytes == 16) {
      return word[0][w];
    } else if constexpr (ElementBytes == 8) {
      return word[w / 2][2 * c + w % 2];
    } else if constexpr (ElementBytes == 4) {
      return word[w][c];
    } else if constexpr (ElementBytes == 2) {
      return __byte_perm(word[2 * w][c / 2], word[2 * w + 1][c / 2], c % 2 == 0 ? 0x5410 : 0x7632);
    } else {
      const std::uint32_t pick = (c % 4) | (4 + c % 4) << 4;
      const std::uint32_t low = __byte_perm(word[4 * w][c / 4], word[4 * w + 1][c / 4], pick);
      const std::uint32_t high = __byte_perm(word[4 * w + 2][c / 4], word[4 * w + 3][c / 4], pick);
      return __byte_perm(low, high, 0x5410);
    }
  }
};

/// Stores `count` elements, fewer than a chunk, that `chunk` begins with.
template <std::uint32_t ElementBytes>
__device__ void store_elements(std::uint64_t to, const uint4& chunk, std::uint32_t count) {
  const std::uint32_t words[4]{chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
  for (std::uint32_t e = 0; e < transpose_chunk / ElementBytes; ++e) {
    if (e >= count) continue;
    const std::uint64_t at = to + e * ElementBytes;
    if constexpr (ElementBytes == 1) {
      *reinterpret_cast<unsigned char*>(at) = static_cast<unsigned char>(words[e / 4] >> e % 4 * 8);
    } else if constexpr (ElementBytes == 2) {
      *reinterpret_cast<std::uint16_t*>(at) = static_cast<std::uint16_t>(words[e / 2] >> e % 2 * 16);
    } else {
#pragma unroll
      for (std::uint32_t i = 0; i < ElementBytes / 4; ++i) {
        reinterpret_cast<std::uint32_t*>(at)[i] = words[e * (ElementBytes / 4) + i];
      }
    }
  }
}

/// Consecutive threads take chunks so that a quarter of a warp reads from all banks and a warp writes as many bytes of
/// a column as that allows.
template <std::uint32_t ElementBytes, class Store>
__device__ void exchange_blocks(const transpose_piece& piece, const unsigned char* stage, const Store& store) {
  using square = chunk_square<ElementBytes>;
  constexpr std::uint32_t side = square::side;
  constexpr std::uint32_t near = side < 8 ? side : 8;  // chunks of a row beside each other in a warp
  const std::uint32_t groups = (1u << piece.row_bits) / side;
  const std::uint32_t squares = piece.tile_columns / side * groups;
#pragma unroll 1
  for (std::uint32_t i = threadIdx.x; i < squares; i += transpose_workers) {
    const std::uint32_t group = i / near % groups;
    const std::uint32_t chunk = i % near + near * (i / near / groups);
    if (chunk * side >= piece.columns || group * side >= piece.rows) continue;
    square block;
#pragma unroll
    for (std::uint32_t k = 0; k < side; ++k) {
      const std::uint32_t row = group * side + k;
      const uint4 value = *reinterpret_cast<const uint4*>(stage + piece.stage.chunk_at(row, chunk, row));
      block.word[k][0] = value.x;
      block.word[k][1] = value.y;
      block.word[k][2] = value.z;
      block.word[k][3] = value.w;
    }
#pragma unroll
    for (std::uint32_t c = 0; c < side; ++c) {
      store(chunk, chunk * side + c, group,
            make_uint4(block.turned(c, 0), block.turned(c, 1), block.turned(c, 2), block.turned(c, 3)));
    }
  }
}

template <std::uint32_t ElementBytes>
__device__ void store_blocks(const transpose_piece& piece, const unsigned char* stage) {
  constexpr std::uint32_t side = chunk_square<ElementBytes>::side;
  exchange_blocks<ElementBytes>(
      piece, stage, [&](std::uint32_t, std::uint32_t column, std::uint32_t group, const uint4& value) {
        if (column >= piece.columns) return;
        const std::uint64_t to = piece.destination + column * piece.destination_pitch + group * transpose_chunk;
        const std::uint32_t left = piece.rows - group * side;
        if (left >= side) {
          *reinterpret_cast<uint4*>(to) = value;
        } else {
          store_elements<ElementBytes>(to, value, left);
        }
      });
}

/// Element by element, down the columns.
template <std::uint32_t ElementBytes>
__device__ void exchange_elements(const transpose_piece& piece, const unsigned char* stage, unsigned char* exchanged,
                                  std::uint32_t element_bytes) {
  const std::uint32_t elements = piece.tile_columns << piece.row_bits;
  for (std::uint32_t i = threadIdx.x; i < elements; i += transpose_workers) {
    const std::uint32_t column = i >> piece.row_bits;
    const std::uint32_t row = i & ((1u << piece.row_bits) - 1);
    if (column >= piece.columns || row >= piece.rows) continue;
    const unsigned char* const from = stage + piece.stage.byte_at(row, column * element_bytes, row);
    unsigned char* const to = exchanged + piece.exchanged.byte_at(column, row * element_bytes, column);
    if constexpr (ElementBytes == 2) {
      *reinterpret_cast<std::uint16_t*>(to) = *reinterpret_cast<const std::uint16_t*>(from);
    } else if constexpr (ElementBytes == 4) {
      *reinterpret_cast<std::uint32_t*>(to) = *reinterpret_cast<const std::uint32_t*>(from);
    } else if constexpr (ElementBytes == 8) {
      *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(from);
    } else if constexpr (ElementBytes == 16) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    } else {
      for (std::uint32_t b = 0; b < element_bytes; ++b) to[b] = from[b];
    }
  }
}

/// One word of a column, at `offset` of its bytes, of which those inside the column are stored; `to` is a multiple
/// of 4.
template <class WordAt>
__device__ void store_word(std::uint64_t to, std::int32_t offset, std::int32_t bytes, const WordAt& word_at) {
  if (offset >= 0 && offset + 4 <= bytes) {
    const auto at = static_cast<std::uint32_t>(offset);
    const std::uint32_t low = word_at(at / 4 * 4);
    const std::uint32_t shift = at % 4 * 8;
    *reinterpret_cast<std::uint32_t*>(to) = shift == 0 ? low : __funnelshift_r(low, word_at(at / 4 * 4 + 4), shift);
    return;
  }
  for (std::int32_t i = 0; i < 4; ++i) {
    if (offset + i < 0 || offset + i >= bytes) continue;
    const auto at = static_cast<std::uint32_t>(offset + i);
    *reinterpret_cast<unsigned char*>(to + static_cast<std::uint32_t>(i)) =
        static_cast<unsigned char>(word_at(at / 4 * 4) >> at % 4 * 8);
  }
}

/// The exchanged tile goes out in words of the destination, whatever the alignment of its columns: a column a warp, or
/// all warps along a single run.
template <std::uint32_t Side>
__device__ void store_exchanged(const transpose_piece& piece, const unsigned char* exchanged) {
  const bool is_run = piece.store.rows == 1;
  const bool has_words = is_run || piece.exchanged.row_pitch % 4 == 0;
  const std::uint32_t words = (piece.store.bytes + 3) / 4 + 1;
  const std::uint32_t step = is_run ? transpose_workers : 32;
  const std::uint32_t first = is_run ? threadIdx.x : threadIdx.x % 32;
  for (std::uint32_t column = is_run ? 0 : threadIdx.x / 32; column < piece.store.rows;
       column += transpose_workers / 32) {
    const std::uint64_t begin = piece.destination + column * piece.store.pitch;
    const auto before = static_cast<std::int32_t>(begin % 4);
    const auto word_at = [&](std::uint32_t at) -> std::uint32_t {
      const unsigned char* const from = exchanged + piece.exchanged.byte_at(column, at, column / Side);
      if (has_words) return *reinterpret_cast<const std::uint32_t*>(from);
      return from[0] | from[1] << 8 | from[2] << 16 | std::uint32_t{from[3]} << 24;
    };
    for (std::uint32_t word = first; word < words; word += step) {
      store_word(begin / 4 * 4 + 4 * word, static_cast<std::int32_t>(4 * word) - before,
                 static_cast<std::int32_t>(piece.store.bytes), word_at);
    }
  }
}

/// From the stage to global memory. All workers; where a tile is not stored directly they meet once.
template <std::uint32_t ElementBytes, class Meet>
__device__ void store_transposed(const transpose_piece& piece, const unsigned char* stage, unsigned char* exchanged,
                                 std::uint32_t element_bytes, const Meet& meet) {
  constexpr bool may_have_blocks = ElementBytes != 0 && is_power_of_two<ElementBytes>();
  constexpr std::uint32_t side = may_have_blocks ? transpose_chunk / ElementBytes : 1;
  if constexpr (may_have_blocks) {
    if (piece.stores_directly) {
      store_blocks<ElementBytes>(piece, stage);
      return;
    }
    if (piece.has_blocks) {
      exchange_blocks<ElementBytes>(
          piece, stage, [&](std::uint32_t chunk, std::uint32_t column, std::uint32_t group, const uint4& value) {
            *reinterpret_cast<uint4*>(exchanged + piece.exchanged.chunk_at(column, group, chunk)) = value;
          });
    }
  }
  if (!piece.has_blocks) exchange_elements<ElementBytes>(piece, stage, exchanged, element_bytes);
  meet();
  store_exchanged<side>(piece, exchanged);
}

}  // namespace tmap::kernels
