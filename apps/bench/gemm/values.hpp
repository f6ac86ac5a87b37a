// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/grouped_gemm.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

// Generates normal random inputs on the GPU and checks results there.

namespace tmap::apps::bench {

/// Writes `count` elements of this type to `to`, and waits.
void fill_normal(gemm::operand_type type, void* to, std::size_t count, std::uint64_t seed);
/// Writes numbers that are uniform in (0.5, 1.5), and waits.
void fill_scales(float* to, std::size_t count, std::uint64_t seed);

/// One product C = A * B^T, or A^T * B if `sums_rows`, as the check reads it. Pitches count
/// elements.
struct checked_product {
  const void* a;
  const void* b;
  const void* c;
  const float* row_scales;     ///< may be null
  const float* column_scales;  ///< may be null
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  std::int64_t a_pitch;
  std::int64_t b_pitch;
  std::int64_t c_pitch;
};

struct check_answer {
  double worst;  ///< the largest error relative to the error that rounding and sums in f32 may cause; good if below 1
  std::uint64_t checked;  ///< elements, spread over all products; they include the last row and column of each
};

/// States how the products accumulate their sums.
struct checked_sums {
  gemm::operand_type type;
  bool sums_rows;
  bool fast_accumulation;
};

/// Checks products whose C is bf16.
check_answer check_products(const checked_sums& sums, const std::vector<checked_product>& products);

/// Counts the 16-bit words that are 0xffff, the NaN that outputs are poisoned with.
std::uint64_t count_poison(const void* words, std::size_t count);

}  // namespace tmap::apps::bench
