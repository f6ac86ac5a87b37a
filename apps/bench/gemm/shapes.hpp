// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

// What grouped_gemm_bench multiplies. Sizes are drawn from a fixed seed, so that peers in other
// programs draw the same (`grouped_gemm_bench --shapes` writes them).

namespace tmap::apps::bench {

/// How rows are shared among groups: by weights, of u uniform in (0, 1), normalised to the sum.
enum class row_weights {
  equal,
  u,
  u_squared,
  half_plus_u,
};

struct row_shape {
  std::uint32_t groups;
  std::uint64_t rows;
  std::uint64_t n;
  std::uint64_t k;
  row_weights weights;
  double goal;     ///< TFLOP/s in bf16; 0: none
  bool in_8_bits;  ///< measured with 8-bit operands, too
  std::string name() const;
  double operations() const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(n) * static_cast<double>(k);
  }
};

/// Sizes that add up to `rows`, the same in every run.
std::vector<std::int64_t> drawn_sizes(const row_shape& shape);

struct pointer_size {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};
/// 64 groups: M 1 to 2048, N and K from {1024, 2048, 4096} each its own.
std::vector<pointer_size> drawn_pointer_sizes();

const std::vector<row_shape>& table_shapes();
/// The gradient of weights: `n` and `k` are the sides of each group's result.
const row_shape& weight_shape();

/// All of the above, for other programs.
nlohmann::json shapes_as_json();

}  // namespace tmap::apps::bench
