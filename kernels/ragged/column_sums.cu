// SPDX-License-Identifier: Apache-2.0
#include "kernels/launch_behind.hpp"
#include "kernels/ragged/column_pieces.hpp"
#include "kernels/ragged/lane_ring.cuh"
#include "kernels/ragged/piece_walk.cuh"
#include "kernels/ragged_launch.hpp"
#include "kernels/values/value_chunk.cuh"

#include <tmap/device/tile_shares.cuh>

namespace tmap::kernels {
namespace {

// Each block has an equal share of consecutive pieces. It adds up a chunk of columns slice by
// slice. If a chunk's slices are in several shares, each block writes the sums of its slices to
// `partials`, and a second kernel adds them. The order of column_order.hpp does not depend on
// shares.

using tmap::detail::column_slice_rows;
using tmap::detail::column_slices;
using tmap::detail::column_values;
using tmap::detail::most_column_slices;

constexpr std::uint32_t threads = column_warps * 32;
constexpr std::uint32_t chunk_lanes = column_chunk / chunk_values;  ///< that read one row of a chunk
constexpr std::uint32_t warp_rows = 32 / chunk_lanes;
static_assert(warp_rows * column_warps == column_values);

/// The sums of a lane's columns.
struct lane_sums {
  float of[chunk_values]{};

  template <value_type From>
  __device__ void add(const chunk<From>& values) {
#pragma unroll
    for (std::uint32_t i = 0; i < chunk_values; ++i) of[i] += values[i];
  }
  /// Adds up the four lanes that read the same columns.
  __device__ void join_rows() {
#pragma unroll
    for (std::uint32_t distance = 16; distance >= chunk_lanes; distance /= 2) {
#pragma unroll
      for (float& sum : of) sum += __shfl_xor_sync(~0u, sum, distance);
    }
  }
};

/// A chunk of columns of one tensor, as one lane sees it.
template <value_type From>
struct column_part {
  using word = value_word<From>;
  static constexpr std::uint32_t batch = chunk<From>::most;

  std::uint64_t source;  ///< of this lane's columns in row 0
  std::uint64_t pitch;
  std::uint64_t rows;
  std::uint32_t count;  ///< of this lane's columns
  bool is_wide;

  __device__ column_part(const planned_tensor& tensor, std::uint64_t first)
      : pitch(tensor.source_stride[0]), rows(tensor.dim[1]) {
    const std::uint64_t column = first + threadIdx.x % chunk_lanes * chunk_values;
    source = tensor.source + column * sizeof(word);
    count = chunk_count(column, tensor.dim[0]);
    is_wide = ((tensor.source | (rows > 1 ? pitch : 0)) % 16 | tensor.dim[0] % chunk_values) == 0;
  }

  /// Returns the row of this lane among those that the block reads at once.
  __device__ static std::uint32_t lane_row() { return threadIdx.x % 32 / chunk_lanes; }

  /// Loads this lane's columns of the rows `row`, `row + step`, ... below `end`. Those of rows that
  /// do not exist are +0.
  __device__ void load(chunk<From> (&held)[batch], std::uint64_t row, std::uint64_t end, std::uint64_t step) const {
    if (is_wide) {
      load_as<true>(held, row, end, step);
    } else {
      load_as<false>(held, row, end, step);
    }
  }

 private:
  template <bool IsWide>
  __device__ void load_as(chunk<From> (&held)[batch], std::uint64_t row, std::uint64_t end, std::uint64_t step) const {
#pragma unroll
    for (std::uint32_t k = 0; k < batch; ++k) {
      const std::uint64_t at = row + k * step;
      held[k].template load<IsWide>(source + at * pitch, at < end ? count : 0);
    }
  }
};

template <value_type To>
__device__ void store_sum(const planned_tensor& tensor, std::uint64_t column, float sum) {
  if (column < tensor.dim[0]) {
    reinterpret_cast<value_word<To>*>(tensor.destination)[column] = from_float<To>(sum);
  }
}

/// The sums of two of a lane's columns, from `2 * lane_row` on.
struct pair_sums {
  float of[chunk_values / warp_rows]{};

