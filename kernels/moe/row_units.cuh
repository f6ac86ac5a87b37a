// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of `combine` and `combine_backward`, in units of 16 bytes.

#include <tmap/grouped_gemm.hpp>
#include <tmap/moe.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace tmap::kernels {

inline constexpr std::uint32_t unit_bytes = 16;  // a thread takes so many bytes of a row at a time

/// The floats in a unit of 16 bytes.
template <class Element>
struct unit_of;

template <>
struct unit_of<float> {
  static constexpr std::uint32_t count = 4;
  __device__ static void read(const uint4& unit, float (&values)[count]) {
    const std::uint32_t words[]{unit.x, unit.y, unit.z, unit.w};
#pragma unroll
    for (std::uint32_t i = 0; i < count; ++i) values[i] = __uint_as_float(words[i]);
  }
  __device__ static uint4 write(const float (&values)[count]) {
    return {__float_as_uint(values[0]), __float_as_uint(values[1]), __float_as_uint(values[2]),
            __float_as_uint(values[3])};
  }
};

struct bf16_pairs {
  using pair = __nv_bfloat162;
  __device__ static float2 floats(pair of) { return __bfloat1622float2(of); }
  __device__ static pair rounded(float2 of) { return __float22bfloat162_rn(of); }
};
struct f16_pairs {
  using pair = __half2;
  __device__ static float2 floats(pair of) { return __half22float2(of); }
  __device__ static pair rounded(float2 of) { return __float22half2_rn(of); }
};

template <class Pairs>
struct unit_of_pairs {
  static constexpr std::uint32_t count = 8;
  using pair = typename Pairs::pair;
  __device__ static void read(const uint4& unit, float (&values)[count]) {
    const auto* const pairs = reinterpret_cast<const pair*>(&unit);
#pragma unroll
    for (std::uint32_t i = 0; i < count / 2; ++i) {
      const float2 two = Pairs::floats(pairs[i]);
      values[2 * i] = two.x;
      values[2 * i + 1] = two.y;
    }
  }
  __device__ static uint4 write(const float (&values)[count]) {
    uint4 unit;
    auto* const pairs = reinterpret_cast<pair*>(&unit);
#pragma unroll
    for (std::uint32_t i = 0; i < count / 2; ++i) {
      pairs[i] = Pairs::rounded(float2{values[2 * i], values[2 * i + 1]});
    }
    return unit;
  }
};
template <>
struct unit_of<__nv_bfloat16> : unit_of_pairs<bf16_pairs> {};
template <>
struct unit_of<__half> : unit_of_pairs<f16_pairs> {};

__device__ inline uint4* unit_at(const gemm::matrix& of, std::uint64_t row, std::uint64_t unit) {
  return reinterpret_cast<uint4*>(of.address + row * of.pitch_bytes + unit * unit_bytes);
}

__device__ inline bool has_row(std::int32_t row, std::uint64_t rows) {
  return row >= 0 && static_cast<std::uint64_t>(row) < rows;
}

__device__ inline moe::choice_status judge_row(std::int32_t row, std::uint64_t rows) {
  if (row == -1) return {moe::choice_status::empty_bit};
  return {has_row(row, rows) ? 0 : static_cast<std::uint32_t>(moe::fault::row)};
}

}  // namespace tmap::kernels
