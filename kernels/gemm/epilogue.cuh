// SPDX-License-Identifier: Apache-2.0
#pragma once

// Takes sums in registers to C: applies the epilogue, rounds, and stores through a map that ends
// where the group ends. Each warp works by itself, so that none waits for another. It stores 16
// rows by 64 columns at a time through one of two staging tiles, so that a store is under way while
// the next piece is staged.

#include <tmap/device/acquire.cuh>
#include <tmap/device/ptx.cuh>
#include <tmap/device/ptx_wgmma.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/grouped_gemm.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/gemm/gemm_group.hpp"
#include "kernels/gemm/tile_math.hpp"

namespace tmap::kernels {

inline constexpr std::uint32_t staged_results = 2;
inline constexpr std::uint32_t alignment_of_swizzle = 1024;
/// The number of a thread's sums for 64 columns.
inline constexpr std::uint32_t piece_sums = 32;
/// The elements of C in 16 bytes.
inline constexpr std::uint32_t result_unit = 8;

/// Packs and unpacks pairs of neighbouring elements of C.
template <gemm::operand_type Type>
struct result_pair {
  static __device__ std::uint32_t pack(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(pair);
  }
  static __device__ float2 unpack(std::uint32_t bits) {
    return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(bits));
  }
};
template <>
struct result_pair<gemm::operand_type::f16> {
  static __device__ std::uint32_t pack(float low, float high) {
    const __half2 pair = __floats2half2_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(pair);
  }
  static __device__ float2 unpack(std::uint32_t bits) { return __half22float2(reinterpret_cast<const __half2&>(bits)); }
};

/// The place in the group's C at which a warpgroup's part of a tile begins.
struct result_place {
  std::uint32_t group;
  std::uint32_t row;
  std::uint32_t column;
  std::uint32_t columns;  ///< that C has
};

/// The factors of a thread's columns among 64, which are two of each eight.
struct column_factors {
  float2 of[piece_sums / 4];
};

/// One thread's sums: rows `row` and `row` + 8, and two of each eight columns. C ends with whole
/// eights. For places past its end the thread reads a place within, so that no load of a piece
/// waits for a branch. Their results are not stored.
template <gemm::operand_type Type>
class thread_results {
 public:
  __device__ thread_results(const gemm_shape& shape, const gemm_group& record, const result_place& place)
      : with_(shape.with),
        c_(record.c),
        c_pitch_(record.c_pitch),
        first_of_group_(std::uint64_t{place.group} * record.n),
        n_(record.n),
        columns_(place.columns) {
    const sum_place first = place_sum(threadIdx.x / 32 % 4, threadIdx.x % 32, 0);
    column_ = first.column;
#pragma unroll
    for (std::uint32_t half = 0; half < 2; ++half) {
      const std::uint32_t row = place.row + first.row + half * 8;
      row_[half] = row < record.m ? row : record.m - 1;
      row_factor_[half] = with_.row_scales != nullptr ? with_.row_scales[record.first_row + row_[half]] : 1;
    }
  }

  __device__ bool has_factors() const {
    return with_.row_scales != nullptr || with_.column_scales != nullptr;
  }

  /// Returns the factors of 64 columns, of which `first` is the first column of B.
  __device__ column_factors factors(std::uint32_t first) const {
    column_factors made;
#pragma unroll
    for (std::uint32_t i = 0; i < piece_sums / 4; ++i) {
      made.of[i] = with_.column_scales == nullptr
                       ? float2{1, 1}
                       : *reinterpret_cast<const float2*>(with_.column_scales + in_group(first + i * 8));
    }
    return made;
  }

  __device__ void scale(float* sums, const column_factors& factors) const {
#pragma unroll
    for (std::uint32_t i = 0; i < piece_sums; i += 4) {
      const float2 factor = factors.of[i / 4];
      sums[i] *= row_factor_[0] * factor.x;
      sums[i + 1] *= row_factor_[0] * factor.y;
      sums[i + 2] *= row_factor_[1] * factor.x;
      sums[i + 3] *= row_factor_[1] * factor.y;
    }
  }

