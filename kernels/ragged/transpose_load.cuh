// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loads one tile into shared memory by its route. A warp of its own loads through maps and by bulk
// copies, and the tile is there when the phase of the stage's barrier completes. Otherwise the
// threads that store the tiles load them, and a tile is there when they have waited for their
// copies and met. They copy aligned chunks of the source asynchronously, for rows of any alignment.

#include "kernels/ragged/small_divisor.cuh"
#include "kernels/ragged/transpose_piece.cuh"

#include <tmap/device/acquire.cuh>
#include <tmap/device/async_copy.cuh>
#include <tmap/device/bulk_copy.cuh>
#include <tmap/device/tile_copy.cuh>

#include <cstdint>

namespace tmap::kernels {

/// Loads a tile through a map. One thread calls it. The tile consists of boxes next to and below
/// each other. Those wholly outside the tensor are left out.
template <std::uint32_t Rank>
__device__ void load_boxes(const transpose_piece& piece, unsigned char* stage, device::acquired_map map,
                           std::uint32_t element_bytes, device::tile_barrier& barrier) {
  constexpr std::uint32_t box_bytes = transpose_box_rows * transpose_panel_bytes;
  const std::uint32_t box_columns = transpose_panel_bytes / element_bytes;
  const std::uint32_t across = (piece.columns + box_columns - 1) / box_columns;
  const std::uint32_t below = (piece.rows + transpose_box_rows - 1) / transpose_box_rows;
  barrier.arrive_expect(across * below * box_bytes);
  std::int32_t at[Rank];
  for (std::uint32_t axis = 0; axis < Rank; ++axis) at[axis] = piece.coordinates[axis];
  for (std::uint32_t panel = 0; panel < across; ++panel) {
    at[1] = piece.coordinates[1];
    for (std::uint32_t box = 0; box < below; ++box) {
      device::load_tile<Rank>(stage + panel * piece.stage.panel_pitch + box * box_bytes, map, at, barrier);
      at[1] += static_cast<std::int32_t>(transpose_box_rows);
    }
    at[0] += static_cast<std::int32_t>(box_columns);
  }
}

/// Loads the whole chunks of aligned lines. One warp calls it.
__device__ inline void load_bulk(const transpose_piece& piece, unsigned char* stage, device::tile_barrier& barrier) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t bytes = piece.load.bytes / transpose_chunk * transpose_chunk;
  if (lane == 0) barrier.arrive_expect(piece.load.count * bytes);
  __syncwarp();
  if (bytes == 0) return;
  for (std::uint32_t line = lane; line < piece.load.count; line += 32) {
    device::load_bytes(stage + line * piece.stage.pitch,
                       reinterpret_cast<const void*>(piece.load.address + line * piece.load.pitch), bytes, barrier);
  }
}

/// Copies bytes `begin` to `end - 1` of a chunk in aligned parts of 8, 4, 2 and 1 bytes. `begin` or
/// `end` is an end of the chunk.
template <class Copy>
__device__ void copy_chunk_part(std::uint32_t begin, std::uint32_t end, const Copy& copy) {
  if (begin == 0) {
#pragma unroll
    for (std::uint32_t size = 8; size != 0; size /= 2) {
      if ((end & size) == 0) continue;
      copy(begin, size);
      begin += size;
    }
  } else {
#pragma unroll
    for (std::uint32_t size = 1; size != transpose_chunk; size *= 2) {
      if ((begin & size) == 0) continue;
      copy(begin, size);
      begin += size;
    }
  }
}

/// Loads part of a chunk, at the same place of both addresses. Parts that are too small for an
/// asynchronous copy are there at once.
__device__ inline void load_chunk_part(unsigned char* to, std::uint64_t from, std::uint32_t begin, std::uint32_t end) {
  const auto copy = [&](std::uint32_t at, std::uint32_t size) {
    const auto* const source = reinterpret_cast<const unsigned char*>(from + at);
    if (size == 8) {
      device::copy_async<8>(to + at, source);
    } else if (size == 4) {
      device::copy_async<4>(to + at, source);
    } else if (size == 2) {
      *reinterpret_cast<std::uint16_t*>(to + at) = *reinterpret_cast<const std::uint16_t*>(source);
    } else {
      to[at] = *source;
    }
  };
  if (begin == 0 || end == transpose_chunk) return copy_chunk_part(begin, end, copy);
  for (std::uint32_t at = begin; at < end; ++at) copy(at, 1);
}

