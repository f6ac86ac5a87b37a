// SPDX-License-Identifier: Apache-2.0
#include "kernels/launch_behind.hpp"
#include "kernels/ragged/lane_ring.cuh"
#include "kernels/ragged/quantize_rows.cuh"
#include "kernels/ragged/small_divisor.cuh"
#include "kernels/ragged_launch.hpp"

#include <tmap/device/tile_shares.cuh>

#include <type_traits>

namespace tmap::kernels {
namespace {

// Values go from global memory to registers, where the largest magnitude is found, and from there
// to the destination. A warp takes blocks of 1 x 128, half a warp each. A thread block takes a
// block of 128 x 128, or a long row. It reads rows that do not fit in its registers twice. Aligned
// values are loaded ahead into shared memory, where each lane has places of its own, so that loads
// never cease.

using ragged::quantize_values;
using ragged::scale_block;

constexpr std::uint32_t width = tmap::detail::scale_block_width;
constexpr std::uint32_t half_warp = width / chunk_values;
static_assert(half_warp == 16);

// More threads would have fewer registers each, and then wait for what they have loaded sooner.
constexpr std::uint32_t threads_per_multiprocessor = 512;
constexpr std::uint32_t row_threads = 128;
constexpr std::uint32_t row_warps = row_threads / 32;

template <value_type From>
constexpr std::uint32_t square_threads = half_warp* width / chunk<From>::most;

/// With fewer pieces a tensor, entering a tensor at each turn costs more than turns gain.
constexpr std::uint64_t least_turns = 64;

/// The work of one of a launch's equal workers.
struct worker_share {
  piece_steps pieces;
  piece_share within;  ///< the same in each piece
};

/// Returns the pieces of a worker that shares none.
__device__ piece_steps pieces_of(const planned_work& work, std::uint64_t worker, std::uint64_t workers) {
  const std::uint64_t pieces = work.ends[work.count - 1];
  if (takes_turns(work, pieces, least_turns)) return {worker, pieces, workers};
  const device::tile_range run = device::tile_shares(pieces, workers).run(worker);
  return {run.first, run.last, 1};
}

/// Returns the work of a worker. With few pieces, several workers share each.
__device__ worker_share share_of(const planned_work& work, std::uint32_t worker, std::uint32_t workers) {
  const std::uint64_t pieces = work.ends[work.count - 1];
  if (pieces == 0 || 2 * pieces > workers) return {pieces_of(work, worker, workers), {0, 1}};
  const std::uint32_t each = workers / static_cast<std::uint32_t>(pieces);
  const std::uint32_t number = worker / static_cast<std::uint32_t>(pieces);
  const std::uint32_t piece = worker % static_cast<std::uint32_t>(pieces);
  return {{piece, number < each ? piece + 1 : piece, 1}, {number, each}};
}

/// The shared memory of a warp that walks over pieces. Bodies read their part from it, so that
/// their registers are their own.
struct walk_shared {
  planned_tensor record;
  scaled_rows part;
};

/// Calls `use(tensor, number of the piece in it)` for each piece. All lanes of the warp call it.
template <class Use>
__device__ void visit_pieces(const planned_work& work, walk_shared& shared, const piece_steps& steps, const Use& use) {
  piece_walk walk(work, &shared.record, steps.step);
  bool has_begun = false;
  for (std::uint64_t g = steps.first; g < steps.last; g += steps.step) {
    if (has_begun) {
      walk.seek_ahead(g);
    } else {
      walk.seek(g);
    }
    has_begun = true;
    use(walk.tensor(), walk.within(g));
  }
}

/// Writes the part of a tensor that the warp works on next.
template <value_type From>
__device__ void set_part(walk_shared& shared, const planned_work& work, const planned_tensor& tensor,
                         const row_range& range, std::uint32_t block_rows) {
  const planned_scales& scales = work.scales[tensor.tensor];
  const scaled_rows part = place_range<ragged::value_bytes(From)>(tensor, scales, range, width, block_rows);
  __syncwarp();
  if (threadIdx.x % 32 == 0) shared.part = part;
  __syncwarp();
}

// Blocks of 1 x 128.

/// The blocks of some rows, as a lane sees them. With `IsDense`, nothing lies between them on
/// either side.
template <value_type From, bool IsDense>
struct lane_blocks {
  static constexpr std::uint32_t element_bytes = sizeof(value_word<From>);