  /// Adds up the four lanes that read the same columns, and adds the result. Each exchange halves
  /// the columns that a lane is still concerned with.
  __device__ void add_rows(const lane_sums& rows) {
    float left[chunk_values];
#pragma unroll
    for (std::uint32_t i = 0; i < chunk_values; ++i) left[i] = rows.of[i];
#pragma unroll
    for (std::uint32_t distance = 16, count = chunk_values / 2; distance >= chunk_lanes; distance /= 2, count /= 2) {
      const bool is_upper = (threadIdx.x & distance) != 0;
#pragma unroll
      for (std::uint32_t i = 0; i < count; ++i) {
        const float given = is_upper ? left[i] : left[i + count];
        const float kept = is_upper ? left[i + count] : left[i];
        left[i] = kept + __shfl_xor_sync(~0u, given, distance);
      }
    }
#pragma unroll
    for (std::uint32_t i = 0; i < chunk_values / warp_rows; ++i) of[i] += left[i];
  }
};
static_assert(chunk_lanes == 8 && warp_rows == 4, "two exchanges leave two of eight columns");

/// Sums chunks of few rows. Each warp does this for itself. It loads the next chunk ahead if its
/// lanes hold all of it at once.
template <value_type From, value_type To>
class few_row_sums {
 public:
  explicit __device__ few_row_sums(const lane_ring<From, threads>& ring) : ring_(ring) {}

  /// Begins the chunk of columns from `first` on, and finishes the one before it.
  __device__ void begin(const planned_tensor& tensor, std::uint64_t first) {
    const bool exists = first < tensor.dim[0];
    const column_part<From> part(tensor, exists ? first : 0);
    const bool is_ahead = exists && part.is_wide && part.rows <= part.batch * warp_rows;
    if (is_ahead) {
#pragma unroll
      for (std::uint32_t k = 0; k < part.batch; ++k) {
        const std::uint64_t row = k * warp_rows + part.lane_row();
        if (k * warp_rows >= part.rows) break;
        ring_.load(ring_.after(set_), k, part.source + row * part.pitch, row < part.rows && part.count != 0);
      }
    }
    device::commit_copies();
    if (is_loaded_) finish<1>();
    set_ = ring_.after(set_);
    is_loaded_ = is_ahead;
    rows_ = static_cast<std::uint32_t>(part.rows);
    destination_ = tensor.destination;
    columns_ = tensor.dim[0];
    column_ = first + threadIdx.x % chunk_lanes * chunk_values + part.lane_row() * (chunk_values / warp_rows);
    if (!exists || is_loaded_) return;
    pair_sums all;
    for (std::uint32_t begin = 0; begin < rows_; begin += part.batch * warp_rows) {
      lane_chunks<From> held;
      part.load(held, begin + part.lane_row(), part.rows, warp_rows);
      add(all, held, rows_ - begin);
    }
    store(all);
  }
  __device__ void end() {
    if (is_loaded_) finish<0>();
    is_loaded_ = false;
  }

 private:
  template <int Pending>
  __device__ void finish() {
    device::wait_copies<Pending>();
    pair_sums all;
    lane_chunks<From> held;
    ring_.read(set_, held);
    add(all, held, rows_);
    store(all);
  }
  __device__ void add(pair_sums& all, const lane_chunks<From>& held, std::uint32_t rows) const {
#pragma unroll
    for (std::uint32_t k = 0; k < chunk<From>::most; ++k) {
      if (k * warp_rows >= rows) break;
      lane_sums sums;
      sums.add(held[k]);
      all.add_rows(sums);
    }
  }
  __device__ void store(const pair_sums& all) const {
#pragma unroll
    for (std::uint32_t i = 0; i < chunk_values / warp_rows; ++i) {
      if (column_ + i < columns_) {
        reinterpret_cast<value_word<To>*>(destination_)[column_ + i] = from_float<To>(all.of[i]);
      }
    }
  }

