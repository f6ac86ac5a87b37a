// SPDX-License-Identifier: Apache-2.0
#pragma once

// One tile of a transposing kernel: its place in global memory, and its layout in shared memory
// before and after its rows and columns are exchanged. Rows and columns are those of the source,
// dim 1 and dim 0.

#include "kernels/ragged/planned_tensor.hpp"
#include "kernels/ragged/transpose_tiles.hpp"

#include <cstdint>

namespace tmap::kernels {

/// 16 aligned bytes, of global memory or of shared memory.
inline constexpr std::uint32_t transpose_chunk = 16;

/// A thread among those that load and store tiles.
struct worker_place {
  std::uint32_t index;
  std::uint32_t count;
};

/// Lines of bytes in shared memory, each a row of the source or of the destination. A line has the
/// same offset in its first chunk as in global memory, so that chunks move whole. Lines of boxes
/// stand in panels of 128 bytes, their chunks exchanged by the line's number as the copy engine
/// swizzles them.
struct shared_lines {
  std::uint32_t pitch;
  std::uint32_t panel_pitch;  ///< from 128 bytes of a line to the next 128
  std::uint32_t mask;         ///< 7 or 0
  std::uint32_t phase;        ///< of line 0
  std::uint32_t phase_step;

  __device__ std::uint32_t phase_of(std::uint32_t line) const { return (phase + line * phase_step) % transpose_chunk; }
  __device__ std::uint32_t begin_of(std::uint32_t line) const { return line * pitch + phase_of(line); }
  /// Returns the distance of byte `offset` from the begin of any line that equals `line` modulo 8.
  __device__ std::uint32_t within(std::uint32_t line, std::uint32_t offset) const {
    return offset / 128 * panel_pitch + (offset % 128 ^ (line & mask) * transpose_chunk);
  }
};

/// Lines of bytes in global memory.
struct global_lines {
  std::uint64_t address;
  std::uint64_t pitch;
  std::uint32_t count;
  std::uint32_t bytes;  ///< of each
};

/// How a tile's rows and columns are exchanged.
enum class exchange_way : std::uint32_t {
  squares,   ///< in registers; all is aligned to chunks
  elements,  ///< through shared memory
  thin,      ///< the same, of a tile that may have any extents
  planes,    ///< pixels of three bytes become planes
  pixels,    ///< planes become pixels of three bytes
};

struct transpose_piece {
  global_lines load;
  global_lines store;
  std::uint64_t destination_pitch;
  std::uint32_t before;   ///< bytes of the source that may be read before a line, at most a chunk
  std::uint32_t after;    ///< and after it
  std::uint32_t columns;  ///< of the tile that exist
  std::uint32_t rows;
  shared_lines stage;
  shared_lines turned;
  exchange_way exchange;
  bool loads_chunks;  ///< lines have room for whole chunks; otherwise they have no gaps between them
  bool stores_chunks;
  bool has_whole_elements;  ///< all addresses are multiples of an element's size, a power of two
  route way;                ///< the route that loads it
  const tensor_map* map;
  std::int32_t coordinates[max_rank];
};

/// Coordinates of the first element of tile `within` of a tensor.
struct tile_place {
  std::uint64_t at[max_rank];

  __device__ tile_place(const planned_tensor& tensor, const transpose_tile& tile, std::uint64_t within) {
#pragma unroll
    for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
      const std::uint64_t step = axis < 2 ? tile.dim[axis] : 1;
      const std::uint64_t steps = within == 0 ? 1 : (tensor.dim[axis] + step - 1) / step;
      at[axis] = within == 0 ? 0 : within % steps * step;
      within = within == 0 ? 0 : within / steps;
    }
  }
};

__device__ inline std::uint32_t at_most(std::uint64_t value, std::uint32_t most) {
  return value < most ? static_cast<std::uint32_t>(value) : most;
}
__device__ inline std::uint32_t whole_chunks(std::uint32_t bytes) {
  return (bytes + transpose_chunk - 1) / transpose_chunk * transpose_chunk;
}

/// Places the tile in global memory. Outer coordinates move both addresses.
__device__ inline void place(transpose_piece& piece, const planned_tensor& tensor, const transpose_tile& tile,
                             const tile_place& where, std::uint32_t element_bytes) {
  const std::uint64_t column = where.at[0];
  const std::uint64_t row = where.at[1];
  piece.load.address = tensor.source + column * element_bytes + row * tensor.source_stride[0];
  piece.store.address = tensor.destination + row * element_bytes + column * tensor.destination_stride[0];
#pragma unroll
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    piece.coordinates[axis] = static_cast<std::int32_t>(where.at[axis]);
    if (axis < 2 || where.at[axis] == 0) continue;
    piece.load.address += where.at[axis] * tensor.source_stride[axis - 1];
    piece.store.address += where.at[axis] * tensor.destination_stride[axis - 1];
  }
  piece.columns = at_most(tensor.dim[0] - column, tile.dim[0]);
  piece.rows = at_most(tensor.dim[1] - row, tile.dim[1]);
  const std::uint64_t columns_after = tensor.dim[0] - column - piece.columns;
  piece.before = at_most(column * element_bytes, transpose_chunk);
  piece.after = at_most(columns_after * element_bytes, transpose_chunk);
}