  scaled_rows part;
  std::uint32_t columns;
  std::uint32_t per_row;
  std::uint32_t count;
  small_divisor row_of_block;
  std::uint32_t half;   ///< of the warp: every other block is its own
  std::uint32_t place;  ///< of the lane's values in a block

  __device__ explicit lane_blocks(const scaled_rows& rows)
      : part(rows),
        columns(static_cast<std::uint32_t>(rows.columns)),
        per_row((columns + width - 1) / width),
        count(rows.rows * per_row),
        row_of_block(per_row),
        half(threadIdx.x % 32 / half_warp),
        place(threadIdx.x % half_warp * chunk_values) {}

  /// Returns the values of the lane in block `block`.
  __device__ std::uint32_t values(std::uint32_t block) const {
    if (block >= count) return 0;
    return IsDense ? chunk_values : chunk_count(column(block), columns);
  }
  /// The blocks of a lane's batch are `first`, `first` + 2, ...
  __device__ std::uint64_t source(std::uint32_t first, std::uint32_t k) const {
    return address(part.source, part.source_pitch, element_bytes, first, k);
  }
  __device__ std::uint64_t destination(std::uint32_t first, std::uint32_t k) const {
    return address(part.destination, part.destination_pitch, 1, first, k);
  }
  __device__ float* scale(std::uint32_t block) const {
    const std::uint32_t row = row_of_block(block);
    return reinterpret_cast<float*>(part.scales + row * part.scale_pitch + (block - row * per_row) * part.scale_step);
  }