  __device__ void add_bias(float* sums, std::uint32_t first) const {
    std::uint32_t added[piece_sums / 4];
#pragma unroll
    for (std::uint32_t i = 0; i < piece_sums / 4; ++i) {
      const auto* const bias = static_cast<const std::uint16_t*>(with_.bias) + in_group(first + i * 8);
      added[i] = *reinterpret_cast<const std::uint32_t*>(bias);
    }
#pragma unroll
    for (std::uint32_t i = 0; i < piece_sums; i += 2) {
      const float2 of = result_pair<Type>::unpack(added[i / 4]);
      sums[i] += of.x;
      sums[i + 1] += of.y;
    }
  }

  __device__ void add_old(float* sums, std::uint32_t first) const {
    std::uint32_t old[piece_sums / 2];
#pragma unroll
    for (std::uint32_t i = 0; i < piece_sums / 2; ++i) {
      const std::uint64_t column = within(first + i / 2 * 8, columns_);
      old[i] = *reinterpret_cast<const std::uint32_t*>(c_ + row_[i % 2] * c_pitch_ + column * sizeof(std::uint16_t));
    }
#pragma unroll
    for (std::uint32_t i = 0; i < piece_sums; i += 2) {
      const float2 of = result_pair<Type>::unpack(old[i / 2]);
      sums[i] += of.x;
      sums[i + 1] += of.y;
    }
  }

  /// Sets sums = silu(sums) * values.
  static __device__ void apply_gate(float* sums, const float* values) {
#pragma unroll
    for (std::uint32_t i = 0; i < piece_sums; ++i) sums[i] = sums[i] / (1 + __expf(-sums[i])) * values[i];
  }

  /// Rounds the sums into a staging tile.
  static __device__ void stage(unsigned char* tile, const float* sums) {
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t row = staged_row(lane);
#pragma unroll
    for (std::uint32_t unit = 0; unit < 8; unit += 2) {
      std::uint32_t pairs[4];
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) {
        pairs[i] = result_pair<Type>::pack(sums[unit * 4 + i * 2], sums[unit * 4 + i * 2 + 1]);
      }
      device::ptx::stmatrix_x4(tile + swizzled_unit(row, staged_unit(lane, unit)), pairs);
    }
  }

 private:
  /// Returns this thread's column of the eight at `eight`, or of the last eight if that is past the
  /// end.
  __device__ std::uint32_t within(std::uint32_t eight, std::uint32_t columns) const {
    return (eight < columns ? eight : columns - 8) + column_;
  }
  __device__ std::uint64_t in_group(std::uint32_t eight) const {
    return first_of_group_ + within(eight, n_);
  }

  const gemm::epilogue& with_;
  std::uint64_t c_;
  std::uint64_t c_pitch_;
  std::uint64_t first_of_group_;
  std::uint32_t n_;
  std::uint32_t columns_;
  std::uint32_t column_;
  std::uint32_t row_[2];
  float row_factor_[2];
};

/// One warp's stores. It acquires the maps of C after the main loop, when the stores of the
/// previous tile have long read their staging tiles.
class result_store {
 public:
  /// `filler` is any map that is a parameter.
  __device__ result_store(const gemm_shape& shape, const tensor_map& filler, unsigned char* tiles)
      : map_(device::parameter_map(filler)), tiles_(tiles), only_rounds_(only_rounds(shape)) {}

  template <gemm::operand_type Type, std::uint32_t Count>
  __device__ void write(float (&sums)[Count], const gemm_shape& shape, const gemm_group& record,
                        const result_place& place) {
    const std::uint32_t row = place.row + threadIdx.x / 32 % 4 * strip_rows;
    if (row >= record.m) return;
    record_ = &record;
    columns_ = place.columns;
    if (acquired_ != place.group) {
      acquired_ = place.group;
      if (device::ptx::elect_one()) map_ = device::acquire(shape.scratch.c + acquired_);
    }
    if (only_rounds_) {
      store_rounded<Type>(sums, row, place);
    } else {
      store_finished<Type>(sums, row, shape, record, place);
    }
  }

  __device__ void finish() const {
    if (device::ptx::elect_one()) device::wait_stores_written();
  }

 private:
  static __device__ bool only_rounds(const gemm_shape& shape) {
    const gemm::epilogue& with = shape.with;
    return with.kind == gemm::epilogue_kind::none && with.row_scales == nullptr && with.column_scales == nullptr;
  }

