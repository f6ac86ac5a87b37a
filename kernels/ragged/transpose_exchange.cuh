// SPDX-License-Identifier: Apache-2.0
#pragma once

// Exchanges rows and columns of one tile in shared memory and stores it. Tiles that are not made of
// squares of chunks are exchanged element by element, to the places of their bytes in the
// destination's chunks. Then the chunks are stored.

#include "kernels/ragged/small_divisor.cuh"
#include "kernels/ragged/transpose_load.cuh"
#include "kernels/ragged/transpose_piece.cuh"
#include "kernels/ragged/transpose_pixels.cuh"
#include "kernels/ragged/transpose_squares.cuh"

#include <cstdint>

namespace tmap::kernels {

/// Stores part of a chunk, at the same place of both addresses.
__device__ inline void store_chunk_part(std::uint64_t to, const unsigned char* from, std::uint32_t begin,
                                        std::uint32_t end) {
  const auto copy = [&](std::uint32_t at, std::uint32_t size) {
    if (size == 8) {
      *reinterpret_cast<uint2*>(to + at) = *reinterpret_cast<const uint2*>(from + at);
    } else if (size == 4) {
      *reinterpret_cast<std::uint32_t*>(to + at) = *reinterpret_cast<const std::uint32_t*>(from + at);
    } else if (size == 2) {
      *reinterpret_cast<std::uint16_t*>(to + at) = *reinterpret_cast<const std::uint16_t*>(from + at);
    } else {
      *reinterpret_cast<unsigned char*>(to + at) = from[at];
    }
  };
  if (begin == 0 || end == transpose_chunk) return copy_chunk_part(begin, end, copy);
  for (std::uint32_t at = begin; at < end; ++at) copy(at, 1);
}

template <std::uint32_t ElementBytes>
__device__ void copy_element(unsigned char* to, const unsigned char* from) {
  if constexpr (ElementBytes == 2) {
    *reinterpret_cast<std::uint16_t*>(to) = *reinterpret_cast<const std::uint16_t*>(from);
  } else if constexpr (ElementBytes == 4) {
    *reinterpret_cast<std::uint32_t*>(to) = *reinterpret_cast<const std::uint32_t*>(from);
  } else if constexpr (ElementBytes == 8) {
    *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(from);
  } else if constexpr (ElementBytes == 16) {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
  } else {
    *to = *from;
  }
}

/// Exchanges elements through shared memory. A warp takes 8 rows by 4 columns at a time, which lie
/// in different banks before and after.
template <class Copy>
__device__ void exchange_elements(const transpose_piece& piece, const unsigned char* stage, unsigned char* turned,
                                  std::uint32_t element_bytes, const worker_place& worker, const Copy& copy) {
  const std::uint32_t first = worker.index % 8;
  const std::uint32_t columns = piece.columns;
  const std::uint32_t rows = piece.rows;
  const shared_lines before = piece.stage;  // a copy, as stores to shared memory might change the piece's
  const shared_lines after = piece.turned;
  for (std::uint32_t column = worker.index / 8; column < columns; column += worker.count / 8) {
    const unsigned char* const from = stage + before.within(first, column * element_bytes);
    unsigned char* const to = turned + after.begin_of(column);
#pragma unroll 4
    for (std::uint32_t row = first; row < rows; row += 8) {
      copy(to + row * element_bytes, from + before.begin_of(row));
    }
  }
}

/// Exchanges a tile of any extents, down its columns.
template <class Copy>
__device__ void exchange_thin(const transpose_piece& piece, const unsigned char* stage, unsigned char* turned,
                              std::uint32_t element_bytes, const worker_place& worker, const Copy& copy) {
  const small_divisor by_rows(piece.rows);
#pragma unroll 4
  for (std::uint32_t i = worker.index; i < piece.columns * piece.rows; i += worker.count) {
    const std::uint32_t column = by_rows(i);
    const std::uint32_t row = i - column * piece.rows;
    copy(turned + piece.turned.begin_of(column) + row * element_bytes,
         stage + piece.stage.begin_of(row) + column * element_bytes);
  }
}

/// Exchanges a tile into `turned`.
template <std::uint32_t ElementBytes>
__device__ void exchange_in_shared(const transpose_piece& piece, const unsigned char* stage, unsigned char* turned,
                                   std::uint32_t element_bytes, const worker_place& worker) {
  const auto exchange = [&](const auto& copy) {
    if (piece.exchange == exchange_way::elements) {
      exchange_elements(piece, stage, turned, element_bytes, worker, copy);
    } else {
      exchange_thin(piece, stage, turned, element_bytes, worker, copy);
    }
  };
  if constexpr (ElementBytes != 0) {
    if (piece.has_whole_elements) return exchange(copy_element<ElementBytes>);
  }
  exchange([element_bytes](unsigned char* to, const unsigned char* from) {
    for (std::uint32_t b = 0; b < element_bytes; ++b) to[b] = from[b];
  });
}

/// Stores an exchanged tile by the destination's chunks.
__device__ inline void store_turned(const transpose_piece& piece, const unsigned char* turned,
                                    const worker_place& worker) {
  const global_lines lines = piece.store;
  const std::uint32_t turned_pitch = piece.turned.pitch;
  const std::uint32_t chunks = (lines.bytes + transpose_chunk - 1) / transpose_chunk + 1;
  const std::uint32_t all = chunks * lines.count;
  const small_divisor by_chunks(chunks);
#pragma unroll 4
  for (std::uint32_t i = worker.index; i < all; i += worker.count) {
    const std::uint32_t line = by_chunks(i);
    const std::uint32_t at = (i - line * chunks) * transpose_chunk;
    const std::uint64_t address = lines.address + line * lines.pitch;
    const auto phase = static_cast<std::uint32_t>(address % transpose_chunk);
    const std::uint32_t end = phase + lines.bytes;
    if (at >= end) continue;
    const std::uint64_t to = address - phase + at;
    const unsigned char* const from = turned + line * turned_pitch + at;
    if (at >= phase && at + transpose_chunk <= end) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    } else {
      store_chunk_part(to, from, at >= phase ? 0 : phase, at + transpose_chunk <= end ? transpose_chunk : end - at);
    }
  }
}

