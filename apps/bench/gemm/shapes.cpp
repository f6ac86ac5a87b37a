// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/gemm/shapes.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <nlohmann/json.hpp>

namespace tmap::apps::bench {
namespace {

double uniform(std::mt19937_64& random) {
  return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
}

double weight_of(row_weights weights, std::mt19937_64& random) {
  const double u = uniform(random);
  switch (weights) {
    case row_weights::u: return u;
    case row_weights::u_squared: return u * u;
    case row_weights::half_plus_u: return 0.5 + u;
    default: return 1;
  }
}

nlohmann::json as_json(const row_shape& shape) {
  return {{"groups", shape.groups}, {"rows", shape.rows},           {"n", shape.n},
          {"k", shape.k},           {"in_8_bits", shape.in_8_bits}, {"sizes", drawn_sizes(shape)}};
}

}  // namespace

std::string row_shape::name() const {
  return std::to_string(groups) + ", " + std::to_string(rows) + ", " + std::to_string(n) + ", " + std::to_string(k);
}

std::vector<std::int64_t> drawn_sizes(const row_shape& shape) {
  const std::uint64_t rows = shape.rows;
  std::mt19937_64 random(1000 + shape.groups);
  std::vector<double> drawn(shape.groups);
  double sum = 0;
  for (double& weight : drawn) sum += weight = weight_of(shape.weights, random);
  // Rounds the ends instead of the sizes, so that the sizes add up.
  std::vector<std::int64_t> sizes;
  double end = 0;
  std::int64_t last = 0;
  for (const double weight : drawn) {
    end += weight;
    const auto rounded = static_cast<std::int64_t>(std::llround(end / sum * static_cast<double>(rows)));
    sizes.push_back(rounded - last);
    last = rounded;
  }
  sizes.back() += static_cast<std::int64_t>(rows) - last;
  return sizes;
}

std::vector<pointer_size> drawn_pointer_sizes() {
  constexpr std::int64_t sides[] = {1024, 2048, 4096};
  constexpr int products = 64;
  std::mt19937_64 random(64);
  std::vector<pointer_size> sizes;
  for (int i = 0; i < products; ++i) {
    const auto m = static_cast<std::int64_t>(1 + random() % 2048);
    const std::int64_t n = sides[random() % 3];
    sizes.push_back({m, n, sides[random() % 3]});
  }
  return sizes;
}

const std::vector<row_shape>& table_shapes() {
  static const std::vector<row_shape> shapes{
      {32, 8192, 4096, 7168, row_weights::u, 605, true},
      {32, 8192, 7168, 2048, row_weights::u_squared, 560, false},
      {8, 8192, 28672, 4096, row_weights::half_plus_u, 730, false},
      {128, 16384, 1536, 2048, row_weights::u_squared, 415, true},
      {128, 16384, 2048, 768, row_weights::u_squared, 367, false},
      {4, 32768, 4096, 7168, row_weights::equal, 750, true},
      {256, 2048, 4096, 7168, row_weights::u_squared, 38, false},
  };
  return shapes;
}

const row_shape& weight_shape() {
  static const row_shape shape{32, 8192, 4096, 7168, row_weights::u, 0, false};
  return shape;
}

nlohmann::json shapes_as_json() {
  nlohmann::json all;
  for (const row_shape& shape : table_shapes()) all["rows"].push_back(as_json(shape));
  all["weights"] = as_json(weight_shape());
  for (const pointer_size& size : drawn_pointer_sizes()) all["pointers"].push_back({size.m, size.n, size.k});
  return all;
}

}  // namespace tmap::apps::bench
