// SPDX-License-Identifier: Apache-2.0
#pragma once

// Results of the computing operations by their definition, element by element. Every test compares
// with them, on a GPU and on the host. Conversions are CUDA's own.

#include <tmap/detail/reduction_order.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <bit>
#include <cmath>
#include <deque>
#include <limits>
#include <vector>

#include "support/ragged_reference.hpp"

namespace tmap::testing::reference {

using ragged::value_type;

template <class T>
T load(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Replaces a NaN by the one bit pattern that arithmetic produces.
inline float canonical(float value) {
  return std::isnan(value) ? std::bit_cast<float>(0x7fffffffu) : value;
}

inline float value_at(value_type type, const unsigned char* from) {
  switch (type) {
    case value_type::u8: return static_cast<float>(*from);
    case value_type::f16: return __half2float(__half(__half_raw{load<std::uint16_t>(from)}));
    case value_type::bf16: return std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(from)} << 16);
    case value_type::f8_e4m3: return __half2float(__half(__nv_cvt_fp8_to_halfraw(*from, __NV_E4M3)));
    case value_type::f8_e5m2: return __half2float(__half(__nv_cvt_fp8_to_halfraw(*from, __NV_E5M2)));
    default: return load<float>(from);
  }
}

inline void put_value(value_type type, float value, unsigned char* to) {
  const auto put = [&](auto bits) { std::memcpy(to, &bits, sizeof bits); };
  switch (type) {
    case value_type::u8:
      return put(
          static_cast<std::uint8_t>(std::isnan(value) ? 0 : std::fmin(255, std::fmax(0, std::nearbyint(value)))));
    case value_type::f16: return put(static_cast<__half_raw>(__float2half_rn(value)).x);
    case value_type::bf16: return put(static_cast<__nv_bfloat16_raw>(__float2bfloat16_rn(value)).x);
    case value_type::f8_e4m3: return put(__nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3));
    case value_type::f8_e5m2: return put(__nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E5M2));
    default: return put(value);
  }
}

inline void saxpy(float a, const host_batch& x, host_batch& y) {
  for (std::uint64_t i = 0; i < x.tensors.size(); ++i) {
    for_each_element(x.tensors[i].shape, [&](const std::uint64_t* at) {
      unsigned char* const sum = y.element(i, at);
      put_value(value_type::f32, canonical(std::fma(a, load<float>(x.element(i, at)), load<float>(sum))), sum);
    });
  }
}

inline void cast(const ragged::cast_values& values, const host_batch& from, host_batch& to,
                 const std::vector<float>& scales, const std::vector<float>& shifts) {
  for (std::uint64_t i = 0; i < from.tensors.size(); ++i) {
    const float scale = scales.empty() ? values.scale : scales[i];
    const float shift = shifts.empty() ? values.shift : shifts[i];
    for_each_element(from.tensors[i].shape, [&](const std::uint64_t* at) {
      const float value = value_at(values.from, from.element(i, at));
      put_value(values.to, canonical(std::fma(value, scale, shift)), to.element(i, at));
    });
  }
}

/// Returns the larger value; NaN if either is, and +0 is larger than -0.
inline float larger(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return canonical(std::nanf(""));
  if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}

/// Calls `use(i, at)` for the first element of each row.
template <class Use>
void for_each_row(const host_batch& batch, const Use& use) {
  for (std::uint64_t i = 0; i < batch.tensors.size(); ++i) {
    extents rows = batch.tensors[i].shape;
    if (rows.dim[0] == 0) continue;
    rows.dim[0] = 1;
    for_each_element(rows, [&](const std::uint64_t* at) { use(i, at); });
  }
}

inline std::vector<float> row_values(value_type type, const host_batch& batch, std::uint64_t i,
                                     const std::uint64_t* at) {
  std::vector<float> row;
  for (std::uint64_t k = 0; k < batch.tensors[i].shape.dim[0]; ++k) {
    row.push_back(value_at(type, batch.element(i, at) + k * batch.element_bytes));
  }
  return row;
}