  template <gemm::operand_type Type, std::uint32_t Count>
  __device__ void store_rounded(const float (&sums)[Count], std::uint32_t row, const result_place& place) {
#pragma unroll
    for (std::uint32_t piece = 0; piece < Count / piece_sums; ++piece) {
      const std::uint32_t column = place.column + piece * piece_lines;
      if (column < place.columns) store<Type>(sums + piece * piece_sums, column, row);
    }
  }

  template <gemm::operand_type Type, std::uint32_t Count>
  __device__ void store_finished(float (&sums)[Count], std::uint32_t row, const gemm_shape& shape,
                                 const gemm_group& record, const result_place& place) {
    const thread_results<Type> results(shape, record, place);
    // The next piece's factors are being loaded while this one is staged.
    column_factors next{};
    if (results.has_factors()) next = results.factors(place.column);
#pragma unroll
    for (std::uint32_t piece = 0; piece < Count / piece_sums; ++piece) {
      const std::uint32_t column = place.column + piece * piece_lines;
      const bool is_value = shape.values != 0 && piece >= Count / piece_sums / 2;
      if (is_value || column >= place.columns) continue;
      float* const of = sums + piece * piece_sums;
      const column_factors factors = next;
      if (results.has_factors()) {
        next = results.factors(column + piece_lines);
        results.scale(of, factors);
      }
      if (shape.values != 0 && piece < Count / piece_sums / 2) {
        if (results.has_factors()) results.scale(of + Count / 2, results.factors(column + shape.values));
        thread_results<Type>::apply_gate(of, of + Count / 2);
      }
      if (shape.with.kind == gemm::epilogue_kind::bias) results.add_bias(of, column);
      if (shape.with.kind == gemm::epilogue_kind::accumulate) results.add_old(of, column);
      store<Type>(of, column, row);
    }
  }

  template <gemm::operand_type Type>
  __device__ void store(const float* sums, std::uint32_t column, std::uint32_t row) {
    unsigned char* const tile = tiles_ + next_ * strip_bytes;
    next_ = (next_ + 1) % staged_results;
    if (device::ptx::elect_one()) device::wait_stores_read<staged_results - 1>();
    __syncwarp();
    thread_results<Type>::stage(tile, sums);
    device::fence_shared_writes();
    __syncwarp();
    const gemm_group& group = *record_;
    if (!has_whole_units(group)) return store_elements(tile, column, row);
    if (!device::ptx::elect_one()) return;
    device::store_tile(
        map_, {static_cast<std::int32_t>(group.c_column + column), static_cast<std::int32_t>(group.c_row + row)}, tile);
    device::commit_stores();
  }

  /// Returns whether the group's columns begin and end where stores through maps can. Only those of
  /// a `column_problem` may lie elsewhere.
  __device__ bool has_whole_units(const gemm_group& group) const {
    return (group.c_column % result_unit | (group.c_column + columns_) % result_unit) == 0;
  }

  /// Stores what a staging tile has of the group, element by element.
  __device__ void store_elements(const unsigned char* tile, std::uint32_t column, std::uint32_t row) const {
    const gemm_group& group = *record_;
    for (std::uint32_t i = threadIdx.x % 32; i < strip_rows * piece_lines; i += 32) {
      const std::uint32_t tile_row = i / piece_lines;
      const std::uint32_t tile_column = i % piece_lines;
      if (row + tile_row >= group.m || column + tile_column >= columns_) continue;
      const std::uint32_t at = swizzled_unit(tile_row, tile_column / result_unit) + tile_column % result_unit * 2;
      const std::uint64_t to = group.c + (row + tile_row) * group.c_pitch + (column + tile_column) * 2;
      *reinterpret_cast<std::uint16_t*>(to) = *reinterpret_cast<const std::uint16_t*>(tile + at);
    }
  }

  device::acquired_map map_;
  const gemm_group* record_{};
  std::uint32_t columns_{};  ///< of the group's C
  unsigned char* tiles_;
  std::uint32_t acquired_{~0u};
  std::uint32_t next_{};
  bool only_rounds_;
};

}  // namespace tmap::kernels
