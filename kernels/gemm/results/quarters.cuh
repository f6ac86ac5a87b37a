// SPDX-License-Identifier: Apache-2.0
#pragma once

// Takes quarters of a thread's sums, 32 columns each, out of registers and puts them back.

#include <cstdint>

namespace tmap::kernels {

/// A quarter of 128 columns: rows lane / 4 and lane / 4 + 8.
inline constexpr std::uint32_t quarter_columns = 32;
inline constexpr std::uint32_t quarter_sums = 16;
/// The number of a thread's sums for 64 columns.
inline constexpr std::uint32_t piece_sums = 32;

/// Copies a quarter of the sums, which may be any, to registers that are known to the compiler, or
/// back. All threads take the same. So the code that works on a quarter exists once.
template <std::uint32_t At, std::uint32_t Count>
__device__ void take_known(float (&to)[quarter_sums], const float (&sums)[Count]) {
  if constexpr ((At + 1) * quarter_sums <= Count) {
#pragma unroll
    for (std::uint32_t i = 0; i < quarter_sums; ++i) to[i] = sums[At * quarter_sums + i];
  }
}
template <std::uint32_t Count>
__device__ void take(float (&to)[quarter_sums], const float (&sums)[Count], std::uint32_t quarter) {
  switch (quarter) {
    case 0: take_known<0>(to, sums); break;
    case 1: take_known<1>(to, sums); break;
    case 2: take_known<2>(to, sums); break;
    case 3: take_known<3>(to, sums); break;
    case 4: take_known<4>(to, sums); break;
    case 5: take_known<5>(to, sums); break;
    case 6: take_known<6>(to, sums); break;
    default: take_known<7>(to, sums); break;
  }
}
/// Copies 64 columns of interleaved gates and values. Both get the order `singles`.
template <std::uint32_t At, std::uint32_t Count>
__device__ void take_known(float (&gates)[quarter_sums], float (&values)[quarter_sums], const float (&sums)[Count]) {
  if constexpr ((At + 1) * 2 * quarter_sums <= Count) {
#pragma unroll
    for (std::uint32_t i = 0; i < quarter_sums; ++i) {
      gates[i] = sums[(At * quarter_sums + i) * 2];
      values[i] = sums[(At * quarter_sums + i) * 2 + 1];
    }
  }
}
template <std::uint32_t Count>
__device__ void take_separated(float (&gates)[quarter_sums], float (&values)[quarter_sums], const float (&sums)[Count],
                               std::uint32_t two_quarters) {
  switch (two_quarters) {
    case 0: take_known<0>(gates, values, sums); break;
    case 1: take_known<1>(gates, values, sums); break;
    case 2: take_known<2>(gates, values, sums); break;
    default: take_known<3>(gates, values, sums); break;
  }
}
template <std::uint32_t At, std::uint32_t Count>
__device__ void put_known(float (&sums)[Count], const float (&from)[quarter_sums]) {
  if constexpr ((At + 1) * quarter_sums <= Count) {
#pragma unroll
    for (std::uint32_t i = 0; i < quarter_sums; ++i) sums[At * quarter_sums + i] = from[i];
  }
}
/// Results are put into the first half of the sums.
template <std::uint32_t Count>
__device__ void put(float (&sums)[Count], std::uint32_t quarter, const float (&from)[quarter_sums]) {
  switch (quarter) {
    case 0: put_known<0>(sums, from); break;
    case 1: put_known<1>(sums, from); break;
    case 2: put_known<2>(sums, from); break;
    default: put_known<3>(sums, from); break;
  }
}

}  // namespace tmap::kernels