/// Keeps in order the places of a window that may still be the largest, and those of NaNs.
inline void max_pool(std::uint64_t radius, const host_batch& from, host_batch& to) {
  for_each_row(from, [&](std::uint64_t i, const std::uint64_t* at) {
    const std::vector<float> row = row_values(value_type::f32, from, i, at);
    std::deque<std::uint64_t> tops;
    std::uint64_t next = 0;
    std::uint64_t last_nan = std::numeric_limits<std::uint64_t>::max();
    std::vector<std::uint64_t> nan_at_or_before(row.size());
    for (std::uint64_t k = 0; k < row.size(); ++k) {
      if (std::isnan(row[k])) last_nan = k;
      nan_at_or_before[k] = last_nan;
    }
    for (std::uint64_t k = 0; k < row.size(); ++k) {
      for (; next < row.size() && next <= k + radius; ++next) {
        if (std::isnan(row[next])) continue;
        while (!tops.empty() && std::bit_cast<std::uint32_t>(larger(row[tops.back()], row[next])) ==
                                    std::bit_cast<std::uint32_t>(row[next])) {
          tops.pop_back();
        }
        tops.push_back(next);
      }
      while (!tops.empty() && tops.front() + radius < k) tops.pop_front();
      const std::uint64_t nan = nan_at_or_before[std::min<std::uint64_t>(row.size() - 1, k + radius)];
      const bool has_nan = nan != std::numeric_limits<std::uint64_t>::max() && nan + radius >= k;
      put_value(value_type::f32, has_nan ? canonical(std::nanf("")) : row[tops.front()],
                to.element(i, at) + k * sizeof(float));
    }
  });
}

inline float combine(ragged::row_reduction reduction, float a, float b) {
  return reduction == ragged::row_reduction::sum ? canonical(a + b) : larger(a, b);
}

/// Combines each 32nd element into one of 32 running values, and then combines their halves.
inline float combine_slice(ragged::row_reduction reduction, const float* values, std::uint64_t count) {
  const float identity = reduction == ragged::row_reduction::sum ? -0.0f : -std::numeric_limits<float>::infinity();
  std::vector<float> running(32, identity);
  for (std::uint64_t k = 0; k < count; ++k) running[k % 32] = combine(reduction, running[k % 32], values[k]);
  for (std::uint32_t half = 16; half != 0; half /= 2) {
    for (std::uint32_t k = 0; k < half; ++k) running[k] = combine(reduction, running[k], running[k + half]);
  }
  return running[0];
}

inline float reduce_row(ragged::row_reduction reduction, const std::vector<float>& row) {
  const std::uint64_t each = tmap::detail::slice_elements(row.size());
  std::vector<float> results;
  for (std::uint64_t begin = 0; begin < row.size(); begin += each) {
    results.push_back(combine_slice(reduction, row.data() + begin, std::min<std::uint64_t>(each, row.size() - begin)));
  }
  return results.size() == 1 ? results[0] : combine_slice(reduction, results.data(), results.size());
}

inline void reduce_rows(value_type type, ragged::row_reduction reduction, const host_batch& from, host_batch& to) {
  for_each_row(from, [&](std::uint64_t i, const std::uint64_t* at) {
    put_value(value_type::f32, reduce_row(reduction, row_values(type, from, i, at)), to.element(i, at));
  });
}

/// Returns the number of elements along dim 0 or 1 that share a scale.
inline std::uint64_t block_extent(const ragged::quantize_values& values, std::uint32_t axis, const extents& shape) {
  using ragged::scale_block;
  const scale_block block = values.block;
  if (axis == 0 && block == scale_block::row) return std::max<std::uint64_t>(1, shape.dim[0]);
  if (axis == 0) return block == scale_block::block_128x1 ? 1 : 128;
  return axis == 1 && (block == scale_block::block_128x128 || block == scale_block::block_128x1) ? 128 : 1;
}

/// Returns the dims of the results of a tensor.
inline extents quantized_shape(const ragged::quantize_values& values, const extents& shape) {
  extents made = shape;
  if (values.block == ragged::scale_block::block_128x1) std::swap(made.dim[0], made.dim[1]);
  return made;
}