/// One side of a tile: `count` lines of `bytes` bytes. Whole lines that follow each other without
/// gaps are a single line of global memory.
struct tile_side {
  std::uint32_t count;
  std::uint32_t bytes;
  std::uint64_t pitch;
  bool is_run;
  bool is_short;  ///< lines of less than 128 bytes, without gaps in shared memory
};

__device__ inline void lay_out_side(const tile_side& side, std::uint32_t full_bytes, global_lines& global,
                                    shared_lines& shared) {
  const auto phase = static_cast<std::uint32_t>(global.address % transpose_chunk);
  global.pitch = side.is_run ? 0 : side.pitch;
  global.count = side.is_run ? 1 : side.count;
  global.bytes = side.is_run ? side.count * side.bytes : side.bytes;
  if (side.is_run) {
    shared = {side.bytes, 128, 0, phase, 0};
  } else if (side.is_short) {
    shared = {full_bytes, 128, 0, 0, 0};
  } else {
    shared = {whole_chunks(full_bytes) + transpose_chunk, 128, 0, phase,
              static_cast<std::uint32_t>(side.pitch % transpose_chunk)};
  }
}

/// Returns the route that can load the tile. Bulk copies need whole chunks in aligned lines.
__device__ inline route loadable(const transpose_piece& piece, route chosen) {
  if (chosen != route::bulk) return chosen;
  const std::uint64_t bits = piece.load.count == 1 ? piece.load.address : piece.load.address | piece.load.pitch;
  return piece.loads_chunks && bits % transpose_chunk == 0 ? chosen : route::ldgsts;
}

/// Lays out the tile in shared memory and chooses how to exchange it. `element_bytes` is a constant
/// if it is a power of two.
__device__ inline void lay_out(transpose_piece& piece, const planned_tensor& tensor, const transpose_tile& tile,
                               std::uint32_t element_bytes) {
  const std::uint64_t source_pitch = tensor.source_stride[0];
  const std::uint64_t destination_pitch = tensor.destination_stride[0];
  const bool has_run_rows =
      tile.is_narrow && tensor.dim[0] <= tile.dim[0] && source_pitch == tensor.dim[0] * element_bytes;
  const bool has_run_columns = tensor.dim[1] <= tile.dim[1] && destination_pitch == tensor.dim[1] * element_bytes;
  piece.destination_pitch = destination_pitch;
  const std::uint32_t unit = transpose_unit_bytes(element_bytes);
  const bool has_short_rows = tile.is_narrow && tile.dim[0] * unit < transpose_panel_bytes;
  const bool has_short_columns = tile.is_narrow && tile.dim[1] * unit < transpose_panel_bytes;
  piece.loads_chunks = !has_short_rows || has_run_rows;
  piece.stores_chunks = !has_short_columns || has_run_columns;
  if (has_run_rows) piece.before = piece.after = 0;
  lay_out_side({piece.rows, piece.columns * element_bytes, source_pitch, has_run_rows, has_short_rows},
               tile.dim[0] * element_bytes, piece.load, piece.stage);
  lay_out_side({piece.columns, piece.rows * element_bytes, destination_pitch, has_run_columns, has_short_columns},
               tile.dim[1] * element_bytes, piece.store, piece.turned);
  if (tensor.way == route::tensor_map) {
    piece.stage = {transpose_panel_bytes, tile.dim[1] * transpose_panel_bytes, 7, 0, 0};
  }
  piece.way = loadable(piece, tensor.way);

  const std::uint64_t bits =
      piece.load.address | piece.store.address | (piece.rows == 1 ? 0 : source_pitch) | destination_pitch;
  const bool is_power = (element_bytes & (element_bytes - 1)) == 0;
  piece.has_whole_elements = is_power && bits % element_bytes == 0;
  const bool has_squares = is_power && !tile.is_narrow && bits % transpose_chunk == 0;
  if (has_squares) {
    piece.exchange = exchange_way::squares;
  } else if (!tile.is_narrow) {
    piece.exchange = exchange_way::elements;
  } else if (element_bytes == 1 && has_run_rows && piece.columns == 3) {
    piece.exchange = exchange_way::planes;
  } else if (element_bytes == 1 && has_run_columns && piece.rows == 3 && piece.loads_chunks) {
    piece.exchange = exchange_way::pixels;
  } else {
    piece.exchange = exchange_way::thin;
  }
}

}  // namespace tmap::kernels
