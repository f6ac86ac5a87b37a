// SPDX-License-Identifier: Apache-2.0
#pragma once

// Columns of one tensor, as the lanes of `column_sums` load and add them up.

#include "kernels/ragged/column_pieces.hpp"
#include "kernels/ragged/planned_tensor.hpp"
#include "kernels/values/value_chunk.cuh"

#include <cstdint>

namespace tmap::kernels {

inline constexpr std::uint32_t column_threads = column_warps * 32;
inline constexpr std::uint32_t chunk_lanes = column_chunk / chunk_values;  ///< that read one row of a chunk
inline constexpr std::uint32_t warp_rows = 32 / chunk_lanes;
static_assert(warp_rows * column_warps == tmap::detail::column_values);

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

}  // namespace tmap::kernels
