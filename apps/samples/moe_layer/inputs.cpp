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

}  // namespace

layer_weights random_weights(const layer_sizes& sizes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::uint64_t matrix = std::uint64_t{sizes.experts} * sizes.width;
  layer_weights made;
  made.router = normal_numbers(matrix, scale_of(sizes.width), random);
  made.gate_up = normal_numbers(matrix * 2 * sizes.hidden, scale_of(sizes.width), random);
  made.down = normal_numbers(matrix * sizes.hidden, scale_of(sizes.hidden), random);
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
