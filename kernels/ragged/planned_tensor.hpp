// SPDX-License-Identifier: Apache-2.0
#pragma once

// The records that the planning kernel writes for each tensor of an operation and the working
// kernels read. The tensor is judged and folded, its route chosen, its work counted. The working
// kernels trust the records and know nothing of sources, sides, windows or policies.

#include <tmap/route.hpp>
#include <tmap/tensor_map.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>

namespace tmap::device {
struct queue_counter;  // work_queue.cuh
}

namespace tmap::kernels {

/// One tensor, ready to run. `dim` counts elements of the source. Dims that follow each other
/// without gaps on both sides are folded into one (all into dim 0 for a contiguous tensor). Route
/// `tensor_map` keeps the dims of its maps, each at most 2^31. Unused dims are 1. A folded dim may
/// be as large as 2^47, and all elements of a side have at most 2^47 bytes. Strides of dims of 1
/// have no meaning. A record has 128 bytes, which eight lanes load.
struct alignas(128) planned_tensor {
  std::uint64_t source;  ///< address; 0 for a box that is filled
  std::uint64_t destination;
  std::uint64_t dim[max_rank];
  std::uint64_t source_stride[max_rank - 1];       ///< bytes, [i] is the step of dim i + 1
  std::uint64_t destination_stride[max_rank - 1];  ///< bytes
  route way;
  std::uint32_t tensor;  ///< the index the caller knows it by: of its scale, its status, its maps
};
static_assert(sizeof(planned_tensor) == 128);

/// The places of one tensor's scales. Steps and strides are in bytes.
struct alignas(16) planned_scales {
  std::uint64_t address;
  std::uint64_t step;                  ///< from a block to the next one along dim 0 of the source
  std::uint64_t stride[max_rank - 1];  ///< [i]: from a block to the next one along dim i + 1
};

enum class piece_cut : std::uint32_t {
  by_route,  ///< as `piece_rule` describes
  boxes,     ///< each box is a piece on every route
  columns,   ///< as `column_piece_count` of column_pieces.hpp counts, on every route
};

/// How a tensor is cut into pieces, the units of work of a kernel. A piece never spans two tensors.
///
/// - On route `tensor_map`, each box of `box_dim` is a piece, dim 0 first. All are 0 if an
///   operation does not use maps.
/// - On other routes, a *row* is dim 0. Rows of more than `piece_elements` are cut into pieces of
///   that many elements (the last one shorter), row after row. Kernels may move the cuts by less
///   than 128 bytes, to where lines of memory meet. Shorter rows are not cut: `piece_elements /
///   dim[0]` of them make a piece (fewer make the last one).
/// - When transposing (`tile` is not 0), `transpose_piece_count` of transpose_tiles.hpp counts the
///   pieces on every route.
struct piece_rule {
  std::uint32_t piece_elements;
  std::uint32_t box_dim[max_rank];
  std::uint32_t tile;      ///< 0 unless transposing
  std::uint32_t map_rank;  ///< rank of the maps
  piece_cut cut{piece_cut::by_route};
};

/// The work of an operation in device memory. Tensors without pieces (empty, bad) are skipped.
struct planned_work {
  const planned_tensor* tensors;  ///< [count]
  /// [count]: the pieces of tensors 0 to i, below 2^63 (`most_tensor_bytes` of
  /// detail/judge_tensors.hpp).
  const std::uint64_t* ends;
  std::uint64_t count;
  piece_rule rule;
  /// The published source and destination maps, at [2 * tensor] and [2 * tensor + 1], of each
  /// tensor whose route is `tensor_map`. Null if no tensor takes it.
  const tensor_map* maps;
  device::queue_counter* queue;  ///< 0; for kernels whose pieces differ in size, else null
  float* partials;  ///< for `reduce_rows`: room for `reduce_partials` (ragged_launch.hpp); null: no row is split.
                    ///< For `column_sums`: room for `column_partials`
  const planned_scales* scales{};  ///< for `quantize`: of each tensor
};

}  // namespace tmap::kernels
