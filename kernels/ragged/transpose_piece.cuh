// SPDX-License-Identifier: Apache-2.0
#pragma once

// One tile of a transposing kernel: where it lies in global memory, and how it lies in shared memory before and after
// its rows and columns are exchanged. Rows and columns are the source's: dim 1 and dim 0.

#include "kernels/ragged/planned_tensor.hpp"
#include "kernels/ragged/transpose_tiles.hpp"

#include <cstdint>

namespace tmap::kernels {

inline constexpr std::uint32_t transpose_chunk = 16;
/// Threads of a block that store tiles: its first ones. One more warp finds them.
inline constexpr std::uint32_t transpose_workers = 128;
inline constexpr std::uint32_t transpose_worker_warps = transpose_workers / 32;

/// Where byte `offset` of row `row` of a tile is in shared memory. Rows either follow each other, or stand in panels of
/// 128 bytes as the copy engine leaves boxes side by side. `mask`: chunks of 16 bytes are exchanged by this much of the
/// row number, or of the row number divided by a chunk's elements, so that columns do not meet in the same banks.
struct shared_layout {
  std::uint32_t row_pitch;
  std::uint32_t panel_pitch;  ///< from one 128 bytes of a row to the next
  std::uint32_t mask;

  __device__ std::uint32_t chunk_at(std::uint32_t row, std::uint32_t chunk, std::uint32_t turn) const {
    return row * row_pitch + (chunk >> 3) * panel_pitch + (((chunk & 7) ^ (turn & mask)) * transpose_chunk);
  }
  __device__ std::uint32_t byte_at(std::uint32_t row, std::uint32_t offset, std::uint32_t turn) const {
    return chunk_at(row, offset / transpose_chunk, turn) + offset % transpose_chunk;
  }
};

/// Rows of bytes between global and shared memory.
struct row_run {
  std::uint32_t rows;
  std::uint32_t bytes;  ///< of each
  std::uint64_t pitch;  ///< in global memory
};

struct transpose_piece {
  std::uint64_t source;  ///< address of the tile's first element
  std::uint64_t destination;
  std::uint64_t destination_pitch;  ///< from one column to the next
  row_run load;
  row_run store;          ///< out of the exchanged tile
  std::uint32_t columns;  ///< of the tile that exist
  std::uint32_t rows;
  std::uint32_t row_bits;  ///< the tile has 1 << row_bits rows, existing or not,
  std::uint32_t tile_columns;
  shared_layout stage;
  shared_layout exchanged;
  bool has_blocks;       ///< whole chunks in both directions: exchanged in registers
  bool stores_directly;  ///< from there, as the destination's columns are aligned to chunks
  route way;             ///< that loads it
  const tensor_map* map;
  std::int32_t coordinates[max_rank];
};

template <std::uint32_t ElementBytes>
__device__ constexpr bool is_power_of_two() {
  return (ElementBytes & (ElementBytes - 1)) == 0;
}

/// Coordinates of the first element of tile `within` of a tensor.
struct tile_place {
  std::uint64_t at[max_rank];

  __device__ tile_place(const planned_tensor& tensor, const transpose_tile& tile, std::uint64_t within) {
#pragma unroll
    for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
      const std::uint64_t step = axis < 2 ? tile.dim[axis] : 1;
      const std::uint64_t steps = (tensor.dim[axis] + step - 1) / step;
      at[axis] = within == 0 ? 0 : within % steps * step;
      within = within == 0 ? 0 : within / steps;
    }
  }
};

/// Outer coordinates move both addresses.
__device__ inline void place(transpose_piece& piece, const planned_tensor& tensor, const transpose_tile& tile,
                             const tile_place& where, std::uint32_t element_bytes) {
  const std::uint64_t column = where.at[0];
  const std::uint64_t row = where.at[1];
  piece.source = tensor.source + column * element_bytes + row * tensor.source_stride[0];
  piece.destination = tensor.destination + row * element_bytes + column * tensor.destination_stride[0];
#pragma unroll
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    piece.coordinates[axis] = static_cast<std::int32_t>(where.at[axis]);
    if (axis < 2 || where.at[axis] == 0) continue;
    piece.source += where.at[axis] * tensor.source_stride[axis - 1];
    piece.destination += where.at[axis] * tensor.destination_stride[axis - 1];
  }
  const std::uint64_t columns_left = tensor.dim[0] - column;
  const std::uint64_t rows_left = tensor.dim[1] - row;
  piece.columns = columns_left < tile.dim[0] ? static_cast<std::uint32_t>(columns_left) : tile.dim[0];
  piece.rows = rows_left < tile.dim[1] ? static_cast<std::uint32_t>(rows_left) : tile.dim[1];
}

