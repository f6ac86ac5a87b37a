// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tmap::kernels {

/// Divides by one divisor with a multiplication. The product of value and divisor must be below
/// 2^31.
class small_divisor {
 public:
  explicit __device__ small_divisor(std::uint32_t by) : factor_(((1u << 31) + by - 1) / by) {}
  __device__ std::uint32_t operator()(std::uint32_t value) const { return __umulhi(value * 2, factor_); }

 private:
  std::uint32_t factor_;
};

}  // namespace tmap::kernels
