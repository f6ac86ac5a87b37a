// SPDX-License-Identifier: Apache-2.0
#include "apps/samples/moe_layer/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace moe {
namespace {

std::vector<float> normal_numbers(std::uint64_t count, double deviation, std::mt19937_64& random) {
  std::normal_distribution<double> draw(0, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = __bfloat162float(__double2bfloat16(draw(random)));
  return values;
}

double scale_of(std::uint32_t summed) {
  return 1 / std::sqrt(static_cast<double>(summed));
}

std::uint64_t blocks_of(std::uint64_t elements) {
  return (elements + scaled - 1) / scaled;
}

/// Calls `use(number, scale)` with the indices of each number and of its scale.
template <class Use>
void visit(std::uint64_t numbers, std::uint64_t lines, std::uint64_t columns, const Use& use) {
  for (std::uint64_t i = 0; i < numbers; ++i) {
    const std::uint64_t line = i / columns;
    const std::uint64_t block_line = line / lines * blocks_of(lines) + line % lines / scaled;
    use(i, block_line * blocks_of(columns) + i % columns / scaled);
  }
}

}  // namespace

scaled_matrices as_e4m3(const std::vector<float>& values, std::uint64_t lines, std::uint64_t columns) {
  constexpr float most = 448;
  const std::uint64_t experts = values.size() / (lines * columns);
  scaled_matrices made{std::vector<__nv_fp8_storage_t>(values.size()),
                       std::vector<float>(experts * blocks_of(lines) * blocks_of(columns))};
  visit(values.size(), lines, columns, [&](std::uint64_t i, std::uint64_t scale) {
    made.scales[scale] = std::max(made.scales[scale], std::abs(values[i]));
  });
  for (float& top : made.scales) top = top == 0 ? 1 : std::exp2(std::ceil(std::log2(top / most)));
  visit(values.size(), lines, columns, [&](std::uint64_t i, std::uint64_t scale) {
    made.values[i] = __nv_cvt_float_to_fp8(values[i] / made.scales[scale], __NV_SATFINITE, __NV_E4M3);
  });
  return made;
}

std::vector<float> as_float(const scaled_matrices& from, std::uint64_t lines, std::uint64_t columns) {
  std::vector<float> made(from.values.size());
  visit(made.size(), lines, columns, [&](std::uint64_t i, std::uint64_t scale) {
    made[i] = __half2float(__half(__nv_cvt_fp8_to_halfraw(from.values[i], __NV_E4M3))) * from.scales[scale];
  });
  return made;
}

layer_weights random_weights(const layer_sizes& sizes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::uint64_t matrix = std::uint64_t{sizes.experts} * sizes.width;
  layer_weights made;
  made.router = normal_numbers(matrix, scale_of(sizes.width), random);
  made.gate_up = normal_numbers(matrix * 2 * sizes.hidden, scale_of(sizes.width), random);
  made.down = normal_numbers(matrix * sizes.hidden, scale_of(sizes.hidden), random);
  if (!sizes.has_8_bits) return made;
  const auto rounded = [](const std::vector<float>& values, std::uint64_t lines, std::uint64_t columns) {
    return as_float(as_e4m3(values, lines, columns), lines, columns);
  };
  made.gate_up = rounded(made.gate_up, 2 * std::uint64_t{sizes.hidden}, sizes.width);
  made.down = rounded(made.down, sizes.width, sizes.hidden);
  return made;
}

std::vector<float> random_tokens(const layer_sizes& sizes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  return normal_numbers(std::uint64_t{sizes.tokens} * sizes.width, 1, random);
}

std::vector<__nv_bfloat16> as_bf16(const std::vector<float>& values) {
  std::vector<__nv_bfloat16> made(values.size());
  std::transform(values.begin(), values.end(), made.begin(), [](float value) { return __float2bfloat16(value); });
  return made;
}

std::vector<float> as_float(const std::vector<__nv_bfloat16>& values) {
  std::vector<float> made(values.size());
  std::transform(values.begin(), values.end(), made.begin(),
                 [](__nv_bfloat16 value) { return __bfloat162float(value); });
  return made;
}

}  // namespace moe
