// SPDX-License-Identifier: Apache-2.0
#include "kernels/launch_behind.hpp"
#include "kernels/ragged/quantize_rows.cuh"
#include "kernels/ragged/small_divisor.cuh"
#include "kernels/ragged_launch.hpp"

#include <tmap/device/tile_shares.cuh>

#include <type_traits>

namespace tmap::kernels {
namespace {

// Values go from global memory to registers, where the largest magnitude is found, and from there
// to the destination. A warp takes blocks of 1 x 128, half a warp each. A thread block takes a
// block of 128 x 128, or a long row. It reads rows that do not fit in its registers twice.

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

/// Returns the pieces of one of the launch's equal workers.
__device__ piece_steps share_of(const planned_work& work, std::uint64_t worker, std::uint64_t workers) {
  const std::uint64_t pieces = work.ends[work.count - 1];
  if (takes_turns(work, pieces, least_turns)) return {worker, pieces, workers};
  const device::tile_range run = device::tile_shares(pieces, workers).run(worker);
  return {run.first, run.last, 1};
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

/// Numbers the blocks of some rows.
template <bool HasRows>
struct block_numbers {
  std::uint32_t per_row;
  small_divisor row_of_block;

  __device__ explicit block_numbers(std::uint32_t columns)
      : per_row((columns + width - 1) / width), row_of_block(per_row) {}
  __device__ std::uint32_t row(std::uint32_t block) const { return HasRows ? row_of_block(block) : 0; }
  __device__ std::uint32_t within(std::uint32_t block) const { return block - row(block) * per_row; }
};

/// Quantizes one row, or several with `HasRows`, by a warp. Half a warp has every other block.
template <value_type From, value_type To, bool IsWide, bool HasRows>
__device__ __noinline__ void quantize_parts(const scaled_rows& given, bool powers_of_two) {
  const scaled_rows part = given;  // stores could change what a reference leads to, so it would be read again
  constexpr std::uint32_t batch = chunk<From>::most;  // blocks that half a warp loads before it uses the first
  const auto columns = static_cast<std::uint32_t>(part.columns);
  const block_numbers<HasRows> numbers(columns);
  const std::uint32_t blocks = HasRows ? part.rows * numbers.per_row : numbers.per_row;
  const std::uint32_t half = threadIdx.x % 32 / half_warp;
  const std::uint32_t place = threadIdx.x % half_warp * chunk_values;
  const auto count = [&](std::uint32_t block) {
    return block < blocks ? chunk_count(numbers.within(block) * width + place, columns) : 0;
  };
  for (std::uint32_t begin = 0; begin < blocks; begin += 2 * batch) {
    chunk<From> held[batch];
    std::uint32_t tops[batch];
#pragma unroll
    for (std::uint32_t k = 0; k < batch; ++k) {
      const std::uint32_t block = begin + 2 * k + half;
      const std::uint64_t row = part.source + numbers.row(block) * part.source_pitch;
      const std::uint32_t column = numbers.within(block) * width + place;
      held[k].template load<IsWide>(row + column * sizeof(value_word<From>), count(block));
    }
#pragma unroll
    for (std::uint32_t k = 0; k < batch; ++k) tops[k] = held[k].top();
    const auto made = scale_of_top<From, To>(join_tops_of_chunks(tops), powers_of_two);
    const std::uint32_t scaled = begin + 2 * chunk_of_lane<batch>() + half;
    if (threadIdx.x % (half_warp / batch) == 0 && scaled < blocks) {
      const std::uint64_t row = part.scales + numbers.row(scaled) * part.scale_pitch;
      *reinterpret_cast<float*>(row + numbers.within(scaled) * part.scale_step) = made.scale;
    }
#pragma unroll
    for (std::uint32_t k = 0; k < batch; ++k) {
      const std::uint32_t block = begin + 2 * k + half;
      const float factor = __shfl_sync(~0u, made.inverse, half * half_warp + k * (half_warp / batch));
      const std::uint64_t row = part.destination + numbers.row(block) * part.destination_pitch;
      held[k].template store<To, IsWide>(row + numbers.within(block) * width + place, count(block), factor);
    }
  }
}

template <value_type From, value_type To>
__global__ void __launch_bounds__(row_threads, threads_per_multiprocessor / row_threads)
    quantize_parts_kernel(const __grid_constant__ planned_work work, bool powers_of_two) {
  __shared__ walk_shared shared[row_warps];
  const std::uint32_t warp = threadIdx.x / 32;
  walk_shared& own = shared[warp];
  cudaGridDependencySynchronize();
  const piece_steps steps = share_of(work, std::uint64_t{warp} * gridDim.x + blockIdx.x, gridDim.x * row_warps);
  visit_pieces(work, own, steps, [&](const planned_tensor& tensor, std::uint64_t within) {
    visit_row_ranges(tensor, work.rule, within, [&](const row_range& range) {
      set_part<From>(own, work, tensor, range, 1);
      if (!own.part.is_wide()) {
        quantize_parts<From, To, false, true>(own.part, powers_of_two);
      } else if (range.rows > 1) {
        quantize_parts<From, To, true, true>(own.part, powers_of_two);
      } else {
        quantize_parts<From, To, true, false>(own.part, powers_of_two);
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

  /// Returns the thread's own top.
  __device__ std::uint32_t load(chunks& held, std::uint64_t source) const {
    constexpr std::uint32_t bytes = sizeof(value_word<From>);
#pragma unroll
    for (std::uint32_t k = 0; k < Slots; ++k) {
      held[k].template load<IsWide>(source + column * bytes + k * step * bytes, chunk_count(k * step, left));
    }
    std::uint32_t top = 0;
#pragma unroll
    for (std::uint32_t k = 0; k < Slots; ++k) top = max(top, held[k].top());
    return top;
  }
  template <value_type To>
  __device__ void store(const chunks& held, std::uint64_t destination, float factor) const {
#pragma unroll
    for (std::uint32_t k = 0; k < Slots; ++k) {
      held[k].template store<To, IsWide>(destination + column + k * step, chunk_count(k * step, left), factor);
    }
  }
};

/// Writes the scale of row `row` and returns the factor. All threads call it with their own tops.
template <value_type From, value_type To, std::uint32_t Threads>
__device__ float finish_row(const scaled_rows& part, std::uint32_t row, std::uint32_t top, bool powers_of_two,
                            std::uint32_t* shared) {
  const std::uint32_t all = Threads == 32 ? join_tops<32>(top) : join_tops_of_block<Threads / 32>(top, shared);
  const auto made = scale_of_top<From, To>(all, powers_of_two);
  if (threadIdx.x % Threads == 0) *reinterpret_cast<float*>(part.scales + row * part.scale_pitch) = made.scale;
  return made.inverse;
}

/// Quantizes row `row` by a warp, or by the block, that can hold all of it.
template <value_type From, value_type To, std::uint32_t Threads, std::uint32_t Slots, bool IsWide>
__device__ __noinline__ void quantize_held_row(const scaled_rows& part, std::uint32_t row, bool powers_of_two,
                                               std::uint32_t* shared) {
  const row_stretch<From, Threads, Slots, IsWide> all(0, part.columns);
  const std::uint64_t destination = part.destination + row * part.destination_pitch;
  chunk<From> held[Slots];
  const std::uint32_t top = all.load(held, part.source + row * part.source_pitch);
  const float factor = finish_row<From, To, Threads>(part, row, top, powers_of_two, shared);
  all.template store<To>(held, destination, factor);
}

/// Quantizes a longer row by the block, which reads it twice.
template <value_type From, value_type To, bool IsWide>
__device__ __noinline__ void quantize_long_row(const scaled_rows& part, std::uint32_t row, bool powers_of_two,
                                               std::uint32_t* shared) {
  using stretch = row_stretch<From, row_threads, chunk<From>::most, IsWide>;
  const std::uint64_t source = part.source + row * part.source_pitch;
  std::uint32_t top = 0;
  for (std::uint64_t first = 0; first < part.columns; first += stretch::elements) {
    chunk<From> held[chunk<From>::most];
    top = max(top, stretch(first, part.columns).load(held, source));
  }
  const float factor = finish_row<From, To, row_threads>(part, row, top, powers_of_two, shared);
  for (std::uint64_t first = 0; first < part.columns; first += stretch::elements) {
    const stretch here(first, part.columns);
    chunk<From> held[chunk<From>::most];
    here.load(held, source);
    here.template store<To>(held, part.destination + row * part.destination_pitch, factor);
  }
}

/// Quantizes a row that `Threads` threads can hold. Rows of half the length take half the chunks,
/// since a chunk without elements costs as much as any other.
template <value_type From, value_type To, std::uint32_t Threads, bool IsWide>
__device__ void quantize_short_row(const scaled_rows& part, std::uint32_t row, bool powers_of_two,
                                   std::uint32_t* shared) {
  constexpr std::uint32_t slots = chunk<From>::most;
  if (IsWide && part.columns <= Threads * chunk_values * (slots / 2)) {
    quantize_held_row<From, To, Threads, slots / 2, IsWide>(part, row, powers_of_two, shared);
  } else {
    quantize_held_row<From, To, Threads, slots, IsWide>(part, row, powers_of_two, shared);
  }
}

/// Quantizes rows by the block, or by a warp each if they are short. `turn` counts the block's
/// rows.
template <value_type From, value_type To, bool IsWide>
__device__ void quantize_rows(const scaled_rows& part, bool powers_of_two, std::uint32_t (&tops)[2][row_warps],
                              std::uint32_t& turn) {
  constexpr std::uint32_t lane_elements = chunk_values * chunk<From>::most;
  if (part.columns <= 32 * lane_elements) {
    for (std::uint32_t row = threadIdx.x / 32; row < part.rows; row += row_warps) {
      quantize_short_row<From, To, 32, IsWide>(part, row, powers_of_two, nullptr);
    }
    return;
  }
  const bool is_held = part.columns <= row_threads * lane_elements;
  for (std::uint32_t row = 0; row < part.rows; ++row, ++turn) {
    if (is_held) {
      quantize_short_row<From, To, row_threads, IsWide>(part, row, powers_of_two, tops[turn % 2]);
    } else {
      quantize_long_row<From, To, IsWide>(part, row, powers_of_two, tops[turn % 2]);
    }
  }
}

template <value_type From, value_type To>
__global__ void __launch_bounds__(row_threads, threads_per_multiprocessor / row_threads)
    quantize_rows_kernel(const __grid_constant__ planned_work work, bool powers_of_two) {
  __shared__ walk_shared shared[row_warps];
  __shared__ std::uint32_t tops[2][row_warps];
  walk_shared& own = shared[threadIdx.x / 32];
  cudaGridDependencySynchronize();
  std::uint32_t turn = 0;
  visit_pieces(work, own, share_of(work, blockIdx.x, gridDim.x),
               [&](const planned_tensor& tensor, std::uint64_t within) {
                 visit_row_ranges(tensor, work.rule, within, [&](row_range range) {
                   if (range.first != 0) return;  // the row's first piece does all of it
                   range.columns = tensor.dim[0];
                   set_part<From>(own, work, tensor, range, 1);
                   if (own.part.is_wide()) {
                     quantize_rows<From, To, true>(own.part, powers_of_two, tops, turn);
                   } else {
                     quantize_rows<From, To, false>(own.part, powers_of_two, tops, turn);
                   }
                 });
               });
}

// Blocks of 128 x 128.

/// Quantizes one block by all threads. Half a warp holds a part of a row.
template <value_type From, value_type To, bool IsWide>
__device__ __noinline__ void quantize_square(const scaled_rows& given, bool powers_of_two, std::uint32_t* shared) {
  const scaled_rows part = given;
  constexpr std::uint32_t slots = chunk<From>::most;
  const std::uint32_t column = threadIdx.x % half_warp * chunk_values;
  const std::uint32_t first_row = threadIdx.x / 32 * 2 * slots + threadIdx.x % 32 / half_warp;
  const std::uint32_t in_row = chunk_count(column, part.columns);
  const auto count = [&](std::uint32_t slot) { return first_row + 2 * slot < part.rows ? in_row : 0; };
  const std::uint64_t source = part.source + first_row * part.source_pitch + column * sizeof(value_word<From>);
  chunk<From> held[slots];
#pragma unroll
  for (std::uint32_t k = 0; k < slots; ++k) {
    held[k].template load<IsWide>(source + 2 * k * part.source_pitch, count(k));
  }
  std::uint32_t top = 0;
#pragma unroll
  for (std::uint32_t k = 0; k < slots; ++k) top = max(top, held[k].top());
  const auto made = scale_of_top<From, To>(join_tops_of_block<square_threads<From> / 32>(top, shared), powers_of_two);
  if (threadIdx.x == 0) *reinterpret_cast<float*>(part.scales) = made.scale;
  const std::uint64_t destination = part.destination + first_row * part.destination_pitch + column;
#pragma unroll
  for (std::uint32_t k = 0; k < slots; ++k) {
    held[k].template store<To, IsWide>(destination + 2 * k * part.destination_pitch, count(k), made.inverse);
  }
}

template <value_type From, value_type To>
__global__ void __launch_bounds__(square_threads<From>, threads_per_multiprocessor / square_threads<From>)
    quantize_squares_kernel(const __grid_constant__ planned_work work, bool powers_of_two) {
  constexpr std::uint32_t warps = square_threads<From> / 32;
  static_assert(warps * 2 * chunk<From>::most == width);
  __shared__ walk_shared shared[warps];
  __shared__ std::uint32_t tops[2][warps];
  walk_shared& own = shared[threadIdx.x / 32];
  cudaGridDependencySynchronize();
  std::uint32_t turn = 0;
  visit_pieces(work, own, share_of(work, blockIdx.x, gridDim.x),
               [&](const planned_tensor& tensor, std::uint64_t within) {
                 set_part<From>(own, work, tensor, square_range(tensor, within, width), width);
                 if (own.part.is_wide()) {
                   quantize_square<From, To, true>(own.part, powers_of_two, tops[turn++ % 2]);
                 } else {
                   quantize_square<From, To, false>(own.part, powers_of_two, tops[turn++ % 2]);
                 }
               });
}

template <value_type From, value_type To>
cudaError_t launch(const planned_work& work, const quantize_values& values, const device_shape& device,
                   cudaStream_t stream) {
  const auto start = [&](auto kernel, std::uint32_t threads) {
    const std::uint32_t blocks = device.multiprocessors * (threads_per_multiprocessor / threads);
    return launch_behind(kernel, {blocks, threads}, stream, work, values.powers_of_two);
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
  constexpr std::uint32_t warp_turns = 8;
  const std::uint32_t lanes = values.block == scale_block::row ? row_threads : 32 * warp_turns;
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
