// SPDX-License-Identifier: Apache-2.0
#include "kernels/ragged/segment_pipeline.cuh"
#include "kernels/values/value_words.cuh"

#include <tmap/detail/reduction_order.hpp>
#include <tmap/device/ptx.cuh>

namespace tmap::kernels {
namespace {

// Each warp has an equal share of the pieces, and takes the rows that begin in it. Rows longer than
// two shares are split: each warp takes the slices that begin in its share and writes their results
// to `partials`. A second kernel combines them. The order of reduction_order.hpp does not depend on
// shares, so the result is the same.

using ragged::row_reduction;
using tmap::detail::most_slices;

constexpr std::uint32_t stage_payload = 8192;
constexpr std::uint32_t reduce_warps = 8;

template <row_reduction Reduction>
__device__ float identity() {
  return Reduction == row_reduction::sum ? -0.0f : -__int_as_float(0x7f800000);
}

template <row_reduction Reduction>
__device__ float combine(float a, float b) {
  return Reduction == row_reduction::sum ? a + b : device::ptx::max_nan(a, b);
}

/// Combines the values of groups of `width` lanes. Every lane gets its group's result.
template <row_reduction Reduction>
__device__ float combine_lanes(float mine, std::uint32_t width = 32) {
  for (std::uint32_t distance = width / 2; distance != 0; distance /= 2) {
    mine = combine<Reduction>(mine, __shfl_xor_sync(~0u, mine, distance));
  }
  return mine;
}

/// The shares of all warps, in pieces.
struct shares {
  std::uint64_t each;
  std::uint64_t total;
  bool may_split;

  __device__ explicit shares(const planned_work& work)
      : total(work.ends[work.count - 1]), may_split(work.partials != nullptr) {
    const std::uint64_t count = gridDim.x * reduce_warps;
    each = detail::divide(total + count - 1, count);
  }
  __device__ static std::uint64_t own() { return std::uint64_t{blockIdx.x} * reduce_warps + threadIdx.x / 32; }
  __device__ std::uint64_t begin(std::uint64_t share) const { return share * each < total ? share * each : total; }
  __device__ bool splits(std::uint64_t pieces_of_row) const { return may_split && pieces_of_row > 2 * each; }
};

/// Returns the place for the results of a split row's slices. Split rows begin more than two shares
/// apart, so each pair of shares has one at most.
__device__ float* partials_of(const planned_work& work, const shares& all, std::uint64_t row_begin) {
  return work.partials + row_begin / all.each / 2 * most_slices;
}

/// The pieces of a row that has more than one.
struct piece_row {
  std::uint64_t begin;  ///< its first piece
  std::uint64_t pieces;
  std::uint64_t slice_pieces;
};

__device__ piece_row row_of_piece(const planned_work& work, const piece_walk& walk, std::uint64_t g) {
  const planned_tensor& tensor = walk.tensor();
  const std::uint64_t pieces = pieces_of_row(tensor, work.rule);
  const std::uint64_t width = tensor.way == route::tensor_map ? work.rule.box_dim[0] : work.rule.piece_elements;
  return {g - walk.within(g) % pieces, pieces, tmap::detail::slice_elements(tensor.dim[0]) / width};
}

/// Returns the first piece from `g` on at which a row, or a slice of a split row, begins.
__device__ std::uint64_t next_beginning(const planned_work& work, piece_walk& walk, const shares& all,
                                        std::uint64_t g) {
  if (g == 0 || g >= all.total) return g;
  walk.seek(g);
  const piece_row row = row_of_piece(work, walk, g);
  if (row.begin == g) return g;
  const std::uint64_t end = row.begin + row.pieces;
  if (!all.splits(row.pieces)) return end;
  const std::uint64_t slices = (g - row.begin + row.slice_pieces - 1) / row.slice_pieces;
  const std::uint64_t next = row.begin + slices * row.slice_pieces;
  return next < end ? next : end;
}

template <value_type Type, row_reduction Reduction>
struct reduce_rows {
  struct arguments {};
  using word = value_word<Type>;
  static constexpr std::uint32_t warps = reduce_warps;
  static constexpr std::uint32_t stages = 3;
  static constexpr std::uint32_t inputs = 1;
  static constexpr std::uint32_t stage_bytes = stage_payload + stage_alignment;
  static constexpr std::uint32_t scratch_bytes = sizeof(planned_tensor);
  static constexpr row_cuts cuts = row_cuts::even;  // slices are

