// SPDX-License-Identifier: Apache-2.0
#pragma once

// The walk of the vector operations (cast, saxpy, max_pool_1d, reduce_rows) over planned work. A
// warp walks over segments, each some rows of one tensor between two columns. Long rows come one at
// a time and are staged in shared memory. Short rows come many at once and are not staged. On route
// `tensor_map` a segment is a box.

#include "kernels/ragged/piece_walk.cuh"
#include "kernels/ragged/planned_tensor.hpp"

#include <cstdint>

namespace tmap::kernels {

/// Rows of fewer elements are not staged: one at a time, they would leave most lanes idle.
inline constexpr std::uint32_t staged_columns = 128;

struct segment {
  std::uint64_t source;  ///< address of the first row's first element here
  std::uint64_t destination;
  std::uint64_t source_pitch;
  std::uint64_t destination_pitch;
  std::uint64_t first;   ///< column of the row
  std::uint64_t length;  ///< of the whole row, in elements
  std::uint64_t piece;   ///< number of its piece, within all work
  std::uint32_t columns;
  std::uint32_t rows;
  std::uint32_t tensor;  ///< as the caller counts
  route way;
  bool staged;
};

/// The coordinates at which a box begins.
struct box_corner {
  std::int32_t coordinates[max_rank];
};

struct element_sizes {
  std::uint32_t source;
  std::uint32_t destination;
};

/// How rows of more than one piece are cut. With `at_lines`, a piece may be longer by fewer
/// elements than a line has bytes.
enum class row_cuts { even, at_lines };

/// Returns the number of pieces of a row.
__device__ inline std::uint64_t pieces_of_row(const planned_tensor& tensor, const piece_rule& rule) {
  const std::uint64_t width = tensor.way == route::tensor_map ? rule.box_dim[0] : rule.piece_elements;
  return tensor.dim[0] <= width ? 1 : detail::divide(tensor.dim[0] + width - 1, width);
}

/// All lanes make the same calls. `record` is shared memory that belongs to the warp.
template <row_cuts Cuts>
class segment_walk {
 public:
  __device__ segment_walk(const planned_work& work, planned_tensor* record, piece_steps steps, element_sizes sizes)
      : walk_(work, record, steps.step), rule_(work.rule), steps_(steps), sizes_(sizes) {}

  /// Writes the next segment, or returns false if none is left. `corner` is written only for boxes.
  __device__ bool next(segment& out, box_corner& corner) {
    do {
      if (rows_left_ == 0) {
        if (steps_.first >= steps_.last) return false;
        enter_piece(steps_.first);
        steps_.first += steps_.step;
      }
      const planned_tensor& tensor = walk_.tensor();
      out.length = tensor.dim[0];
      out.piece = steps_.first - steps_.step;
      out.tensor = tensor.tensor;
      out.way = tensor.way;
      if (tensor.way == route::tensor_map) {
        cut_box(tensor, out, corner);
      } else {
        cut_rows(tensor, out);
      }
    } while (Cuts == row_cuts::at_lines && out.columns == 0);
    return true;
  }

 private:
  __device__ void enter_piece(std::uint64_t g) {
    walk_.go_to(g);
    const planned_tensor& tensor = walk_.tensor();
    within_ = walk_.within(g);
    part_ = 0;
    rows_left_ = 1;
    if (tensor.way == route::tensor_map) return;
    const std::uint64_t length = tensor.dim[0];
    const std::uint64_t rows = tensor.dim[1] * tensor.dim[2] * tensor.dim[3] * tensor.dim[4];
    if (length <= rule_.piece_elements) {
      const std::uint32_t each = rule_.piece_elements / static_cast<std::uint32_t>(length);
      row_ = within_ * each;
      rows_left_ = rows - row_ < each ? static_cast<std::uint32_t>(rows - row_) : each;
      return;
    }
    const std::uint64_t parts = pieces_of_row(tensor, rule_);
    row_ = rows == 1 ? 0 : detail::divide(within_, parts);
    part_ = within_ - row_ * parts;
  }