/// Loads chunk `chunk` of a line. It reads more than the line's bytes if those around them belong
/// to the same row.
__device__ inline void load_chunk(const transpose_piece& piece, unsigned char* stage, std::uint32_t line,
                                  std::uint32_t chunk) {
  const std::uint64_t address = piece.load.address + line * piece.load.pitch;
  const auto phase = static_cast<std::uint32_t>(address % transpose_chunk);
  const std::uint32_t at = chunk * transpose_chunk;
  const std::uint32_t end = phase + piece.load.bytes;
  if (at >= end) return;
  unsigned char* const to = stage + line * piece.stage.pitch + at;
  const std::uint64_t from = address - phase + at;
  if (at + piece.before >= phase && at + transpose_chunk <= end + piece.after) {
    device::copy_async<transpose_chunk>(to, reinterpret_cast<const void*>(from));
    return;
  }
  const std::uint32_t first = at >= phase || at + piece.before >= phase ? 0 : phase;
  const std::uint32_t last = end + piece.after - at;
  load_chunk_part(to, from, first, last < transpose_chunk ? last : transpose_chunk);
}

/// Load the chunks of all lines, or only those of their ends if the copy engine loads the rest.
__device__ inline void load_chunks(const transpose_piece& piece, unsigned char* stage, const worker_place& worker) {
  const std::uint32_t chunks = (piece.load.bytes + transpose_chunk - 1) / transpose_chunk + 1;
  const std::uint32_t all = chunks * piece.load.count;
  const small_divisor by_chunks(chunks);
#pragma unroll 4
  for (std::uint32_t i = worker.index; i < all; i += worker.count) {
    const std::uint32_t line = by_chunks(i);
    load_chunk(piece, stage, line, i - line * chunks);
  }
}
__device__ inline void load_line_ends(const transpose_piece& piece, unsigned char* stage, const worker_place& worker) {
  const std::uint32_t whole = piece.load.bytes / transpose_chunk;
  if (whole * transpose_chunk == piece.load.bytes) return;
  for (std::uint32_t line = worker.index; line < piece.load.count; line += worker.count) {
    load_chunk(piece, stage, line, whole);
  }
}

/// Loads lines without room for chunks: by single bytes, or by words if all is aligned to them.
template <std::uint32_t Bytes, class Copy>
__device__ void load_parts(const transpose_piece& piece, unsigned char* stage, const worker_place& worker,
                           const Copy& copy) {
  const std::uint32_t parts = piece.load.bytes / Bytes;
  const small_divisor by_parts(parts);
#pragma unroll 4
  for (std::uint32_t i = worker.index; i < parts * piece.load.count; i += worker.count) {
    const std::uint32_t line = by_parts(i);
    const std::uint32_t at = (i - line * parts) * Bytes;
    copy(stage + line * piece.stage.pitch + at,
         reinterpret_cast<const unsigned char*>(piece.load.address + line * piece.load.pitch + at));
  }
}

/// Loads the parts that the copy engine does not load.
__device__ inline void load_by_workers(const transpose_piece& piece, unsigned char* stage, const worker_place& worker) {
  if (piece.way == route::bulk) return load_line_ends(piece, stage, worker);
  if (piece.loads_chunks) return load_chunks(piece, stage, worker);
  const std::uint64_t bits = piece.load.address | piece.load.pitch | piece.load.bytes | piece.stage.pitch;
  if (bits % 4 == 0) {
    load_parts<4>(piece, stage, worker,
                  [](unsigned char* to, const unsigned char* from) { device::copy_async<4>(to, from); });
  } else {
    load_parts<1>(piece, stage, worker, [](unsigned char* to, const unsigned char* from) { *to = *from; });
  }
}

}  // namespace tmap::kernels