/// Returns the dims of the scales of a tensor.
inline extents scale_shape(const ragged::quantize_values& values, const extents& shape) {
  extents scales = shape;
  for (std::uint32_t axis = 0; axis < 2; ++axis) {
    const std::uint64_t extent = block_extent(values, axis, shape);
    scales.dim[axis] = (shape.dim[axis] + extent - 1) / extent;
  }
  if (values.transposed_scales) std::swap(scales.dim[0], scales.dim[1]);
  return scales;
}

inline float scale_of(const ragged::quantize_values& values, float top) {
  if (!std::isfinite(top)) return canonical(std::nanf(""));
  if (top == 0) return 1;
  const float most = values.to == value_type::f8_e4m3 ? 448.0f : 57344.0f;
  const float scale = std::max(top / most, std::numeric_limits<float>::min());
  if (!values.powers_of_two) return scale;
  int exponent = 0;
  return std::frexp(scale, &exponent) == 0.5f ? scale : std::ldexp(1.0f, exponent);
}

inline void quantize(const ragged::quantize_values& values, const host_batch& from, host_batch& to,
                     host_batch& scales) {
  for (std::uint64_t i = 0; i < from.tensors.size(); ++i) {
    const extents& shape = from.tensors[i].shape;
    const auto place_of_scale = [&](const std::uint64_t* at) {
      std::uint64_t block[max_rank];
      for (std::uint32_t axis = 0; axis < max_rank; ++axis) block[axis] = at[axis] / block_extent(values, axis, shape);
      if (values.transposed_scales) std::swap(block[0], block[1]);
      return scales.element(i, block);
    };
    for_each_element(shape, [&](const std::uint64_t* at) { put_value(value_type::f32, 0, place_of_scale(at)); });
    for_each_element(shape, [&](const std::uint64_t* at) {
      const float magnitude = std::fabs(value_at(values.from, from.element(i, at)));
      unsigned char* const top = place_of_scale(at);
      put_value(value_type::f32, larger(load<float>(top), magnitude), top);
    });
    for_each_element(scales.tensors[i].shape, [&](const std::uint64_t* block) {
      unsigned char* const place = scales.element(i, block);
      put_value(value_type::f32, scale_of(values, load<float>(place)), place);
    });
    for_each_element(shape, [&](const std::uint64_t* at) {
      const float inverse = 1 / load<float>(place_of_scale(at));
      std::uint64_t place[max_rank];
      std::copy(at, at + max_rank, place);
      if (values.block == ragged::scale_block::block_128x1) std::swap(place[0], place[1]);
      put_value(values.to, value_at(values.from, from.element(i, at)) * inverse, to.element(i, place));
    });
  }
}

/// Adds up 32 running values of each slice, neighbours in fours, and then slices, in order.
inline float sum_column(const std::vector<float>& column) {
  const std::uint64_t each = column.size() <= 64 * 256 ? 256 : ((column.size() + 63) / 64 + 31) / 32 * 32;
  float all = 0;
  for (std::uint64_t begin = 0; begin < column.size(); begin += each) {
    float running[32]{};
    for (std::uint64_t k = begin; k < std::min(begin + each, column.size()); ++k)
      running[(k - begin) % 32] += column[k];
    float slice = 0;
    for (std::uint32_t w = 0; w < 8; ++w) {
      const float* const four = running + 4 * w;
      slice += (four[0] + four[2]) + (four[1] + four[3]);
    }
    all += slice;
  }
  return canonical(all);
}

inline void column_sums(value_type type, value_type to_type, const host_batch& from, host_batch& to) {
  for (std::uint64_t i = 0; i < from.tensors.size(); ++i) {
    const extents& shape = from.tensors[i].shape;
    for (std::uint64_t column = 0; column < shape.dim[0]; ++column) {
      std::vector<float> values;
      std::uint64_t at[max_rank]{column};
      for (at[1] = 0; at[1] < shape.dim[1]; ++at[1]) values.push_back(value_at(type, from.element(i, at)));
      at[1] = 0;
      put_value(to_type, sum_column(values), to.element(i, at));
    }
  }
}

}  // namespace tmap::testing::reference
