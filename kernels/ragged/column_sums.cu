// SPDX-License-Identifier: Apache-2.0
#include "kernels/launch_behind.hpp"
#include "kernels/ragged/column_few_rows.cuh"
#include "kernels/ragged/column_slices.cuh"
#include "kernels/ragged/piece_walk.cuh"
#include "kernels/ragged_launch.hpp"

#include <tmap/device/tile_shares.cuh>

namespace tmap::kernels {
namespace {

// Each block has an equal share of consecutive pieces. It adds up a chunk of columns slice by
// slice. If a chunk's slices are in several shares, each block writes the sums of its slices to
// `partials`, and a second kernel adds them. The order of column_order.hpp does not depend on
// shares.

using tmap::detail::column_slices;
using tmap::detail::most_column_slices;

template <value_type To>
__device__ void store_sum(const planned_tensor& tensor, std::uint64_t column, float sum) {
  if (column < tensor.dim[0]) {
    reinterpret_cast<value_word<To>*>(tensor.destination)[column] = from_float<To>(sum);
  }
}

/// The shares of all blocks, in pieces.
struct column_shares {
  std::uint64_t each;
  std::uint64_t extra;  ///< shares that have one piece more
  device::tile_range own;

  __device__ explicit column_shares(const planned_work& work) {
    const std::uint64_t total = work.ends[work.count - 1];
    each = detail::divide(total, gridDim.x);
    extra = total - each * gridDim.x;
    own = device::tile_shares(total, gridDim.x).run(blockIdx.x);
  }
  /// Returns the share that has a piece.
  __device__ std::uint64_t of(std::uint64_t piece) const {
    const std::uint64_t longer = extra * (each + 1);
    return piece < longer ? detail::divide(piece, each + 1) : extra + detail::divide(piece - longer, each);
  }
};

/// The pieces of a chunk.
struct chunk_pieces {
  std::uint64_t first;  ///< of all pieces
  std::uint64_t slices;
  std::uint64_t column;

  __device__ chunk_pieces(const piece_walk& walk, std::uint64_t g) {
    slices = column_slices(walk.tensor().dim[1]);
    const std::uint64_t chunk = detail::divide(walk.within(g), slices);
    first = g - (walk.within(g) - chunk * slices);
    column = chunk * column_chunk;
  }
  __device__ bool is_within(const device::tile_range& share) const {
    return first >= share.first && first + slices <= share.last;
  }
};

/// Returns the place for the sums of a split chunk's slices. A share has the beginning of one such
/// chunk at most.
__device__ float* partials_of(const planned_work& work, std::uint64_t share) {
  return work.partials + share * most_column_slices * column_chunk;
}

template <value_type From, value_type To>
__global__ void __launch_bounds__(column_threads, 2) column_sums_kernel(const __grid_constant__ planned_work work) {
  extern __shared__ uint4 places[];
  __shared__ planned_tensor records[column_warps];
  __shared__ warp_sums sums[2];
  cudaGridDependencySynchronize();
  const column_shares shares(work);
  piece_walk walk(work, &records[threadIdx.x / 32]);
  const lane_ring<From, column_threads> ring(places);
  few_row_sums<From, To> few(ring);
  std::uint32_t turn = 0;
  bool has_begun = false;
  for (std::uint64_t g = shares.own.first; g < shares.own.last;) {
    if (has_begun) {
      walk.seek_ahead(g);
    } else {
      walk.seek(g);
    }
    has_begun = true;
    const planned_tensor& tensor = walk.tensor();
    if (tensor.dim[1] <= few_rows) {
      few.begin(tensor, (walk.within(g) * column_warps + threadIdx.x / 32) * column_chunk);
      ++g;
      continue;
    }
    few.end();
    const chunk_pieces pieces(walk, g);
    const column_part<From> part(tensor, pieces.column);
    const std::uint64_t end = pieces.first + pieces.slices;
    const bool is_whole = pieces.is_within(shares.own);
    float* const partials = is_whole ? nullptr : partials_of(work, shares.of(pieces.first));
    const std::uint64_t last = end < shares.own.last ? end : shares.own.last;
    float all = 0;
    while (g < last) {
      const std::uint64_t count = part.rows >> 32 == 0 ? last - g : 1;  // else turns might not fit in 32 bits
      sum_slices(part, ring, static_cast<std::uint32_t>(g - pieces.first), static_cast<std::uint32_t>(count), sums,
                 turn, [&](std::uint32_t slice, float sum) {
                   if (!is_whole && threadIdx.x < column_chunk) partials[slice * column_chunk + threadIdx.x] = sum;
                   all += sum;
                 });
      g += count;
    }
    if (is_whole && threadIdx.x < column_chunk) store_sum<To>(tensor, pieces.column + threadIdx.x, all);
  }
  few.end();
}

/// Adds up the slices of each split chunk. The block in whose share it begins does it.
template <value_type To>
__global__ void __launch_bounds__(column_chunk) add_slices_kernel(const __grid_constant__ planned_work work) {
  __shared__ planned_tensor records[column_chunk / 32];
  cudaGridDependencySynchronize();
  const column_shares shares(work);
  if (shares.own.first >= shares.own.last) return;
  piece_walk walk(work, &records[threadIdx.x / 32]);
  walk.seek(shares.own.last - 1);
  if (walk.tensor().dim[1] <= few_rows) return;
  const chunk_pieces pieces(walk, shares.own.last - 1);
  if (pieces.is_within(shares.own) || pieces.first < shares.own.first) return;
  const float* const partials = partials_of(work, blockIdx.x) + threadIdx.x;
  float all = 0;
#pragma unroll 8
  for (std::uint64_t slice = 0; slice < pieces.slices; ++slice) all += partials[slice * column_chunk];
  store_sum<To>(walk.tensor(), pieces.column + threadIdx.x, all);
}

template <value_type From, value_type To>
cudaError_t launch(const planned_work& work, const device_shape& device, cudaStream_t stream) {
  const std::uint32_t most = column_partials / (most_column_slices * column_chunk);
  const std::uint32_t wanted = 2 * device.multiprocessors;
  const std::uint32_t blocks = wanted < most ? wanted : most;
  const cudaError_t launched = launch_behind(column_sums_kernel<From, To>,
                                             {blocks, column_threads, lane_ring_bytes(column_threads)}, stream, work);
  if (launched != cudaSuccess) return launched;
  return launch_behind(add_slices_kernel<To>, {blocks, column_chunk}, stream, work);
}

template <value_type From>
cudaError_t launch_from(const planned_work& work, value_type to, const device_shape& device, cudaStream_t stream) {
  return to == value_type::f32 ? launch<From, value_type::f32>(work, device, stream)
                               : launch<From, From>(work, device, stream);
}

}  // namespace

piece_rule column_sum_pieces() {
  piece_rule rule{};
  rule.cut = piece_cut::columns;
  return rule;
}

cudaError_t launch_column_sums(const planned_work& work, value_type from, value_type to, const device_shape& device,
                               cudaStream_t stream) {
  switch (from) {
    case value_type::f16: return launch_from<value_type::f16>(work, to, device, stream);
    case value_type::bf16: return launch_from<value_type::bf16>(work, to, device, stream);
    default: return launch_from<value_type::f32>(work, to, device, stream);
  }
}

}  // namespace tmap::kernels
