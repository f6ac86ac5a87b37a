// SPDX-License-Identifier: Apache-2.0
#pragma once

// A warp's walk over the pieces of planned work, and the rows of a piece. The warp knows the ends
// of 31 tensors at a time. It fetches the next tensor's record while it works on the current one.
// So small tensors, with one piece each, wait for no load.

#include "kernels/ragged/planned_tensor.hpp"
#include "kernels/ragged/row_part.hpp"

#include <tmap/device/tensor_search.cuh>

#include <cstdint>

namespace tmap::kernels {

/// The pieces first, first + step, ... below last.
struct piece_steps {
  std::uint64_t first;
  std::uint64_t last;
  std::uint64_t step;
};

/// Returns whether workers take single pieces in turns, which they do if tensors have at least
/// `least` pieces on average. Memory is faster when all work in one stretch of it, and pieces that
/// take longer, such as copies among fills, are shared evenly. But a turn of a whole GPU is one or
/// two thousand pieces. With small tensors, each piece is in another tensor, which the worker must
/// enter, or even search for.
__device__ inline bool takes_turns(const planned_work& work, std::uint64_t pieces, std::uint64_t least) {
  return pieces >= work.count * least;
}

/// All lanes make the same calls. `shared_record` belongs to the warp. `step` is the least distance
/// between pieces.
class piece_walk {
 public:
  __device__ piece_walk(const planned_work& work, planned_tensor* shared_record, std::uint64_t step = 1)
      : tensors_(work.tensors), ends_(work.ends), count_(work.count), record_(shared_record), step_(step) {}

  /// Goes to piece `g`, which must exist.
  __device__ void seek(std::uint64_t g) {
    const bool fits = count_ <= window_tensors;
    open_window(fits ? 0 : device::find_tensor_warp(ends_, g, 0, count_ - 1));
    fetch(window_first_);  // most often the right one, and on its way together with the ends
    enter(g);
  }

  /// Goes to piece `g`, the current one or a later one, which must exist.
  __device__ void seek_ahead(std::uint64_t g) {
    if (g < tensor_end_) return;
    if (__ballot_sync(~0u, window_end_ > g) == 0) {
      open_window(device::find_tensor_near_warp(ends_, g, window_first_ + window_tensors, count_ - 1));
    }
    enter(g);
  }

  /// Goes to the first piece, or ahead to a later one.
  __device__ void go_to(std::uint64_t g) {
    if (has_begun_) {
      seek_ahead(g);
    } else {
      seek(g);
    }
    has_begun_ = true;
  }

  __device__ const planned_tensor& tensor() const { return *record_; }
  /// Returns the number of piece `g` within its tensor.
  __device__ std::uint64_t within(std::uint64_t g) const { return g - tensor_begin_; }

 private:
  static constexpr std::uint32_t window_tensors = 31;
  static constexpr std::uint32_t record_parts = sizeof(planned_tensor) / sizeof(uint4);

  __device__ static std::uint32_t lane() { return threadIdx.x % 32; }

  // Lane 0 holds the end of the tensor before the window, lane i that of the window's tensor i - 1.
  __device__ void open_window(std::uint64_t first) {
    window_first_ = first;
    const std::uint64_t at = first + lane();
    const std::uint64_t last = at < count_ ? at : count_;
    window_end_ = last == 0 ? 0 : ends_[last - 1];
    fetched_ = ~std::uint64_t{0};
  }

  // Enters the tensor of piece `g`, which is in the window.
  __device__ void enter(std::uint64_t g) {
    const std::uint32_t place = __ffs(static_cast<int>(__ballot_sync(~0u, window_end_ > g))) - 1;
    tensor_end_ = __shfl_sync(~0u, window_end_, place);
    tensor_begin_ = __shfl_sync(~0u, window_end_, place - 1);
    const std::uint64_t tensor = window_first_ + place - 1;
    if (fetched_ != tensor) fetch(tensor);
    __syncwarp();
    if (lane() < record_parts) reinterpret_cast<uint4*>(record_)[lane()] = next_record_;
    __syncwarp();
    const std::uint64_t next = g + step_ < tensor_end_ ? tensor_end_ : g + step_;
    const std::uint32_t after = __ballot_sync(~0u, window_end_ > next);
    if (after != 0) fetch(window_first_ + __ffs(static_cast<int>(after)) - 2);
  }

  __device__ void fetch(std::uint64_t tensor) {
    fetched_ = tensor;
    next_record_ = reinterpret_cast<const uint4*>(tensors_ + tensor)[lane() % record_parts];
  }

