// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

// The shapes that grouped_gemm_bench multiplies. Sizes are drawn from a fixed seed. Other programs
// read them from `grouped_gemm_bench --shapes`.

namespace tmap::apps::bench {

/// States how rows are shared among groups: by weights, functions of u uniform in (0, 1), which are
/// normalised to the sum.
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
  double goal;     ///< TFLOP/s in bf16; 0 means none
  bool in_8_bits;  ///< also measured with 8-bit operands
  std::string name() const;
  double operations() const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(n) * static_cast<double>(k);
  }
};

/// Returns sizes that add up to `rows`, the same in every run.
std::vector<std::int64_t> drawn_sizes(const row_shape& shape);

struct pointer_size {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};
/// Returns 64 groups: M from 1 to 2048; N and K from {1024, 2048, 4096}, drawn per group.
std::vector<pointer_size> drawn_pointer_sizes();

const std::vector<row_shape>& table_shapes();
/// Returns the shape of the gradient of weights: `n` and `k` are the sides of each group's result.
const row_shape& weight_shape();

/// Returns all of these shapes, for other programs.
nlohmann::json shapes_as_json();

}  // namespace tmap::apps::bench
