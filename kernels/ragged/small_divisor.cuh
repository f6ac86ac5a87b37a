// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tmap::kernels {

/// Quotients by one divisor, of values whose product with it is below 2^31: a multiplication.
class small_divisor {
 public:
  explicit __device__ small_divisor(std::uint32_t by) : factor_(((1u << 31) + by - 1) / by) {}
  __device__ std::uint32_t operator()(std::uint32_t value) const { return __umulhi(value * 2, factor_); }

 private:
  std::uint32_t factor_;
};

}  // namespace tmap::kernels