  const planned_work& work;
  planned_tensor* record;
  float running = 0;      // of the slice
  float running_row = 0;  // of the slices before it

  __device__ reduce_rows(const planned_work& given, const arguments&, unsigned char* scratch)
      : work(given), record(reinterpret_cast<planned_tensor*>(scratch)) {}

  __device__ piece_steps steps(const planned_work&) const {
    const shares all(work);
    piece_walk walk(work, record);
    const std::uint64_t first = next_beginning(work, walk, all, all.begin(shares::own()));
    return {first, next_beginning(work, walk, all, all.begin(shares::own() + 1)), 1};
  }
  __device__ static element_sizes sizes() { return {sizeof(word), 0}; }
  __device__ static std::uint32_t reach() { return 0; }

  __device__ void staged(const segment& s, const unsigned char* row, const unsigned char*, std::uint32_t) {
    const std::uint64_t slice = tmap::detail::slice_elements(s.length);
    const std::uint64_t at = detail::divide(s.first, slice);
    const bool begins_slice = s.first == at * slice;
    if (begins_slice) running = identity<Reduction>();
    if (s.first == 0) running_row = identity<Reduction>();
    running = add_places(running, reinterpret_cast<const word*>(row), threadIdx.x % 32, s.columns);
    const std::uint64_t end = s.first + s.columns;
    if (end == s.length || end == (at + 1) * slice) finish_slice(s, at, end);
  }

  /// Combines every 32nd of the elements from `begin` on. It reads sixteen before it uses the
  /// first.
  __device__ static float add_places(float sum, const word* x, std::uint32_t begin, std::uint32_t end) {
    constexpr std::uint32_t batch = 16;
    std::uint32_t i = begin;
    for (; i + (batch - 1) * 32 < end; i += batch * 32) {
      word held[batch];
#pragma unroll
      for (std::uint32_t k = 0; k < batch; ++k) held[k] = x[i + k * 32];
#pragma unroll
      for (std::uint32_t k = 0; k < batch; ++k) sum = combine<Reduction>(sum, to_float<Type>(held[k]));
    }
    for (; i < end; i += 32) sum = combine<Reduction>(sum, to_float<Type>(x[i]));
    return sum;
  }

  __device__ void finish_slice(const segment& s, std::uint64_t slice, std::uint64_t end) {
    const std::uint64_t width = s.way == route::tensor_map ? work.rule.box_dim[0] : work.rule.piece_elements;
    const std::uint64_t pieces = s.length <= width ? 1 : detail::divide(s.length + width - 1, width);
    const shares all(work);
    const float result = combine_lanes<Reduction>(running);
    if (all.splits(pieces)) {
      const std::uint64_t row_begin = s.piece - detail::divide(s.first, width);
      if (threadIdx.x % 32 == 0) partials_of(work, all, row_begin)[slice] = result;
      return;
    }
    if (threadIdx.x % 32 == slice % 32) running_row = combine<Reduction>(running_row, result);
    if (end != s.length) return;
    const float whole = slice == 0 ? result : combine_lanes<Reduction>(running_row);
    if (threadIdx.x % 32 == 0) *reinterpret_cast<float*>(s.destination) = whole;
  }

  /// Reduces short rows, several at a time. A group of lanes takes each. A group has as many lanes
  /// as a row has elements, rounded up to a power of two, at most all 32.
  __device__ void direct(const segment& s) const {
    std::uint32_t width = 1;
    while (width < s.columns && width < 32) width *= 2;
    const std::uint32_t lane = threadIdx.x % 32;
    for (std::uint32_t begin = 0; begin < s.rows; begin += batch_rows * 32 / width) direct_batch(s, begin, width, lane);
  }

  static constexpr std::uint32_t batch_rows = 8;  // of a group of lanes