  lane_ring<From, threads> ring_;
  std::uint32_t set_{};
  bool is_loaded_{};  ///< the chunk of these members is in set `set_`, or on its way there
  std::uint32_t rows_{};
  std::uint64_t destination_{};
  std::uint64_t columns_{};
  std::uint64_t column_{};  ///< of the first sum that the lane stores
};

/// The sums of all warps of a block for a chunk.
using warp_sums = float[column_warps][column_chunk];

/// Adds up the sums of all lanes. All threads call it; the first ones return the sum of a column
/// each.
__device__ float join_slice(lane_sums& sums, warp_sums& shared) {
  sums.join_rows();
  if (threadIdx.x % 32 < chunk_lanes) {
#pragma unroll
    for (std::uint32_t i = 0; i < chunk_values; ++i) {
      shared[threadIdx.x / 32][threadIdx.x % chunk_lanes * chunk_values + i] = sums.of[i];
    }
  }
  __syncthreads();
  float sum = 0;
  if (threadIdx.x >= column_chunk) return sum;
#pragma unroll
  for (std::uint32_t w = 0; w < column_warps; ++w) sum += shared[w][threadIdx.x];
  return sum;
}

/// Sums `count` slices from slice `first` on. All threads call it, and it calls `use(slice, sum)`
/// for each slice. Only the first threads have sums, of a column each.
template <value_type From, class Use>
__device__ void sum_slices(const column_part<From>& part, const lane_ring<From, threads>& ring, std::uint32_t first,
                           std::uint32_t count, warp_sums (&shared)[2], std::uint32_t& turn, const Use& use) {
  constexpr std::uint32_t turn_rows = column_part<From>::batch * column_values;
  const std::uint64_t each = column_slice_rows(part.rows);
  const auto turns = static_cast<std::uint32_t>((each + turn_rows - 1) / turn_rows);
  const std::uint32_t own_row = threadIdx.x / 32 * warp_rows + part.lane_row();
  // Calls visit(chunk, address, whether it exists) for what the lane has in turn `i`.
  const auto visit_rows = [&](std::uint32_t i, const auto& visit) {
    const std::uint64_t begin = (first + i / turns) * each;
    const std::uint64_t end = part.rows - begin < each ? part.rows : begin + each;
    const std::uint64_t row = begin + std::uint64_t{i % turns} * turn_rows + own_row;
#pragma unroll
    for (std::uint32_t k = 0; k < column_part<From>::batch; ++k) {
      const std::uint64_t at = row + k * column_values;
      visit(k, part.source + at * part.pitch, at < end);
    }
  };
  lane_sums sums;
  const auto finish = [&](const lane_chunks<From>& held, std::uint32_t i) {
#pragma unroll
    for (std::uint32_t k = 0; k < column_part<From>::batch; ++k) sums.add(held[k]);
    if ((i + 1) % turns != 0) return;
    use(first + i / turns, join_slice(sums, shared[turn++ % 2]));
    sums = {};
  };
  if (part.is_wide) {
    const auto load = [&](std::uint32_t set, std::uint32_t i) {
      visit_rows(i, [&](std::uint32_t k, std::uint64_t address, bool exists) {
        ring.load(set, k, address, exists && part.count != 0);
      });
    };
    return load_ahead(ring, {0, 1}, count * turns, load, finish);
  }
  for (std::uint32_t i = 0; i < count * turns; ++i) {
    lane_chunks<From> held;
    visit_rows(i, [&](std::uint32_t k, std::uint64_t address, bool exists) {
      held[k].template load<false>(address, exists ? part.count : 0);
    });
    finish(held, i);
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
__global__ void __launch_bounds__(threads, 2) column_sums_kernel(const __grid_constant__ planned_work work) {
  extern __shared__ uint4 places[];
  __shared__ planned_tensor records[column_warps];
  __shared__ warp_sums sums[2];
  cudaGridDependencySynchronize();
  const column_shares shares(work);
  piece_walk walk(work, &records[threadIdx.x / 32]);
  const lane_ring<From, threads> ring(places);
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
  const cudaError_t launched =
      launch_behind(column_sums_kernel<From, To>, {blocks, threads, lane_ring_bytes(threads)}, stream, work);
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
