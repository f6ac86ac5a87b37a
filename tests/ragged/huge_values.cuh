// SPDX-License-Identifier: Apache-2.0
#pragma once

// The elements of huge memories before and after an operation.

#include <cstdint>

#include "ragged/huge_memory.cuh"

namespace tmap::testing {

/// Makes bytes and 24-bit floats that are functions of the element's number.
struct noise_bytes {
  __device__ std::uint8_t operator()(std::uint64_t i, const huge_place& = {}) const {
    return static_cast<std::uint8_t>(noise_at(i));
  }
};
struct noise_floats {
  __device__ float value(std::uint64_t i) const {
    return static_cast<float>(static_cast<int>(noise_at(i) >> 40) - (1 << 23)) * 0x1p-10f;
  }
  __device__ std::uint32_t operator()(std::uint64_t i, const huge_place& = {}) const {
    return __float_as_uint(value(i));
  }
};

template <class Word>
struct nothing_yet {
  __device__ Word operator()(std::uint64_t, const huge_place&) const { return poison_word<Word>; }
};

struct copied_bytes {
  huge_side source;
  __device__ std::uint8_t operator()(std::uint64_t, const huge_place& place) const {
    return place.is_inside ? noise_bytes{}(source.at(place)) : poison_word<std::uint8_t>;
  }
};

/// Makes the same bytes with rows and columns exchanged.
struct turned_bytes {
  huge_side source;
  __device__ std::uint8_t operator()(std::uint64_t, const huge_place& place) const {
    if (!place.is_inside) return poison_word<std::uint8_t>;
    return noise_bytes{}(source.at({place.tensor, place.column, place.row, true, false}));
  }
};
struct turned_floats {
  huge_side source;
  __device__ std::uint32_t operator()(std::uint64_t, const huge_place& place) const {
    if (!place.is_inside) return poison_word<std::uint32_t>;
    return noise_floats{}(source.at({place.tensor, place.column, place.row, true, false}));
  }
};

/// Makes the source's bytes inside its rows and columns, and the fill elsewhere.
struct padded_bytes {
  huge_side source;
  std::uint8_t fill;
  __device__ std::uint8_t operator()(std::uint64_t, const huge_place& place) const {
    if (!place.is_inside) return poison_word<std::uint8_t>;
    const huge_tensor& tensor = source.tensors[place.tensor];
    const bool is_moved = place.row < tensor.rows && place.column < tensor.columns;
    return is_moved ? noise_bytes{}(source.at(place)) : fill;
  }
};

/// Reverses the rows: row i of `all` is row all - 1 - i of the source, if the source has it.
struct reversed_rows {
  huge_side source;
  std::uint64_t all;
  __device__ std::uint8_t operator()(std::uint64_t, const huge_place& place) const {
    const std::uint64_t row = all - 1 - place.row;
    if (!place.is_inside || row >= source.tensors[0].rows) return poison_word<std::uint8_t>;
    return noise_bytes{}(source.at({0, row, place.column, true, false}));
  }
};

struct bytes_as_floats {
  huge_side source;
  float scale;
  float shift;
  __device__ std::uint32_t operator()(std::uint64_t, const huge_place& place) const {
    if (!place.is_inside) return poison_word<std::uint32_t>;
    return __float_as_uint(fmaf(static_cast<float>(noise_bytes{}(source.at(place))), scale, shift));
  }
};

/// Makes the summands that the destination holds; they differ from those that are added.
struct first_summands {
  __device__ static float value(std::uint64_t i) { return noise_floats{}.value(i ^ std::uint64_t{1} << 40); }
  __device__ std::uint32_t operator()(std::uint64_t i, const huge_place& place) const {
    return place.is_inside ? __float_as_uint(value(i)) : poison_word<std::uint32_t>;
  }
};
struct float_sums {
  huge_side source;
  float a;
  __device__ std::uint32_t operator()(std::uint64_t i, const huge_place& place) const {
    if (!place.is_inside) return poison_word<std::uint32_t>;
    return __float_as_uint(fmaf(a, noise_floats{}.value(source.at(place)), first_summands::value(i)));
  }
};

struct window_maxima {
  huge_side source;
  std::uint32_t radius;
  __device__ std::uint32_t operator()(std::uint64_t, const huge_place& place) const {
    if (!place.is_inside) return poison_word<std::uint32_t>;
    const std::uint64_t columns = source.tensors[place.tensor].columns;
    const std::uint64_t behind = columns - 1 - place.column;
    const std::uint64_t first = source.at(place) - (place.column < radius ? place.column : radius);
    const std::uint64_t last = source.at(place) + (behind < radius ? behind : radius);
    float largest = noise_floats{}.value(first);
    for (std::uint64_t i = first + 1; i <= last; ++i) largest = fmaxf(largest, noise_floats{}.value(i));
    return __float_as_uint(largest);
  }
};

/// Makes every 4096th float of a memory a distinct number above those in between.
struct single_peaks {
  static constexpr std::uint64_t apart = 4096;
  __device__ static float value(std::uint64_t i) {
    return i % apart == 0 ? static_cast<float>(noise_at(i) >> 40) : -1.0f;
  }
  __device__ std::uint32_t operator()(std::uint64_t i, const huge_place&) const { return __float_as_uint(value(i)); }
};
/// Makes the maxima of windows that hold at most one peak.
struct peaks_in_windows {
  huge_side source;
  std::uint32_t radius;
  __device__ std::uint32_t operator()(std::uint64_t, const huge_place& place) const {
    if (!place.is_inside) return poison_word<std::uint32_t>;
    const std::uint64_t behind = source.tensors[place.tensor].columns - 1 - place.column;
    const std::uint64_t first = source.at(place) - (place.column < radius ? place.column : radius);
    const std::uint64_t last = source.at(place) + (behind < radius ? behind : radius);
    const std::uint64_t peak = last / single_peaks::apart * single_peaks::apart;
    return __float_as_uint(peak < first ? -1.0f : single_peaks::value(peak));
  }
};

/// Makes bf16 numbers: one in 256 is 1, the last of a row is 2, and others are 0, so that sums are
/// exact in any order. Elements outside of tensors are 64.
struct sparse_halves {
  __device__ static std::uint32_t value(std::uint64_t i, const huge_place& place) {
    return place.is_last ? 2 : noise_at(i) % 256 == 0 ? 1 : 0;
  }
  __device__ std::uint16_t operator()(std::uint64_t i, const huge_place& place) const {
    constexpr std::uint16_t bits[]{0x0000, 0x3f80, 0x4000};
    return place.is_inside ? bits[value(i, place)] : 0x4280;
  }
};

/// Makes bf16 numbers of eight bits, and the same numbers as floats.
struct small_halves {
  __device__ static float value(std::uint64_t i) { return static_cast<float>(noise_at(i) >> 56); }
  __device__ std::uint16_t operator()(std::uint64_t i, const huge_place&) const {
    return static_cast<std::uint16_t>(__float_as_uint(value(i)) >> 16);
  }
};
struct halves_as_floats {
  huge_side source;
  __device__ std::uint32_t operator()(std::uint64_t, const huge_place& place) const {
    if (!place.is_inside) return poison_word<std::uint32_t>;
    return __float_as_uint(small_halves::value(source.at(place)));
  }
};

/// Makes the sums of all rows; those of tensor t begin at `first[t]`.
struct row_sums {
  std::uint32_t* sums;
  std::uint64_t first[huge_side::most];
  __device__ std::uint32_t& of(const huge_place& place) const { return sums[first[place.tensor] + place.row]; }
};

inline __global__ void sum_kernel(huge_side side, row_sums sums) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < side.elements; i += step) {
    const huge_place place = side.find(i);
    const std::uint32_t value = place.is_inside ? sparse_halves::value(i, place) : 0;
    if (value != 0) atomicAdd(&sums.of(place), value);
  }
}

struct reduced_rows {
  row_sums rows;
  bool is_sum;  ///< otherwise the maximum, which is the last element
  __device__ std::uint32_t operator()(std::uint64_t, const huge_place& place) const {
    if (!place.is_inside) return poison_word<std::uint32_t>;
    return __float_as_uint(is_sum ? static_cast<float>(rows.of(place)) : 2.0f);
  }
};

}  // namespace tmap::testing