  __device__ static void direct_batch(const segment& s, std::uint32_t begin, std::uint32_t width, std::uint32_t lane) {
    float mine[batch_rows];
#pragma unroll
    for (float& value : mine) value = identity<Reduction>();
    for (std::uint32_t i = lane % width; i < s.columns; i += 32) {
      word held[batch_rows];
#pragma unroll
      for (std::uint32_t k = 0; k < batch_rows; ++k) {
        const std::uint32_t row = begin + k * (32 / width) + lane / width;
        const std::uint32_t there = row < s.rows ? row : 0;
        held[k] = reinterpret_cast<const word*>(s.source + there * s.source_pitch)[i];
      }
#pragma unroll
      for (std::uint32_t k = 0; k < batch_rows; ++k) mine[k] = combine<Reduction>(mine[k], to_float<Type>(held[k]));
    }
#pragma unroll
    for (std::uint32_t k = 0; k < batch_rows; ++k) {
      const std::uint32_t row = begin + k * (32 / width) + lane / width;
      const float whole = combine_lanes<Reduction>(mine[k], width);
      if (row < s.rows && lane % width == 0) {
        *reinterpret_cast<float*>(s.destination + row * s.destination_pitch) = whole;
      }
    }
  }
};

/// Combines the slices of each split row. The warp in whose share the row begins does it.
template <row_reduction Reduction>
__global__ void __launch_bounds__(reduce_warps * 32) combine_slices_kernel(const __grid_constant__ planned_work work) {
  __shared__ planned_tensor records[reduce_warps];
  cudaGridDependencySynchronize();
  const shares all(work);
  const std::uint64_t begin = all.begin(shares::own());
  const std::uint64_t end = all.begin(shares::own() + 1);
  if (begin == end) return;
  piece_walk walk(work, &records[threadIdx.x / 32]);
  walk.seek(end - 1);
  const piece_row row = row_of_piece(work, walk, end - 1);
  if (!all.splits(row.pieces) || row.begin < begin) return;

  const std::uint64_t slices = tmap::detail::slice_count(walk.tensor().dim[0]);
  const float* const results = partials_of(work, all, row.begin);
  float mine = identity<Reduction>();
  for (std::uint64_t i = threadIdx.x % 32; i < slices; i += 32) mine = combine<Reduction>(mine, results[i]);
  const float whole = combine_lanes<Reduction>(mine);
  if (threadIdx.x % 32 != 0) return;
  std::uint64_t destination = walk.tensor().destination;
  std::uint64_t outer = detail::divide(walk.within(row.begin), row.pieces);
  for (std::uint32_t axis = 1; axis < max_rank; ++axis) {
    const std::uint64_t above = detail::divide(outer, walk.tensor().dim[axis]);
    destination += (outer - above * walk.tensor().dim[axis]) * walk.tensor().destination_stride[axis - 1];
    outer = above;
  }
  *reinterpret_cast<float*>(destination) = whole;
}

template <value_type Type, row_reduction Reduction>
cudaError_t launch(const planned_work& work, const device_shape& device, cudaStream_t stream) {
  device_shape shape = device;
  if (shape.multiprocessors > most_reduce_blocks) shape.multiprocessors = most_reduce_blocks;
  const cudaError_t launched = launch_segments<reduce_rows<Type, Reduction>>(work, {}, shape, stream);
  if (launched != cudaSuccess) return launched;
  return launch_behind(combine_slices_kernel<Reduction>, {shape.multiprocessors, reduce_warps * 32}, stream, work);
}

template <value_type Type>
cudaError_t launch(const planned_work& work, row_reduction reduction, const device_shape& device, cudaStream_t stream) {
  return reduction == row_reduction::sum ? launch<Type, row_reduction::sum>(work, device, stream)
                                         : launch<Type, row_reduction::max>(work, device, stream);
}

static_assert(reduce_partials == (most_reduce_blocks * reduce_warps / 2 + 1) * most_slices);

}  // namespace

piece_rule reduce_pieces(ragged::value_type type, std::uint32_t rank) {
  return {stage_payload / ragged::value_bytes(type), {box_columns, 1, 1, 1, 1}, 0, rank};
}

cudaError_t launch_reduce_rows(const planned_work& work, ragged::value_type type, ragged::row_reduction reduction,
                               const device_shape& device, cudaStream_t stream) {
  switch (type) {
    case value_type::f16: return launch<value_type::f16>(work, reduction, device, stream);
    case value_type::bf16: return launch<value_type::bf16>(work, reduction, device, stream);
    default: return launch<value_type::f32>(work, reduction, device, stream);
  }
}

}  // namespace tmap::kernels