 private:
  __device__ std::uint32_t column(std::uint32_t block) const {
    return (block - row_of_block(block) * per_row) * width + place;
  }
  __device__ std::uint64_t address(std::uint64_t begin, std::uint64_t pitch, std::uint32_t bytes, std::uint32_t first,
                                   std::uint32_t k) const {
    if constexpr (IsDense) return begin + std::uint64_t{first * width + place} * bytes + k * 2 * width * bytes;
    const std::uint32_t block = first + 2 * k;
    return begin + row_of_block(block) * pitch + std::uint64_t{column(block)} * bytes;
  }
};

/// Quantizes the blocks of some rows by a warp.
template <value_type From, value_type To, bool IsWide, bool IsDense>
__device__ __noinline__ void quantize_parts(const scaled_rows& part, const lane_ring<From, row_threads> ring,
                                            piece_share share, bool powers_of_two) {
  constexpr std::uint32_t batch = chunk<From>::most;  // blocks that half a warp holds at once
  const lane_blocks<From, IsDense> blocks(part);
  const std::uint32_t turns = (blocks.count + 2 * batch - 1) / (2 * batch);
  const auto finish = [&](const lane_chunks<From>& held, std::uint32_t turn) {
    const std::uint32_t first = turn * 2 * batch + blocks.half;
    std::uint32_t tops[batch];
#pragma unroll
    for (std::uint32_t k = 0; k < batch; ++k) tops[k] = held[k].top();
    const auto made = scale_of_top<From, To>(join_tops_of_chunks(tops), powers_of_two);
    const std::uint32_t scaled = first + 2 * chunk_of_lane<batch>();
    if (threadIdx.x % (half_warp / batch) == 0 && scaled < blocks.count) *blocks.scale(scaled) = made.scale;
#pragma unroll
    for (std::uint32_t k = 0; k < batch; ++k) {
      const float factor = __shfl_sync(~0u, made.inverse, blocks.half * half_warp + k * (half_warp / batch));
      const std::uint32_t values = blocks.values(first + 2 * k);
      held[k].template store<To, IsWide>(blocks.destination(first, k), values, factor);
    }
  };
  if constexpr (IsWide) {
    const auto load = [&](std::uint32_t set, std::uint32_t turn) {
      const std::uint32_t first = turn * 2 * batch + blocks.half;
#pragma unroll
      for (std::uint32_t k = 0; k < batch; ++k) {
        ring.load(set, k, blocks.source(first, k), blocks.values(first + 2 * k) != 0);
      }
    };
    load_ahead(ring, share, turns, load, finish);
  } else {
    for (std::uint32_t turn = share.number; turn < turns; turn += share.count) {
      const std::uint32_t first = turn * 2 * batch + blocks.half;
      lane_chunks<From> held;
#pragma unroll
      for (std::uint32_t k = 0; k < batch; ++k) {
        held[k].template load<false>(blocks.source(first, k), blocks.values(first + 2 * k));
      }
      finish(held, turn);
    }
  }
}

template <value_type From, value_type To>
__global__ void __launch_bounds__(row_threads, threads_per_multiprocessor / row_threads)
    quantize_parts_kernel(const __grid_constant__ planned_work work, bool powers_of_two) {
  extern __shared__ uint4 places[];
  __shared__ walk_shared shared[row_warps];
  const lane_ring<From, row_threads> ring(places);
  const std::uint32_t warp = threadIdx.x / 32;
  walk_shared& own = shared[warp];
  cudaGridDependencySynchronize();
  const worker_share share = share_of(work, warp * gridDim.x + blockIdx.x, gridDim.x * row_warps);
  visit_pieces(work, own, share.pieces, [&](const planned_tensor& tensor, std::uint64_t within) {
    visit_row_ranges(tensor, work.rule, within, [&](const row_range& range) {
      set_part<From>(own, work, tensor, range, 1);
      if (own.part.is_dense(width, sizeof(value_word<From>))) {
        quantize_parts<From, To, true, true>(own.part, ring, share.within, powers_of_two);
      } else if (own.part.is_wide()) {
        quantize_parts<From, To, true, false>(own.part, ring, share.within, powers_of_two);
      } else {
        quantize_parts<From, To, false, false>(own.part, ring, share.within, powers_of_two);
      }
    });
  });
}

// Whole rows.

/// Returns the largest tops of all warps of the block. Calls take turns with two sets of `shared`.
template <std::uint32_t Warps>
__device__ std::uint32_t join_tops_of_block(std::uint32_t mine, std::uint32_t* shared) {
  const std::uint32_t of_warp = join_tops<32>(mine);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = of_warp;
  __syncthreads();
  std::uint32_t top = 0;
#pragma unroll
  for (std::uint32_t w = 0; w < Warps; ++w) top = max(top, shared[w]);
  return top;
}

/// The elements of a row from `first` on that `Threads` threads hold at once, in `Slots` chunks
/// each, as one of them sees them.
template <value_type From, std::uint32_t Threads, std::uint32_t Slots, bool IsWide>
struct row_stretch {
  static constexpr std::uint32_t step = Threads * chunk_values;
  static constexpr std::uint32_t elements = step * Slots;
  using chunks = chunk<From>[Slots];

  std::uint64_t column;  ///< of the thread's first chunk
  std::uint32_t left;    ///< elements from there on

  __device__ row_stretch(std::uint64_t first, std::uint64_t length)
      : column(first + threadIdx.x % Threads * chunk_values) {
    const std::uint64_t after = column < length ? length - column : 0;
    left = after < elements ? static_cast<std::uint32_t>(after) : elements;
  }