/// Stores an exchanged tile of short lines without gaps in shared memory, byte by byte.
__device__ inline void store_bytes_of_lines(const transpose_piece& piece, const unsigned char* turned,
                                            const worker_place& worker) {
  const small_divisor by_bytes(piece.store.bytes);
#pragma unroll 4
  for (std::uint32_t i = worker.index; i < piece.store.bytes * piece.store.count; i += worker.count) {
    const std::uint32_t line = by_bytes(i);
    const std::uint32_t at = i - line * piece.store.bytes;
    *reinterpret_cast<unsigned char*>(piece.store.address + line * piece.store.pitch + at) =
        turned[line * piece.turned.pitch + at];
  }
}

/// Stores a tile from its stage to global memory. All workers call it. If the tile is exchanged in
/// shared memory, they meet once.
template <std::uint32_t ElementBytes, class Meet>
__device__ void store_transposed(const transpose_piece& piece, const unsigned char* stage, unsigned char* turned,
                                 std::uint32_t element_bytes, const worker_place& worker, const Meet& meet) {
  if constexpr (ElementBytes != 0) {
    if (piece.exchange == exchange_way::squares) return store_squares<ElementBytes>(piece, stage, worker);
  }
  if constexpr (ElementBytes == 1) {
    if (piece.exchange == exchange_way::planes) return store_planes(piece, stage, worker);
    if (piece.exchange == exchange_way::pixels) return store_pixels(piece, stage, worker);
  }
  exchange_in_shared<ElementBytes>(piece, stage, turned, element_bytes, worker);
  meet();
  if (piece.stores_chunks) {
    store_turned(piece, turned, worker);
  } else {
    store_bytes_of_lines(piece, turned, worker);
  }
}

}  // namespace tmap::kernels
