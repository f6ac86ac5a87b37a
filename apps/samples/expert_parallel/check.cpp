// SPDX-License-Identifier: Apache-2.0
#include "apps/samples/expert_parallel/check.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace experts {
namespace {

float as_float(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}
/// Rounds to the nearest, ties to even. The number is finite.
std::uint16_t as_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Compares rows of each expert, and counts them.
void compare_rows(const layer_sizes& sizes, const layer_results& one_gpu, const std::vector<rank_results>& ranks,
                  comparison& found) {
  for (std::uint32_t expert = 0; expert < sizes.experts; ++expert) {
    const rank_results& home = ranks[expert / sizes.local_experts()];
    const std::uint32_t local = expert % sizes.local_experts();
    const std::int32_t rows = one_gpu.begins[expert + 1] - one_gpu.begins[expert];
    if (home.begins[local + 1] - home.begins[local] != rows) {
      found.fault = "expert " + std::to_string(expert) + " has another number of rows";
      return;
    }
    const auto width = static_cast<std::ptrdiff_t>(sizes.width);
    const auto want = one_gpu.outputs.begin() + one_gpu.begins[expert] * width;
    if (!std::equal(want, want + rows * width, home.outputs.begin() + home.begins[local] * width)) {
      found.fault = "rows of expert " + std::to_string(expert) + " have other bits";
      return;
    }
    found.rows += static_cast<std::uint64_t>(rows);
  }
}

/// Adds up the results of one token, by the definition of `combine_async`.
class token_sums {
 public:
  token_sums(const layer_sizes& sizes, const layer_results& of, std::uint64_t token)
      : sizes_(sizes), of_(of), first_(token * sizes.k) {}

  bool is_on_one_rank() const {
    for (std::uint32_t j = 1; j < sizes_.k; ++j) {
      if (rank_of(j) != rank_of(0)) return false;
    }
    return true;
  }
  std::uint16_t result(std::uint32_t column) const {
    float all = 0;
    for (std::uint32_t j = 0; j < sizes_.k; ++j) {
      if (is_first_of_its_rank(j)) all += as_float(as_bf16(sum(j, column)));
    }
    return as_bf16(all);
  }

 private:
  std::uint32_t rank_of(std::uint32_t j) const {
    return static_cast<std::uint32_t>(of_.ids[first_ + j]) / sizes_.local_experts();
  }
  bool is_first_of_its_rank(std::uint32_t j) const {
    for (std::uint32_t before = 0; before < j; ++before) {
      if (rank_of(before) == rank_of(j)) return false;
    }
    return true;
  }
  /// Returns the sum of the rank of choice `j`, its first one there.
  float sum(std::uint32_t j, std::uint32_t column) const {
    float made = 0;
    for (std::uint32_t i = j; i < sizes_.k; ++i) {
      if (rank_of(i) != rank_of(j)) continue;
      const auto row = static_cast<std::uint64_t>(of_.row_of_choice[first_ + i]);
      made = std::fmaf(of_.weights[first_ + i], as_float(of_.outputs[row * sizes_.width + column]), made);
    }
    return made;
  }

  const layer_sizes& sizes_;
  const layer_results& of_;
  std::uint64_t first_;
};

/// Zeros of either sign count as equal.
bool are_equal(std::uint16_t a, std::uint16_t b) {
  return a == b || ((a | b) & 0x7fff) == 0;
}

void compare_tokens(const layer_sizes& sizes, const layer_results& one_gpu, const std::vector<rank_results>& ranks,
                    comparison& found) {
  for (std::uint64_t token = 0; token < sizes.all_tokens() && found.fault.empty(); ++token) {
    const token_sums sums(sizes, one_gpu, token);
    const bf16_values& out = ranks[token / sizes.tokens].out;
    bool is_as_on_one_gpu = true;
    for (std::uint32_t column = 0; column < sizes.width; ++column) {
      const std::uint16_t got = out[token % sizes.tokens * sizes.width + column];
      is_as_on_one_gpu &= are_equal(got, one_gpu.out[token * sizes.width + column]);
      if (!sizes.returns_rows && !are_equal(got, sums.result(column)))
        found.fault = "token " + std::to_string(token) + " has another sum";
    }
    if ((sizes.returns_rows || sums.is_on_one_rank()) && !is_as_on_one_gpu) {
      found.fault = "token " + std::to_string(token) + " has other bits than the layer on one GPU";
    }
    ++(is_as_on_one_gpu ? found.tokens : found.other_bits);
  }
}

}  // namespace

comparison compare(const layer_sizes& sizes, const layer_results& one_gpu, const std::vector<rank_results>& ranks) {
  comparison found;
  compare_rows(sizes, one_gpu, ranks, found);
  if (found.fault.empty()) compare_tokens(sizes, one_gpu, ranks, found);
  return found;
}

}  // namespace experts