  __device__ void load(chunks& held, std::uint64_t source) const {
    constexpr std::uint32_t bytes = sizeof(value_word<From>);
#pragma unroll
    for (std::uint32_t k = 0; k < Slots; ++k) {
      const std::uint32_t count = chunk_count(k * step, left);
      held[k].template load<IsWide>(source + column * bytes + k * step * bytes, count);
    }
  }
  /// Returns the thread's own top.
  __device__ std::uint32_t top(const chunks& held) const {
    std::uint32_t top = 0;
#pragma unroll
    for (std::uint32_t k = 0; k < Slots; ++k) top = max(top, held[k].top());
    return top;
  }
  template <value_type To>
  __device__ void store(const chunks& held, std::uint64_t destination, float factor) const {
#pragma unroll
    for (std::uint32_t k = 0; k < Slots; ++k) {
      const std::uint32_t count = chunk_count(k * step, left);
      held[k].template store<To, IsWide>(destination + column + k * step, count, factor);
    }
  }
};

/// The largest magnitudes that the warps of a block found in a few rows. Two sets take turns.
using row_tops = std::uint32_t[2][2][row_warps];

/// Replaces the largest magnitudes that a warp found by those of the block.
template <std::uint32_t Rows>
__device__ void join_warps(std::uint32_t (&found)[Rows], std::uint32_t (&shared)[2][row_warps]) {
  if (threadIdx.x % 32 == 0) {
#pragma unroll
    for (std::uint32_t r = 0; r < Rows; ++r) shared[r][threadIdx.x / 32] = found[r];
  }
  __syncthreads();
#pragma unroll
  for (std::uint32_t r = 0; r < Rows; ++r) {
#pragma unroll
    for (std::uint32_t w = 0; w < row_warps; ++w) found[r] = max(found[r], shared[r][w]);
  }
}

/// Quantizes groups of `Rows` rows by a warp, or by the block, that can hold them.
template <value_type From, value_type To, std::uint32_t Threads, std::uint32_t Rows, bool IsWide>
__device__ void quantize_held_rows(const scaled_rows& given, const lane_ring<From, row_threads>& ring,
                                   piece_share share, bool powers_of_two, row_tops& tops, std::uint32_t& turn) {
  constexpr std::uint32_t slots = chunk<From>::most / Rows;
  constexpr std::uint32_t step = Threads * chunk_values;
  const scaled_rows part = given;
  const std::uint32_t column = threadIdx.x % Threads * chunk_values;
  const auto length = static_cast<std::uint32_t>(part.columns);
  const std::uint32_t left = column < length ? length - column : 0;
  const std::uint32_t groups = (part.rows + Rows - 1) / Rows;
  const auto count = [&](std::uint32_t row, std::uint32_t k) {
    return row < part.rows ? static_cast<std::uint32_t>(chunk_count(k * step, left)) : 0;
  };
  /// Calls `use(chunk, row, its place in the row, address of the lane's first value in the row)`.
  const auto visit = [&](std::uint32_t group, std::uint64_t address, std::uint64_t pitch, std::uint32_t bytes,
                         const auto& use) {
#pragma unroll
    for (std::uint32_t r = 0; r < Rows; ++r) {
      const std::uint32_t row = group * Rows + r;
      const std::uint64_t at = address + row * pitch + column * bytes;
#pragma unroll
      for (std::uint32_t k = 0; k < slots; ++k) use(r * slots + k, at + k * step * bytes, count(row, k));
    }
  };
  constexpr std::uint32_t bytes = sizeof(value_word<From>);
  const auto finish = [&](const lane_chunks<From>& held, std::uint32_t group) {
    std::uint32_t found[Rows];
#pragma unroll
    for (std::uint32_t r = 0; r < Rows; ++r) {
      std::uint32_t top = 0;
#pragma unroll
      for (std::uint32_t k = 0; k < slots; ++k) top = max(top, held[r * slots + k].top());
      found[r] = join_tops<32>(top);
    }
    if constexpr (Threads > 32) join_warps(found, tops[turn++ % 2]);
    float factors[Rows];
#pragma unroll
    for (std::uint32_t r = 0; r < Rows; ++r) {
      const std::uint32_t row = group * Rows + r;
      const auto made = scale_of_top<From, To>(found[r], powers_of_two);
      factors[r] = made.inverse;
      if (threadIdx.x % Threads == 0 && row < part.rows) {
        *reinterpret_cast<float*>(part.scales + row * part.scale_pitch) = made.scale;
      }
    }
    visit(group, part.destination, part.destination_pitch, 1,
          [&](std::uint32_t i, std::uint64_t address, std::uint32_t values) {
            held[i].template store<To, IsWide>(address, values, factors[i / slots]);
          });
  };
  if constexpr (IsWide) {
    const auto load = [&](std::uint32_t set, std::uint32_t group) {
      visit(group, part.source, part.source_pitch, bytes,
            [&](std::uint32_t i, std::uint64_t address, std::uint32_t values) {
              ring.load(set, i, address, values != 0);
            });
    };
    load_ahead(ring, share, groups, load, finish);
  } else {
    for (std::uint32_t group = share.number; group < groups; group += share.count) {
      lane_chunks<From> held;
      visit(group, part.source, part.source_pitch, bytes,
            [&](std::uint32_t i, std::uint64_t address, std::uint32_t values) {
              held[i].template load<false>(address, values);
            });
      finish(held, group);
    }
  }
}

/// Quantizes a longer row by the block, which reads it twice.
template <value_type From, value_type To, bool IsWide>
__device__ __noinline__ void quantize_long_row(const scaled_rows& part, std::uint32_t row, bool powers_of_two,
                                               std::uint32_t* shared) {
  using stretch = row_stretch<From, row_threads, chunk<From>::most, IsWide>;
  const std::uint64_t source = part.source + row * part.source_pitch;
  std::uint32_t top = 0;
  for (std::uint64_t first = 0; first < part.columns; first += stretch::elements) {
    const stretch here(first, part.columns);
    chunk<From> held[chunk<From>::most];
    here.load(held, source);
    top = max(top, here.top(held));
  }
  const auto made = scale_of_top<From, To>(join_tops_of_block<row_warps>(top, shared), powers_of_two);
  if (threadIdx.x == 0) *reinterpret_cast<float*>(part.scales + row * part.scale_pitch) = made.scale;
  for (std::uint64_t first = 0; first < part.columns; first += stretch::elements) {
    const stretch here(first, part.columns);
    chunk<From> held[chunk<From>::most];
    here.load(held, source);
    here.template store<To>(held, part.destination + row * part.destination_pitch, made.inverse);
  }
}

/// Quantizes rows that `Threads` threads can hold, two at once if they are short, since a chunk
/// without elements costs as much as any other.
template <value_type From, value_type To, std::uint32_t Threads, bool IsWide>
__device__ __noinline__ void quantize_short_rows(const scaled_rows& part, const lane_ring<From, row_threads> ring,
                                                 piece_share share, bool powers_of_two, row_tops& tops,
                                                 std::uint32_t& turn) {
  if (IsWide && part.columns <= Threads * chunk_values * chunk<From>::most / 2) {
    quantize_held_rows<From, To, Threads, 2, IsWide>(part, ring, share, powers_of_two, tops, turn);
  } else {
    quantize_held_rows<From, To, Threads, 1, IsWide>(part, ring, share, powers_of_two, tops, turn);
  }
}

/// Quantizes rows by the block, or by a warp each if they are short. `turn` counts the uses of
/// `tops`.
template <value_type From, value_type To, bool IsWide>
__device__ void quantize_rows(const scaled_rows& part, const lane_ring<From, row_threads>& ring,
                              const piece_share& share, bool powers_of_two, row_tops& tops, std::uint32_t& turn) {
  constexpr std::uint32_t lane_elements = chunk_values * chunk<From>::most;
  if (part.columns <= 32 * lane_elements) {
    const piece_share of_warp{share.number * row_warps + threadIdx.x / 32, share.count * row_warps};
    quantize_short_rows<From, To, 32, IsWide>(part, ring, of_warp, powers_of_two, tops, turn);
  } else if (part.columns <= row_threads * lane_elements) {
    quantize_short_rows<From, To, row_threads, IsWide>(part, ring, share, powers_of_two, tops, turn);
  } else {
    for (std::uint32_t row = share.number; row < part.rows; row += share.count) {
      quantize_long_row<From, To, IsWide>(part, row, powers_of_two, tops[turn++ % 2][0]);
    }
  }
}

template <value_type From, value_type To>
__global__ void __launch_bounds__(row_threads, threads_per_multiprocessor / row_threads)
    quantize_rows_kernel(const __grid_constant__ planned_work work, bool powers_of_two) {
  extern __shared__ uint4 places[];
  const lane_ring<From, row_threads> ring(places);
  __shared__ walk_shared shared[row_warps];
  __shared__ row_tops tops;
  walk_shared& own = shared[threadIdx.x / 32];
  cudaGridDependencySynchronize();
  std::uint32_t turn = 0;
  const worker_share share = share_of(work, blockIdx.x, gridDim.x);
  visit_pieces(work, own, share.pieces, [&](const planned_tensor& tensor, std::uint64_t within) {
    visit_row_ranges(tensor, work.rule, within, [&](row_range range) {
      if (range.first != 0) return;  // the row's first piece does all of it
      range.columns = tensor.dim[0];
      set_part<From>(own, work, tensor, range, 1);
      if (own.part.is_wide()) {
        quantize_rows<From, To, true>(own.part, ring, share.within, powers_of_two, tops, turn);
      } else {
        quantize_rows<From, To, false>(own.part, ring, share.within, powers_of_two, tops, turn);
      }
    });
  });
}

// Blocks of 128 x 128.

/// One block, as a thread sees it. Half a warp holds a part of a row.
template <value_type From>
struct square_part {
  static constexpr std::uint32_t slots = chunk<From>::most;

