// SPDX-License-Identifier: Apache-2.0
#include <tmap/detail/padded_tensor.hpp>

#include "kernels/launch.hpp"
#include "kernels/launch_behind.hpp"
#include "kernels/ragged/padding_work.cuh"
#include "kernels/ragged_launch.hpp"

namespace tmap::kernels {
namespace {

// Rows without gaps, both packed and padded, need no planning: a thread finds by its own number
// where its bytes come from.

// Threads that large GPUs run at once. Fewer units than that have a thread each, on many
// multiprocessors.
constexpr std::uint64_t threads_at_once = std::uint64_t{1} << 18;

/// A place in an array of parts of equal size.
struct part_place {
  std::uint64_t part;
  std::uint64_t offset;
};

/// Numbers the places of a block's units, in parts of `size` units.
class block_places {
 public:
  __device__ block_places(std::uint64_t first_unit, std::uint64_t size)
      : size_(size), first_part_(first_unit / size), first_offset_(first_unit - first_part_ * size) {}

  __device__ part_place operator[](std::uint32_t unit) const {
    const std::uint64_t from = first_offset_ + unit;
    // A block ends in the next part at the latest if a part is as long as this.
    const std::uint64_t further =
        size_ < 1u << 31 ? static_cast<std::uint32_t>(from) / static_cast<std::uint32_t>(size_) : from >= size_;
    return {first_part_ + further, from - further * size_};
  }

 private:
  std::uint64_t size_;
  std::uint64_t first_part_;
  std::uint64_t first_offset_;
};

template <class Unit>
__global__ void __launch_bounds__(padding_threads) pad_rows_kernel(const __grid_constant__ padding_work work) {
  const ragged::padded_rows& rows = work.rows;
  const block_places places(work.first_unit(), rows.longest * work.row_units);
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  move_units<Unit>(work, rows.dense, [&](std::uint32_t unit) -> std::uint64_t {
    const part_place place = places[unit];
    const auto [begin, end] = tmap::detail::rows_of_tensor(rows, place.part);
    if (begin >= end || place.offset >= (end - begin) * work.row_units) return 0;
    return rows.values + (begin * work.row_units + place.offset) * sizeof(Unit);
  });
}

/// Returns whether a tensor ends after a unit of the values.
__device__ bool ends_after(const padding_work& work, std::uint64_t tensor, std::uint64_t unit) {
  return tmap::detail::rows_of_tensor(work.rows, tensor).end * work.row_units > unit;
}

/// Returns the first tensor that ends after the unit, or `count`. One warp calls it.
__device__ std::uint64_t search_by_warp(const padding_work& work, std::uint64_t unit) {
  const std::uint32_t lane = threadIdx.x % 32;
  std::uint64_t first = 0;
  std::uint64_t left = work.rows.count;
  for (;;) {
    const std::uint64_t step = (left + 31) / 32;
    const std::uint64_t begin = lane * step;
    const std::uint64_t last = begin + step < left ? begin + step - 1 : left - 1;
    const std::uint32_t found = __ballot_sync(~0u, begin < left && ends_after(work, first + last, unit));
    if (found == 0) return first + left;
    const std::uint64_t skipped = (__ffs(static_cast<int>(found)) - 1) * step;
    first += skipped;
    if (step == 1) return first;
    left = left - skipped < step ? left - skipped : step;
  }
}

/// Returns the same for any thread. The tensor is known to be one from `first` to `last`.
__device__ std::uint64_t search(const padding_work& work, std::uint64_t first, std::uint64_t last, std::uint64_t unit) {
  while (first < last) {
    const std::uint64_t middle = first + (last - first) / 2;
    if (ends_after(work, middle, unit))
      last = middle;
    else
      first = middle + 1;
  }
  return first;
}

/// The units of a tensor among the values.
struct tensor_units {
  std::uint64_t begin;
  std::uint64_t dense_end;  ///< of those that the dense has
  std::uint64_t end;
  std::uint64_t to_dense;  ///< from a unit to that of the dense, modulo 2^64
};

__device__ tensor_units units_of_tensor(const padding_work& work, std::uint64_t tensor) {
  if (tensor >= work.rows.count) return {0, 0, ~std::uint64_t{0}, 0};
  const auto [begin, end] = tmap::detail::rows_of_tensor(work.rows, tensor);
  const std::uint64_t longest = begin + work.rows.longest;
  return {begin * work.row_units, (end < longest ? end : longest) * work.row_units, end * work.row_units,
          (tensor * work.rows.longest - begin) * work.row_units};
}

/// Returns the address of a unit's bytes in the dense, or 0.
template <class Unit>
__device__ std::uint64_t address_in_dense(const padding_work& work, const tensor_units& of, std::uint64_t unit) {
  if (unit < of.begin || unit >= of.dense_end) return 0;
  return work.rows.dense + (unit + of.to_dense) * sizeof(Unit);
}

template <class Unit>
__global__ void __launch_bounds__(padding_threads) unpad_rows_kernel(const __grid_constant__ padding_work work) {
  __shared__ std::uint64_t ends[2];        // the tensors of the block's first and last unit
  __shared__ tensor_units units_of_first;  // most blocks lie in one tensor
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  if (threadIdx.x < 64) {
    const bool is_last = threadIdx.x >= 32;
    const std::uint64_t found = search_by_warp(work, is_last ? work.end_unit() - 1 : work.first_unit());
    if (threadIdx.x % 32 == 0) {
      ends[is_last] = found;
      if (!is_last) units_of_first = units_of_tensor(work, found);
    }
  }
  __syncthreads();
  move_units<Unit>(work, work.rows.values, [&](std::uint32_t unit_of_block) {
    const std::uint64_t unit = work.first_unit() + unit_of_block;
    tensor_units of = units_of_first;
    if (unit >= of.end) of = units_of_tensor(work, search(work, ends[0], ends[1], unit));
    return address_in_dense<Unit>(work, of, unit);
  });
}

/// Unpads with a thread for each unit of the dense, so that rows are loaded while the offsets are.
/// The blocks of a tensor have the same y.
template <class Unit>
__global__ void __launch_bounds__(padding_threads) unpad_few_rows_kernel(const __grid_constant__ padding_work work) {
  const ragged::padded_rows& rows = work.rows;
  const std::uint64_t tensor = blockIdx.y;
  const std::uint32_t unit = blockIdx.x * padding_threads + threadIdx.x;
  const std::uint64_t units = rows.longest * work.row_units;
  const std::uint64_t from = rows.dense + (tensor * units + unit) * sizeof(Unit);
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  const Unit held = unit < units ? load_unit<Unit>(from) : Unit{};
  const tensor_units of = units_of_tensor(work, tensor);
  const std::uint64_t to = of.begin + unit;
  if (to < of.dense_end) store_unit(rows.values + to * sizeof(Unit), held);
  const auto clear = [&](std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t at = begin + unit; at < end; at += gridDim.x * padding_threads) {
      store_unit(rows.values + at * sizeof(Unit), Unit{});
    }
  };
  if (tensor == 0) clear(0, of.begin);
  clear(of.begin < of.dense_end ? of.dense_end : of.begin, tensor == rows.count - 1 ? work.units : of.end);
}

using padding_kernel = void (*)(padding_work);

/// The kernels for units of 1, 2, 4 and 16 bytes. Rows that allow 8 take 4, to keep the library
/// small.
struct padding_kernels {
  padding_kernel of_1, of_2, of_4, of_16;

