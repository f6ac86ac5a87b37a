// SPDX-License-Identifier: Apache-2.0
// Tests layers of experts whose weights have 8 bits and block scales. Each step is compared with
// plain loops of what the step before it wrote.
#include <tmap/detail/quantization.hpp>
#include <tmap/moe_layer.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gemm/gemm_fixture.hpp"
#include "gemm/host_matrix.hpp"
#include "gemm/product_reference.hpp"
#include "moe/moe_reference.hpp"
#include "moe/on_device.hpp"
#include "support/run_seed.hpp"

namespace tmap::moe::testing {
namespace {

using gemm::testing::number_type;

constexpr std::uint64_t block = gemm::scaled_elements;

std::uint64_t blocks_of(std::uint64_t elements) {
  return (elements + block - 1) / block;
}

/// Numbers as they are stored, without gaps.
struct stored {
  stored(number_type type_given, std::uint64_t rows_given, std::uint64_t columns_given)
      : type(type_given),
        rows(rows_given),
        columns(columns_given),
        bytes(rows_given * columns_given * gemm::testing::number_bytes(type_given)) {}

  double at(std::uint64_t row, std::uint64_t column) const {
    return static_cast<double>(gemm::testing::decode(type, &bytes[place(row, column)]));
  }
  void set(std::uint64_t row, std::uint64_t column, double value) {
    gemm::testing::encode(type, value, &bytes[place(row, column)]);
  }
  std::uint64_t pitch() const { return columns * gemm::testing::number_bytes(type); }
  void fill(double scale, std::mt19937_64& random) {
    std::normal_distribution<double> normal(0, scale);
    for (std::uint64_t row = 0; row < rows; ++row) {
      for (std::uint64_t column = 0; column < columns; ++column) set(row, column, normal(random));
    }
  }

  number_type type;
  std::uint64_t rows;
  std::uint64_t columns;
  std::vector<unsigned char> bytes;

 private:
  std::uint64_t place(std::uint64_t row, std::uint64_t column) const {
    return (row * columns + column) * gemm::testing::number_bytes(type);
  }
};

/// The weights of one product of all experts, and a scale for each 128 x 128 of them.
struct scaled_weights {
  scaled_weights(std::uint64_t experts, std::uint64_t lines_given, std::uint64_t columns, std::mt19937_64& random)
      : lines(lines_given), values(number_type::f8_e4m3, experts * lines_given, columns) {
    values.fill(16, random);
    std::uniform_real_distribution<float> scale(0.5f, 2);
    for (std::uint64_t i = 0; i < experts * blocks_of(lines) * blocks_of(columns); ++i) {
      scales.push_back(scale(random) / (16 * std::sqrt(static_cast<float>(columns))));
    }
  }
  float scale(std::uint64_t expert, std::uint64_t line, std::uint64_t column) const {
    return scales[(expert * blocks_of(lines) + line / block) * blocks_of(values.columns) + column / block];
  }

  std::uint64_t lines;
  stored values;
  std::vector<float> scales;
};

struct weights_on_device {
  explicit weights_on_device(const scaled_weights& from) : host(from), values(from.values.bytes), scales(from.scales) {}

  expert_weights places() const {
    const std::uint64_t across = blocks_of(host.values.columns);
    return {.values = {values.address(), host.values.pitch()},
            .group_pitch_bytes = host.lines * host.values.pitch(),
            .scales = {.values = scales.data(),
                       .line_stride = across,
                       .k_stride = 1,
                       .group_stride = blocks_of(host.lines) * across,
                       .lines = gemm::scaled_columns}};
  }