  std::uint64_t source;
  std::uint64_t source_pitch;  ///< of two rows, as all pitches here
  std::uint64_t destination;
  std::uint64_t destination_pitch;
  std::uint64_t scale;
  std::uint32_t in_row;  ///< values of a chunk
  std::uint32_t rows;    ///< from the thread's first one on

  __device__ square_part() = default;
  __device__ explicit square_part(const scaled_rows& part)
      : source_pitch(2 * part.source_pitch), destination_pitch(2 * part.destination_pitch), scale(part.scales) {
    const std::uint32_t column = threadIdx.x % half_warp * chunk_values;
    const std::uint32_t first_row = threadIdx.x / 32 * 2 * slots + threadIdx.x % 32 / half_warp;
    source = part.source + first_row * part.source_pitch + column * sizeof(value_word<From>);
    destination = part.destination + first_row * part.destination_pitch + column;
    in_row = chunk_count(column, part.columns);
    rows = first_row < part.rows ? part.rows - first_row : 0;
  }
  __device__ std::uint32_t count(std::uint32_t slot) const { return 2 * slot < rows ? in_row : 0; }

  template <value_type To, bool IsWide>
  __device__ void finish(const lane_chunks<From>& held, bool powers_of_two, std::uint32_t* shared) const {
    std::uint32_t top = 0;
#pragma unroll
    for (std::uint32_t k = 0; k < slots; ++k) top = max(top, held[k].top());
    const auto made = scale_of_top<From, To>(join_tops_of_block<square_threads<From> / 32>(top, shared), powers_of_two);
    if (threadIdx.x == 0) *reinterpret_cast<float*>(scale) = made.scale;
#pragma unroll
    for (std::uint32_t k = 0; k < slots; ++k) {
      held[k].template store<To, IsWide>(destination + k * destination_pitch, count(k), made.inverse);
    }
  }
};

/// Quantizes a block whose rows are not aligned.
template <value_type From, value_type To>
__device__ __noinline__ void quantize_odd_square(const scaled_rows& part, bool powers_of_two, std::uint32_t* shared) {
  const square_part<From> square(part);
  lane_chunks<From> held;
#pragma unroll
  for (std::uint32_t k = 0; k < square.slots; ++k) {
    held[k].template load<false>(square.source + k * square.source_pitch, square.count(k));
  }
  square.template finish<To, false>(held, powers_of_two, shared);
}

template <value_type From, value_type To>
__global__ void __launch_bounds__(square_threads<From>, threads_per_multiprocessor / square_threads<From>)
    quantize_squares_kernel(const __grid_constant__ planned_work work, bool powers_of_two) {
  extern __shared__ uint4 places[];
  const lane_ring<From, square_threads<From>> ring(places);
  constexpr std::uint32_t warps = square_threads<From> / 32;
  static_assert(warps * 2 * chunk<From>::most == width);
  __shared__ walk_shared shared[warps];
  __shared__ std::uint32_t tops[2][warps];
  walk_shared& own = shared[threadIdx.x / 32];
  cudaGridDependencySynchronize();
  std::uint32_t turn = 0;
  std::uint32_t set = 0;
  bool is_loaded = false;
  square_part<From> loaded;
  const auto finish = [&](auto pending) {
    device::wait_copies<decltype(pending)::value>();
    lane_chunks<From> held;
    ring.read(set, held);
    loaded.template finish<To, true>(held, powers_of_two, tops[turn++ % 2]);
  };
  visit_pieces(work, own, pieces_of(work, blockIdx.x, gridDim.x),
               [&](const planned_tensor& tensor, std::uint64_t within) {
                 set_part<From>(own, work, tensor, square_range(tensor, within, width), width);
                 const square_part<From> next(own.part);
                 const bool is_wide = own.part.is_wide();
#pragma unroll
                 for (std::uint32_t k = 0; k < next.slots; ++k) {
                   if (is_wide) ring.load(ring.after(set), k, next.source + k * next.source_pitch, next.count(k) != 0);
                 }
                 device::commit_copies();
                 if (is_loaded) finish(std::integral_constant<int, 1>{});
                 if (!is_wide) quantize_odd_square<From, To>(own.part, powers_of_two, tops[turn++ % 2]);
                 set = ring.after(set);
                 is_loaded = is_wide;
                 loaded = next;
               });
  if (is_loaded) finish(std::integral_constant<int, 0>{});
}

template <value_type From, value_type To>
cudaError_t launch(const planned_work& work, const quantize_values& values, const device_shape& device,
                   cudaStream_t stream) {
  const auto start = [&](auto kernel, std::uint32_t threads) {
    const std::uint32_t blocks = device.multiprocessors * (threads_per_multiprocessor / threads);
    const std::uint32_t shared_bytes = lane_ring_bytes(threads);
    return launch_behind(kernel, {blocks, threads, shared_bytes}, stream, work, values.powers_of_two);
  };
  switch (values.block) {
    case scale_block::row: return start(quantize_rows_kernel<From, To>, row_threads);
    case scale_block::block_1x128: return start(quantize_parts_kernel<From, To>, row_threads);
    default: return start(quantize_squares_kernel<From, To>, square_threads<From>);
  }
}

template <value_type From>
cudaError_t launch_from(const planned_work& work, const quantize_values& values, const device_shape& device,
                        cudaStream_t stream) {
  return values.to == value_type::f8_e4m3 ? launch<From, value_type::f8_e4m3>(work, values, device, stream)
                                          : launch<From, value_type::f8_e5m2>(work, values, device, stream);
}

}  // namespace

piece_rule quantize_pieces(const quantize_values& values, std::uint32_t rank) {
  if (values.block == scale_block::block_128x128) {
    return {width, {width, width, 1, 1, 1}, 0, rank, piece_cut::boxes};
  }
  // A warp finds its place in a row once for each piece, so a piece is many times what it holds.
  // The same is true of a block, and it loads rows ahead within a piece.
  constexpr std::uint32_t turns = 8;
  const std::uint32_t lanes = values.block == scale_block::row ? row_threads * turns / 2 : 32 * turns;
  return {lanes * lane_bytes / ragged::value_bytes(values.from), {}, 0, rank};
}

cudaError_t launch_quantize(const planned_work& work, const quantize_values& values, const device_shape& device,
                            cudaStream_t stream) {
  switch (values.from) {
    case value_type::f16: return launch_from<value_type::f16>(work, values, device, stream);
    case value_type::bf16: return launch_from<value_type::bf16>(work, values, device, stream);
    default: return launch_from<value_type::f32>(work, values, device, stream);
  }
}

}  // namespace tmap::kernels