  __device__ void cut_rows(const planned_tensor& tensor, segment& out) {
    out.staged = tensor.dim[0] >= staged_columns;
    const std::uint32_t wanted = out.staged ? 1 : rows_left_;
    out.source = tensor.source;
    out.destination = tensor.destination;
    out.source_pitch = tensor.source_stride[0];
    out.destination_pitch = tensor.destination_stride[0];
    std::uint64_t outer = detail::divide(row_, tensor.dim[1]);
    const std::uint64_t inner = row_ - outer * tensor.dim[1];
    add(out, tensor, 0, inner);
    for (std::uint32_t axis = 2; axis < max_rank && outer != 0; ++axis) {
      const std::uint64_t above = detail::divide(outer, tensor.dim[axis]);
      add(out, tensor, axis - 1, outer - above * tensor.dim[axis]);
      outer = above;
    }
    const row_part part = part_of(tensor.dim[0], out.destination);
    out.first = part.first;
    out.columns = part.elements;
    out.source += part.first * sizes_.source;
    out.destination += part.first * sizes_.destination;
    const std::uint64_t here = tensor.dim[1] - inner;
    out.rows = here < wanted ? static_cast<std::uint32_t>(here) : wanted;
    row_ += out.rows;
    rows_left_ -= out.rows;
  }

  /// Returns the current part of a row of `length` whose destination begins at `destination`.
  __device__ row_part part_of(std::uint64_t length, std::uint64_t destination) const {
    if (length <= rule_.piece_elements) return {0, static_cast<std::uint32_t>(length)};
    if constexpr (Cuts == row_cuts::at_lines) {
      return cut_at_lines(length, part_, rule_.piece_elements, destination, sizes_.destination);
    } else {
      const std::uint64_t first = part_ * rule_.piece_elements;
      return {first, smaller(length - first, rule_.piece_elements)};
    }
  }

  __device__ void cut_box(const planned_tensor& tensor, segment& out, box_corner& corner) {
    std::uint64_t within = within_;
    out.source = tensor.source;
    out.destination = tensor.destination;
#pragma unroll
    for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
      std::uint64_t at = 0;
      if (axis < rule_.map_rank) {
        const std::uint64_t boxes = detail::divide(tensor.dim[axis] + rule_.box_dim[axis] - 1, rule_.box_dim[axis]);
        const std::uint64_t above = detail::divide(within, boxes);
        at = (within - above * boxes) * rule_.box_dim[axis];
        within = above;
      }
      corner.coordinates[axis] = static_cast<std::int32_t>(at);
      if (axis == 0) {
        out.source += at * sizes_.source;
        out.destination += at * sizes_.destination;
      } else {
        add(out, tensor, axis - 1, at);
      }
    }
    out.first = static_cast<std::uint32_t>(corner.coordinates[0]);
    out.columns = smaller(tensor.dim[0] - out.first, rule_.box_dim[0]);
    out.rows = rule_.map_rank == 1
                   ? 1
                   : smaller(tensor.dim[1] - static_cast<std::uint32_t>(corner.coordinates[1]), rule_.box_dim[1]);
    out.source_pitch = tensor.source_stride[0];
    out.destination_pitch = tensor.destination_stride[0];
    out.staged = true;
    rows_left_ = 0;
  }

  __device__ static std::uint32_t smaller(std::uint64_t a, std::uint32_t b) {
    return a < b ? static_cast<std::uint32_t>(a) : b;
  }

  __device__ static void add(segment& out, const planned_tensor& tensor, std::uint32_t stride, std::uint64_t steps) {
    out.source += steps * tensor.source_stride[stride];
    out.destination += steps * tensor.destination_stride[stride];
  }

  piece_walk walk_;
  const piece_rule& rule_;
  piece_steps steps_;
  element_sizes sizes_;
  std::uint64_t within_{};
  std::uint64_t row_{};
  std::uint64_t part_{};
  std::uint32_t rows_left_{};
};

}  // namespace tmap::kernels