/// Rows that follow each other without gaps, all inside the tile, are one.
__device__ inline row_run run_of(std::uint32_t rows, std::uint32_t row_bytes, std::uint64_t pitch, bool is_packed) {
  if (is_packed) return {1, rows * row_bytes, 0};
  return {rows, row_bytes, pitch};
}

__device__ inline std::uint32_t whole_chunks(std::uint32_t bytes) {
  return (bytes + transpose_chunk - 1) / transpose_chunk * transpose_chunk;
}

/// The route that can load the tile's rows as they lie, at best the one that was chosen.
__device__ inline route loadable(route chosen, std::uint64_t address, const row_run& run, std::uint32_t shared_pitch) {
  if (chosen == route::tensor_map || chosen == route::plain) return chosen;
  const std::uint64_t bits = run.rows == 1 ? address : address | run.pitch | shared_pitch;
  if (chosen == route::bulk && bits % transpose_chunk == 0) return chosen;
  return bits % 4 == 0 ? route::ldgsts : route::plain;
}

/// Narrow tiles, of less than 128 bytes in one direction, lie in shared memory without gaps: then they are one run of
/// bytes where the tensor has no gaps either.
template <std::uint32_t ElementBytes>
__device__ void lay_out(transpose_piece& piece, const planned_tensor& tensor, const transpose_tile& tile,
                        std::uint32_t element_bytes) {
  const std::uint32_t unit = transpose_unit_bytes(element_bytes);
  const bool has_narrow_rows = tile.dim[0] * unit < transpose_box_row_bytes;
  const bool has_narrow_columns = tile.dim[1] * unit < transpose_box_row_bytes;
  const std::uint32_t row_bytes = tile.dim[0] * element_bytes;
  const std::uint32_t column_bytes = tile.dim[1] * element_bytes;
  piece.tile_columns = tile.dim[0];
  piece.row_bits = static_cast<std::uint32_t>(__ffs(static_cast<int>(tile.dim[1]))) - 1;
  piece.destination_pitch = tensor.destination_stride[0];
  piece.has_blocks = is_power_of_two<ElementBytes>() && ElementBytes != 0 && !has_narrow_rows && !has_narrow_columns;

  const bool has_packed_rows =
      has_narrow_rows && tensor.dim[0] <= tile.dim[0] && tensor.source_stride[0] == tensor.dim[0] * element_bytes;
  piece.load = run_of(piece.rows, piece.columns * element_bytes, tensor.source_stride[0], has_packed_rows);
  if (tensor.way == route::tensor_map) {
    piece.stage = {transpose_box_row_bytes, tile.dim[1] * transpose_box_row_bytes, 7};
  } else if (has_narrow_rows) {
    piece.stage = {has_packed_rows ? piece.columns * element_bytes : row_bytes, 128, 0};
  } else {
    piece.stage = {whole_chunks(row_bytes) + transpose_chunk, 128, 0};
  }
  piece.way = loadable(tensor.way, piece.source, piece.load, piece.stage.row_pitch);

  const bool has_packed_columns = has_narrow_columns && tensor.dim[1] <= tile.dim[1] &&
                                  tensor.destination_stride[0] == tensor.dim[1] * element_bytes;
  piece.store = run_of(piece.columns, piece.rows * element_bytes, piece.destination_pitch, has_packed_columns);
  piece.exchanged = {has_packed_columns   ? piece.rows * element_bytes
                     : has_narrow_columns ? column_bytes
                                          : whole_chunks(column_bytes),
                     128, piece.has_blocks ? 7u : 0u};
  piece.stores_directly = piece.has_blocks && (piece.destination | piece.destination_pitch) % transpose_chunk == 0;
}

}  // namespace tmap::kernels