  const planned_tensor* tensors_;
  const std::uint64_t* ends_;
  std::uint64_t count_;
  planned_tensor* record_;
  std::uint64_t step_;
  std::uint64_t window_first_{};
  std::uint64_t window_end_{};
  std::uint64_t tensor_begin_{};
  std::uint64_t tensor_end_{};
  std::uint64_t fetched_{};
  uint4 next_record_{};
  bool has_begun_{};  ///< `go_to` was called
};

/// Rows of equal length at equal distances, on both sides.
struct row_block {
  std::uint64_t source;
  std::uint64_t destination;
  std::uint64_t source_pitch;
  std::uint64_t destination_pitch;
  std::uint32_t rows;
  std::uint32_t bytes;  ///< of a row
};

namespace detail {

static __noinline__ __device__ std::uint64_t divide_wide(std::uint64_t value, std::uint64_t by) {
  return value / by;
}
__device__ inline std::uint64_t divide(std::uint64_t value, std::uint64_t by) {
  if (((value | by) >> 32) == 0) return static_cast<std::uint32_t>(value) / static_cast<std::uint32_t>(by);
  return divide_wide(value, by);
}

struct row_place {
  std::uint64_t source;
  std::uint64_t destination;
  std::uint64_t at;  ///< in dim 1
};

/// Returns where row `row` of dims 1 to 4 begins. It is out of line, as most tensors are folded to
/// rank 1 or 2.
static __noinline__ __device__ row_place place_row(const planned_tensor& tensor, std::uint64_t row) {
  row_place place{tensor.source, tensor.destination, 0};
#pragma unroll 1
  for (std::uint32_t axis = 1; axis < max_rank; ++axis) {
    const std::uint64_t above = divide(row, tensor.dim[axis]);
    const std::uint64_t at = row - above * tensor.dim[axis];
    if (axis == 1) place.at = at;
    place.source += at * tensor.source_stride[axis - 1];
    place.destination += at * tensor.destination_stride[axis - 1];
    row = above;
  }
  return place;
}

/// Calls `visit` with the rows `row` to `row + rows - 1`. Each block of rows lies within one dim 1.
template <class Visit>
__device__ void visit_rows(const planned_tensor& tensor, std::uint64_t row, std::uint32_t rows, std::uint32_t bytes,
                           const Visit& visit) {
  for (;;) {
    row_place place{tensor.source + row * tensor.source_stride[0],
                    tensor.destination + row * tensor.destination_stride[0], row};
    if (row >= tensor.dim[1]) place = place_row(tensor, row);
    const std::uint64_t left = tensor.dim[1] - place.at;
    const std::uint32_t here = left < rows ? static_cast<std::uint32_t>(left) : rows;
    visit(
        row_block{place.source, place.destination, tensor.source_stride[0], tensor.destination_stride[0], here, bytes});
    if (here == rows) return;
    row += here;
    rows -= here;
  }
}

}  // namespace detail

/// Calls `visit` with the rows of piece `within` of a tensor that is cut into rows (`piece_rule`),
/// block by block.
template <class Visit>
__device__ void visit_piece(const planned_tensor& tensor, const piece_rule& rule, std::uint64_t within,
                            std::uint32_t element_bytes, const Visit& visit) {
  const std::uint64_t length = tensor.dim[0];
  const bool is_cut = length > rule.piece_elements;
  std::uint64_t row = 0;
  std::uint64_t part = within;
  std::uint32_t rows = 1;
  if (is_cut) {
    const std::uint64_t parts = detail::divide(length + rule.piece_elements - 1, rule.piece_elements);
    row = within < parts ? 0 : detail::divide(within, parts);
    part -= row * parts;
  } else {
    const std::uint32_t each = rule.piece_elements / static_cast<std::uint32_t>(length);
    row = within * each;
    const std::uint64_t left = tensor.dim[1] * tensor.dim[2] * tensor.dim[3] * tensor.dim[4] - row;
    rows = left < each ? static_cast<std::uint32_t>(left) : each;
  }
  const std::uint32_t whole = is_cut ? 0 : static_cast<std::uint32_t>(length) * element_bytes;
  detail::visit_rows(tensor, row, rows, whole, [&](row_block block) {
    if (is_cut) {
      const row_part cut = cut_at_lines(length, part, rule.piece_elements, block.destination, element_bytes);
      if (cut.elements == 0) return;
      block.source += cut.first * element_bytes;
      block.destination += cut.first * element_bytes;
      block.bytes = cut.elements * element_bytes;
    }
    visit(block);
  });
}

}  // namespace tmap::kernels
