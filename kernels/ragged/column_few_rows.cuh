// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sums the columns of tensors with few rows.

#include "kernels/ragged/column_part.cuh"
#include "kernels/ragged/lane_ring.cuh"

#include <cstdint>

namespace tmap::kernels {

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
  explicit __device__ few_row_sums(const lane_ring<From, column_threads>& ring) : ring_(ring) {}

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

  lane_ring<From, column_threads> ring_;
  std::uint32_t set_{};
  bool is_loaded_{};  ///< the chunk of these members is in set `set_`, or on its way there
  std::uint32_t rows_{};
  std::uint64_t destination_{};
  std::uint64_t columns_{};
  std::uint64_t column_{};  ///< of the first sum that the lane stores
};

}  // namespace tmap::kernels