  const scaled_weights& host;
  device_array<unsigned char> values;
  device_array<float> scales;
};

struct scaled_case {
  std::string name{};
  route_sizes sizes{};
  std::uint64_t width{};
  std::uint64_t inner{};
  gemm::gate gate{.function = gemm::gate_function::silu};
  bool powers_of_two{};
};

/// The sum of a row's products with a line of weights.
gemm::testing::bounded times(const stored& a, const std::vector<float>& a_scales, std::uint64_t row,
                             const scaled_weights& b, std::uint64_t expert, std::uint64_t line) {
  double sum = 0;
  double magnitude = 0;
  for (std::uint64_t i = 0; i < a.columns; ++i) {
    const double scale = static_cast<double>(a_scales[row * blocks_of(a.columns) + i / block]) *
                         static_cast<double>(b.scale(expert, line, i));
    const double product = a.at(row, i) * b.values.at(expert * b.lines + line, i) * scale;
    sum += product;
    magnitude += std::abs(product);
  }
  // The tensor cores keep 13 bits below the largest term of a step.
  return {sum, magnitude * 0x1p-11 + 0x1p-20};
}

/// Quantizes a row of bf16 by definition.
void expect_quantized(const stored& x, std::uint64_t token, const stored& rows, const std::vector<float>& scales,
                      std::uint64_t row, bool powers_of_two) {
  for (std::uint64_t j = 0; j < blocks_of(x.columns); ++j) {
    float top = 0;
    const std::uint64_t last = std::min(x.columns, (j + 1) * block);
    for (std::uint64_t i = j * block; i < last; ++i) top = std::max(top, std::abs(static_cast<float>(x.at(token, i))));
    const auto made = tmap::detail::scale_of(top, 448, powers_of_two);
    ASSERT_EQ(scales[row * blocks_of(x.columns) + j], made.scale) << row << ", " << j;
    for (std::uint64_t i = j * block; i < last; ++i) {
      unsigned char want{};
      gemm::testing::encode(number_type::f8_e4m3,
                            static_cast<double>(static_cast<float>(x.at(token, i)) * made.inverse), &want);
      ASSERT_EQ(rows.bytes[row * x.columns + i], want) << row << ", " << i;
    }
  }
}

class moe_scaled_layer : public gemm::testing::gemm_test, public ::testing::WithParamInterface<scaled_case> {};

TEST_P(moe_scaled_layer, equals_plain_loops_step_by_step) {
  const scaled_case& of = GetParam();
  std::mt19937_64 random = tmap::testing::run_random(21);
  const std::uint64_t experts = of.sizes.experts;
  const std::uint64_t row_count = of.sizes.row_count();
  stored x(number_type::bf16, of.sizes.tokens, of.width);
  x.fill(1, random);
  std::fill_n(x.bytes.begin(), std::min<std::uint64_t>(x.pitch(), 2 * block), static_cast<unsigned char>(0));
  const scaled_weights gate_up(experts, 2 * of.inner, of.width, random), down(experts, of.width, of.inner, random);
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
  for (std::uint64_t i = 0; i < of.sizes.choices(); ++i) {
    ids.push_back(static_cast<std::int32_t>(random() % experts));
    weights.push_back(static_cast<float>(random() % 1000) / 1000);
  }
  ids[0] = -1;
  const weights_on_device device_gate_up(gate_up), device_down(down);
  const device_array<unsigned char> device_x(x.bytes);
  const device_array<std::int32_t> device_ids(ids);
  const device_array<float> device_weights(weights);
  stored rows(number_type::f8_e4m3, row_count, of.width), activated(number_type::f8_e4m3, row_count, of.inner),
      outputs(number_type::bf16, row_count, of.width), out(number_type::bf16, of.sizes.tokens, of.width);
  const guarded<unsigned char> device_rows(rows.bytes.size()), device_activated(activated.bytes.size()),
      device_outputs(outputs.bytes.size()), device_out(out.bytes.size());
  const guarded<float> row_scales(row_count * blocks_of(of.width)), activated_scales(row_count * blocks_of(of.inner));
  layer_problem problem;
  problem.type = gemm::operand_type::f8_e4m3;
  problem.routing = {.tokens = of.sizes.tokens,
                     .experts = of.sizes.experts,
                     .k = of.sizes.k,
                     .choices = given_choices{device_ids.data(), 4, device_weights.data()}};
  problem.width = of.width;
  problem.inner = of.inner;
  problem.x = {device_x.address(), x.pitch()};
  problem.gate_up = device_gate_up.places();
  problem.gate = of.gate;
  problem.down = device_down.places();
  problem.powers_of_two = of.powers_of_two;
  problem.out = {device_out.data(), out.pitch()};
  const layer_results results{.rows = {device_rows.data(), rows.pitch()},
                              .activated = {device_activated.data(), activated.pitch()},
                              .row_scales = row_scales.data(),
                              .activated_scales = activated_scales.data(),
                              .outputs = {device_outputs.data(), outputs.pitch()}};
  const device_array<unsigned char> scratch(workspace_bytes(problem).value());
  const run with{.where = {cuda::stream_ref{cudaStream_t{}}, {scratch.data(), scratch.bytes()}}};
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  TMAP_ASSERT_OK(layer(problem, results, with));
  rows.bytes = device_rows.download("rows");
  activated.bytes = device_activated.download("activated");
  outputs.bytes = device_outputs.download("outputs");
  out.bytes = device_out.download("out");
  const std::vector<float> of_rows = row_scales.download("row_scales");
  const std::vector<float> of_activated = activated_scales.download("activated_scales");

  const sorted_choices sorted = sort_by_expert(of.sizes, {ids.begin(), ids.end()}, weights);
  for (std::uint64_t choice = 0; choice < ids.size(); ++choice) {
    if (sorted.row_of_choice[choice] < 0) continue;
    const auto row = static_cast<std::uint64_t>(sorted.row_of_choice[choice]);
    const auto expert = static_cast<std::uint64_t>(ids[choice]);
    expect_quantized(x, choice / of.sizes.k, rows, of_rows, row, of.powers_of_two);
    if (HasFatalFailure()) return;
    for (std::uint64_t i = 0; i < of.inner; ++i) {
      const bool are_halves = of.gate.columns == gemm::gate_columns::halves;
      const auto gate = times(rows, of_rows, row, gate_up, expert, are_halves ? i : 2 * i);
      const auto value = times(rows, of_rows, row, gate_up, expert, are_halves ? of.inner + i : 2 * i + 1);
      const auto want = gemm::testing::gated(gate, value, of.gate);
      const double scale = static_cast<double>(of_activated[row * blocks_of(of.inner) + i / block]);
      const double allowed = want.error * 1.1 + std::abs(want.value) * 0x1p-4 + scale * 0x1p-9;
      ASSERT_NEAR(activated.at(row, i) * scale, want.value, allowed) << "activated " << row << ", " << i;
    }
    for (std::uint64_t i = 0; i < of.width; ++i) {
      const auto want = times(activated, of_activated, row, down, expert, i);
      ASSERT_NEAR(outputs.at(row, i), want.value, want.error + std::abs(want.value) * 0x1p-8) << row << ", " << i;
    }
  }
  for (std::uint64_t token = 0; token < of.sizes.tokens; ++token) {
    for (std::uint64_t i = 0; i < of.width; ++i) {
      double sum = 0;
      double magnitude = 0;
      for (std::uint64_t j = 0; j < of.sizes.k; ++j) {
        const std::int32_t row = sorted.row_of_choice[token * of.sizes.k + j];
        if (row < 0) continue;
        const double part =
            static_cast<double>(weights[token * of.sizes.k + j]) * outputs.at(static_cast<std::uint64_t>(row), i);
        sum += part;
        magnitude += std::abs(part);
      }
      ASSERT_NEAR(out.at(token, i), sum, magnitude * 0x1p-20 + std::abs(sum) * 0x1p-8) << token << ", " << i;
    }
  }
  const bounded_workspace exact(workspace_bytes(problem).value());
  device_out.reset();
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  TMAP_ASSERT_OK(layer(problem, {}, {.where = {with.where.stream, exact.place()}}));
  device_out.expect(out.bytes, "in a workspace of just its size");
  exact.expect_bounds();
  device_out.reset();
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  TMAP_ASSERT_OK(layer(problem, {}, with));
  device_out.expect(out.bytes, "without intermediates");
}

INSTANTIATE_TEST_SUITE_P(
    cases, moe_scaled_layer,
    ::testing::Values(
        scaled_case{.name = "Small", .sizes = {40, 4, 2}, .width = 128, .inner = 128},
        scaled_case{.name = "Partial", .sizes = {30, 6, 3}, .width = 208, .inner = 128},
        scaled_case{.name = "Interleaved",
                    .sizes = {50, 4, 2},
                    .width = 256,
                    .inner = 256,
                    .gate = {.function = gemm::gate_function::silu,
                             .columns = gemm::gate_columns::interleaved,
                             .alpha = 1.702f,
                             .limit = 7,
                             .value_shift = 1}},
        scaled_case{.name = "FewRows",
                    .sizes = {9, 8, 2},
                    .width = 256,
                    .inner = 208,
                    .gate = {.function = gemm::gate_function::silu, .columns = gemm::gate_columns::interleaved}},
        scaled_case{.name = "HalfOfABlock",
                    .sizes = {64, 3, 2},
                    .width = 144,
                    .inner = 192,
                    .gate = {.function = gemm::gate_function::gelu, .columns = gemm::gate_columns::interleaved},
                    .powers_of_two = true},
        scaled_case{.name = "PowersOfTwo", .sizes = {20, 16, 4}, .width = 144, .inner = 256, .powers_of_two = true},
        scaled_case{.name = "Larger", .sizes = {300, 3, 1}, .width = 384, .inner = 256},
        scaled_case{.name = "ManyRows", .sizes = {280, 2, 1}, .width = 144, .inner = 128}),
    [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace tmap::moe::testing