  padding_kernel for_unit(std::uint64_t bytes) const {
    return bytes == 16 ? of_16 : bytes == 4 ? of_4 : bytes == 2 ? of_2 : of_1;
  }
};

std::uint64_t unit_of_padding(const ragged::padded_rows& rows) {
  const std::uint64_t all = rows.values | rows.dense | rows.row_bytes | granule_bytes;
  const std::uint64_t largest = all & (0 - all);
  return largest == 8 ? 4 : largest;
}

std::uint64_t count_blocks(std::uint64_t units, std::uint64_t units_of_block) {
  return (units + units_of_block - 1) / units_of_block;
}

cudaError_t launch_padding(const padding_kernels& kernels, const row_padding& padding, std::uint64_t written_rows,
                           cudaStream_t stream) {
  const ragged::padded_rows& rows = padding.rows;
  const std::uint64_t unit = unit_of_padding(rows);
  padding_work work{rows, rows.row_bytes / unit, written_rows * rows.row_bytes / unit, {}, 1};
  while (work.units_of_thread < most_units_of_thread && work.units > threads_at_once * work.units_of_thread) {
    work.units_of_thread *= 2;
  }
  for (std::uint32_t byte = 0; byte < sizeof work.fill; ++byte) {
    reinterpret_cast<unsigned char*>(&work.fill)[byte] = padding.fill.bytes[byte % rows.element_bytes];
  }
  const auto blocks = static_cast<std::uint32_t>(count_blocks(work.units, work.units_of_block()));
  return launch_behind(kernels.for_unit(unit), {blocks, padding_threads}, stream, work);
}

}  // namespace

cudaError_t launch_pad_rows(const row_padding& padding, cudaStream_t stream) {
  static constexpr padding_kernels kernels{pad_rows_kernel<std::uint8_t>, pad_rows_kernel<std::uint16_t>,
                                           pad_rows_kernel<std::uint32_t>, pad_rows_kernel<uint4>};
  return launch_padding(kernels, padding, padding.rows.count * padding.rows.longest, stream);
}

cudaError_t launch_unpad_rows(const row_padding& padding, cudaStream_t stream) {
  static constexpr padding_kernels few{unpad_few_rows_kernel<std::uint8_t>, unpad_few_rows_kernel<std::uint16_t>,
                                       unpad_few_rows_kernel<std::uint32_t>, unpad_few_rows_kernel<uint4>};
  static constexpr padding_kernels many{unpad_rows_kernel<std::uint8_t>, unpad_rows_kernel<std::uint16_t>,
                                        unpad_rows_kernel<std::uint32_t>, unpad_rows_kernel<uint4>};
  const ragged::padded_rows& rows = padding.rows;
  const std::uint64_t unit = unit_of_padding(rows);
  const padding_work work{rows, rows.row_bytes / unit, rows.rows * rows.row_bytes / unit, {}, 1};
  const std::uint64_t blocks_of_tensor = count_blocks(rows.longest * work.row_units, padding_threads);
  const std::uint64_t blocks = blocks_of_tensor * rows.count;
  if (blocks == 0 || blocks * padding_threads > threads_at_once || work.units > threads_at_once) {
    return launch_padding(many, padding, rows.rows, stream);
  }
  const dim3 grid{static_cast<std::uint32_t>(blocks_of_tensor), static_cast<std::uint32_t>(rows.count)};
  return launch_behind(few.for_unit(unit), {grid, padding_threads}, stream, work);
}

}  // namespace tmap::kernels
