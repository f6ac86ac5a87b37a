// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/grouped_gemm.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

// Random normal inputs made on the GPU, and results checked there.

namespace tmap::apps::bench {

/// `count` elements of this type at `to`; waits.
void fill_normal(gemm::operand_type type, void* to, std::size_t count, std::uint64_t seed);
/// Uniform in (0.5, 1.5); waits.
void fill_scales(float* to, std::size_t count, std::uint64_t seed);

/// One product C = A * B^T (or, `sums_rows`, A^T * B) as the check sees it. Pitches count elements.
struct checked_product {
  const void* a;
  const void* b;
  const void* c;
  const float* row_scales;     ///< or null
  const float* column_scales;  ///< or null
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  std::int64_t a_pitch;
  std::int64_t b_pitch;
  std::int64_t c_pitch;
};

struct check_answer {
  double worst;           ///< the largest error in units of what rounding and sums in f32 may make; good below 1
  std::uint64_t checked;  ///< elements, spread over all products, the last row and column of each among them
};

/// How the products' sums are made.
struct checked_sums {
  gemm::operand_type type;
  bool sums_rows;
  bool fast_accumulation;
};

/// C is bf16.
check_answer check_products(const checked_sums& sums, const std::vector<checked_product>& products);

/// How many of these 16-bit words are 0xffff, the poison of outputs, a NaN.
std::uint64_t count_poison(const void* words, std::size_t count);

}  // namespace tmap::apps::bench
