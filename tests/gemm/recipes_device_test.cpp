// SPDX-License-Identifier: Apache-2.0
// Holds the recipes of docs/cookbook.md about groups and results, and runs each of them on numbers
// whose results are known.
#include <tmap/grouped_gemm.hpp>
#include <tmap/ragged.hpp>

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "gemm/gemm_fixture.hpp"

namespace tmap::testing {
namespace {

using gemm::matrix;
using bf16 = __nv_bfloat16;

// [gaps]
tmap::gemm::row_problem anywhere(tmap::gemm::row_problem problem, const int* begins, const int* counts) {
  problem.offsets = {begins, tmap::offset_format::begins_and_counts, sizeof(int), counts};
  return problem;
}

/// A is [groups, slot_rows, K].
tmap::gemm::row_problem in_slots(tmap::gemm::row_problem problem, const int* counts, std::uint64_t slot_rows) {
  problem.offsets = {counts, tmap::offset_format::slots, sizeof(int), nullptr, slot_rows};
  return problem;
}

tmap::gemm::row_problem by_labels(tmap::gemm::row_problem problem, const int* group_of_row) {
  problem.offsets = {group_of_row, tmap::offset_format::labels, sizeof(int)};
  return problem;
}
// [gaps]

// [block_scales]
/// A and B are e4m3. A has a scale for each 128 elements of a row, B for each 128 x 128.
tmap::gemm::row_problem with_block_scales(tmap::gemm::row_problem problem, const float* a_scales,
                                          const float* b_scales) {
  const std::uint64_t blocks = problem.k / 128;
  problem.type = tmap::gemm::operand_type::f8_e4m3;
  problem.a_scales = {.values = a_scales, .line_stride = blocks, .k_stride = 1};
  problem.b_scales = {.values = b_scales,
                      .line_stride = blocks,
                      .k_stride = 1,
                      .group_stride = problem.n / 128 * blocks,
                      .lines = tmap::gemm::scaled_columns};
  return problem;
}
// [block_scales]

// [line_scales]
/// Rounds a matrix of bf16 [rows, columns] to 8 bits [columns, rows], with a scale for each 128
/// rows of a column. `scales` are [rows / 128, columns].
tmap::result<void> quantize_columns(const bf16* from, unsigned char* to, float* scales, std::uint64_t rows,
                                    std::uint64_t columns, tmap::ragged::value_type type,
                                    const tmap::ragged::run& run) {
  const auto placed = [](const auto* first, std::uint64_t length, std::uint64_t lines) {
    tmap::map_patch matrix{};
    matrix.global_address = first;
    matrix.global_dim[0] = length;
    matrix.global_dim[1] = lines;
    matrix.global_stride_bytes[0] = length * sizeof(*first);
    return matrix;
  };
  const tmap::map_patch places[]{placed(from, columns, rows), placed(to, rows, columns),
                                 placed(scales, columns, (rows + 127) / 128)};
  const auto batch_of = [&](std::uint32_t i, std::uint32_t bytes) {
    return tmap::tensor_batch{tmap::patch_array{places + i}, 1, bytes, 2, {}, tmap::array_side::host};
  };
  return tmap::ragged::quantize(batch_of(0, sizeof(bf16)), batch_of(1, 1), batch_of(2, sizeof(float)),
                                {tmap::ragged::value_type::bf16, type, tmap::ragged::scale_block::block_128x1}, run);
}

/// Changes a product of gradients dy and inputs x to one of dy^T [m, rows] of e5m2 and x^T [n,
/// rows] of e4m3. All groups begin at multiples of 128 rows.
tmap::gemm::weight_problem in_eight_bits(tmap::gemm::weight_problem problem, const unsigned char* dy,
                                         const float* dy_scales, const unsigned char* x, const float* x_scales) {
  problem.type = tmap::gemm::operand_type::f8_e5m2;
  problem.a_layout = tmap::gemm::a_layout::m_by_k;
  problem.b_layout = tmap::gemm::b_layout::n_by_k;
  problem.a = {dy, problem.rows};
  problem.b = {x, problem.rows};
  problem.a_scales = {.values = dy_scales, .line_stride = 1, .k_stride = problem.m};
  problem.b_scales = {.values = x_scales, .line_stride = 1, .k_stride = problem.n};
  return problem;
}
// [line_scales]

// [by_index]
/// A has `count` tokens. Row i of C is made of token `tokens[i]`.
tmap::gemm::row_problem of_tokens(tmap::gemm::row_problem problem, const std::int32_t* tokens, std::uint64_t count) {
  problem.a_rows = tokens;
  problem.a_row_count = count;
  return problem;
}
// [by_index]

// [to_tokens]
/// Each token has one expert. Row i times its weight is stored in row `tokens[i]` of C, which has
/// `count` rows.
tmap::gemm::row_problem to_tokens(tmap::gemm::row_problem problem, const std::int32_t* tokens, const float* weights,
                                  std::uint64_t count) {
  problem.c_rows = tokens;
  problem.c_row_count = count;
  problem.epilogue.row_scales = weights;
  return problem;
}

/// Each token has two experts. C is f32 and holds zeros before the product.
tmap::gemm::row_problem adding_two(tmap::gemm::row_problem problem) {
  problem.c_type = tmap::gemm::result_type::f32;
  problem.c.pitch_bytes = problem.n * sizeof(float);
  problem.accumulate = true;
  return problem;
}
// [to_tokens]

// [lists]
/// The weights of each expert are a tensor [K, N] of its own.
tmap::gemm::row_problem with_separate_weights(tmap::gemm::row_problem problem, const std::uint64_t* addresses) {
  problem.b_addresses = addresses;
  problem.b_layout = tmap::gemm::b_layout::k_by_n;
  problem.b = {0, problem.n * 2};  // the pitch of each of them
  return problem;
}
// [lists]

// [main_grad]
/// Adds the gradient of the weights of y = x * W^T to `main_grad`, [groups, outputs, inputs].
tmap::gemm::weight_problem add_gradient(std::uint32_t groups, std::uint64_t rows, const tmap::row_offsets& offsets,
                                        const bf16* dy, std::uint64_t outputs, const bf16* x, std::uint64_t inputs,
                                        float* main_grad) {
  tmap::gemm::weight_problem problem;
  problem.groups = groups;
  problem.rows = rows;
  problem.offsets = offsets;
  problem.m = outputs;
  problem.n = inputs;
  problem.a = {dy, outputs * sizeof(*dy)};
  problem.b = {x, inputs * sizeof(*x)};
  problem.c = {main_grad, inputs * sizeof(float)};
  problem.c_group_pitch_bytes = outputs * inputs * sizeof(float);
  problem.c_type = tmap::gemm::result_type::f32;
  problem.accumulate = true;
  return problem;
}
// [main_grad]

// [gate]
/// C [rows, N / 2] becomes silu(gate) * value of the sums with bias, and `kept` gets these sums.
tmap::gemm::row_problem with_gate(tmap::gemm::row_problem problem, const bf16* bias, bf16* kept) {
  problem.epilogue.bias = bias;
  problem.epilogue.gate.function = tmap::gemm::gate_function::silu;
  problem.epilogue.gate.kept = {kept, problem.n * sizeof(*kept)};
  problem.c.pitch_bytes = problem.n / 2 * sizeof(bf16);
  return problem;
}

/// The product makes gradients of N results. C [rows, 2 N] gets those of gates and values.
tmap::gemm::row_problem through_gate(tmap::gemm::row_problem problem, bf16* kept) {
  problem.epilogue.gate.function = tmap::gemm::gate_function::silu;
  problem.epilogue.gate.backward = true;
  problem.epilogue.gate.kept = {kept, 2 * problem.n * sizeof(*kept)};
  problem.c.pitch_bytes = 2 * problem.n * sizeof(bf16);
  return problem;
}
// [gate]

// [scaled]
/// C is e4m3. `scales` [rows, N / 128] get a factor for each 128 results.
tmap::gemm::row_problem in_8_bits(tmap::gemm::row_problem problem, unsigned char* c, float* scales) {
  problem.c = {c, problem.n};
  problem.c_type = tmap::gemm::result_type::f8_e4m3;
  problem.c_scales = {scales, problem.n / tmap::gemm::scaled_results, 1};
  return problem;
}
// [scaled]

// [quantize]
/// Rounds the rows of each group to e4m3, with a scale for each 128 values of a row. `offsets` are
/// those of the products.
tmap::result<void> to_8_bits(const bf16* x, std::uint64_t columns, unsigned char* values, float* scales,
                             std::uint32_t groups, const tmap::row_offsets& offsets, const tmap::ragged::run& run) {
  const auto rows_of = [&](auto* first, std::uint64_t count) {
    constexpr std::uint32_t bytes = sizeof(*first);
    return tmap::tensor_batch{tmap::ragged_rows{first, count * bytes, offsets}, groups, bytes, 2, {{count}}};
  };
  return tmap::ragged::quantize(
      rows_of(x, columns), rows_of(values, columns), rows_of(scales, columns / 128),
      {tmap::ragged::value_type::bf16, tmap::ragged::value_type::f8_e4m3, tmap::ragged::scale_block::block_1x128}, run);
}
// [quantize]

// [bias]
/// Adds up the rows of each group: sums [groups, columns]. `one_row_each` are the numbers 1 to
/// `groups`.
tmap::result<void> sum_groups(const bf16* dy, std::uint64_t columns, float* sums, std::uint32_t groups,
                              const tmap::row_offsets& offsets, const int* one_row_each, const tmap::ragged::run& run) {
  const tmap::row_offsets ends{one_row_each, tmap::offset_format::ends, sizeof(int)};
  const tmap::ragged_rows from{dy, columns * sizeof(*dy), offsets};
  const tmap::ragged_rows to{sums, columns * sizeof(*sums), ends};
  return tmap::ragged::column_sums({from, groups, sizeof(*dy), 2, {{columns}}}, tmap::ragged::value_type::bf16,
                                   {to, groups, sizeof(*sums), 2, {{columns}}}, tmap::ragged::value_type::f32, run);
}
// [bias]

constexpr std::uint32_t group_count = 3;
constexpr std::uint64_t row_count = 96;
constexpr std::uint64_t inputs = 128;
constexpr std::uint64_t outputs = 256;
constexpr int group_rows[group_count]{5, 0, 20};

std::vector<bf16> all_of(float value, std::uint64_t count) {
  return std::vector<bf16>(count, __float2bfloat16(value));
}

/// The operands and outputs of all recipes.
struct recipe_memory {
  device_array<bf16> x{all_of(1, row_count* outputs)};
  device_array<bf16> weights{all_of(1, group_count* outputs* inputs)};
  device_array<bf16> y{row_count * 2 * outputs};
  device_array<bf16> kept{all_of(2, row_count * 2 * outputs)};
  device_array<int> sizes{{group_rows[0], group_rows[1], group_rows[2]}};
  device_array<unsigned char> scratch{ragged::workspace_bytes(group_count, 2).value()};
};

/// Multiplies ones by ones, so that every sum is `inputs`.
class recipes : public gemm::testing::gemm_test {
 protected:
  void SetUp() override {
    gemm_test::SetUp();
    if (!IsSkipped()) memory_.emplace();
  }

  gemm::row_problem ones() const {
    gemm::row_problem made;
    made.groups = group_count;
    made.rows = row_count;
    made.n = outputs;
    made.k = inputs;
    made.offsets = offsets();
    made.a = {memory_->x.data(), inputs * sizeof(bf16)};
    made.b = {memory_->weights.data(), inputs * sizeof(bf16)};
    made.b_group_pitch_bytes = outputs * inputs * sizeof(bf16);
    made.c = {memory_->y.data(), outputs * sizeof(bf16)};
    return made;
  }
  row_offsets offsets() const { return {memory_->sizes.data(), offset_format::sizes, sizeof(int)}; }

  template <class Problem>
  void multiply(const Problem& problem) const {
    const std::uint64_t bytes = gemm::workspace_bytes(group_count).value();
    const device_array<unsigned char> scratch(bytes);
    const device_array<gemm::group_status> statuses(group_count);
    TMAP_ASSERT_OK(gemm::multiply(
        problem, {.where = {cuda::stream_ref{cudaStream_t{}}, {scratch.data(), bytes}}, .statuses = statuses.data()}));
    for (const gemm::group_status status : statuses.download()) EXPECT_FALSE(status.is_bad());
  }
  ragged::run ragged_run() const {
    return {on_stream{cuda::stream_ref{cudaStream_t{}}, {memory_->scratch.data(), memory_->scratch.bytes()}}};
  }
  /// Expects `value_of(group, row, column)` in the groups' rows of C, and poison in all others.
  template <class ValueOf>
  void expect_rows(const std::vector<int>& begins, const ValueOf& value_of) const {
    std::vector<std::optional<std::uint32_t>> group_of(row_count);
    for (std::uint32_t g = 0; g < group_count; ++g) {
      for (int i = 0; i < group_rows[g]; ++i) group_of[static_cast<std::size_t>(begins[g] + i)] = g;
    }
    const std::vector<bf16> got = memory_->y.download();
    for (std::uint64_t row = 0; row < row_count; ++row) {
      for (const std::uint64_t column : {std::uint64_t{0}, outputs / 2 - 1, outputs / 2, outputs - 1}) {
        const bf16 value = got[row * outputs + column];
        if (group_of[row]) {
          EXPECT_EQ(__bfloat162float(value), value_of(*group_of[row], row, column)) << row << ", " << column;
        } else {
          EXPECT_TRUE(is_poison(value)) << row << ", " << column;
        }
      }
    }
  }
  /// Expects products of ones.
  void expect_rows(const std::vector<int>& begins) const {
    expect_rows(begins, [](auto...) { return static_cast<float>(inputs); });
  }

  std::optional<recipe_memory> memory_;
};

TEST_F(recipes, groups_lie_anywhere) {
  const std::vector<int> begins{60, 7, 10};
  const device_array<int> first(begins);
  multiply(anywhere(ones(), first.data(), memory_->sizes.data()));
  expect_rows(begins);
}

TEST_F(recipes, groups_lie_in_slots) {
  multiply(in_slots(ones(), memory_->sizes.data(), 32));
  expect_rows({0, 32, 64});
}

TEST_F(recipes, rows_have_labels) {
  std::vector<int> labels(row_count, -1);
  for (std::size_t i = 0; i < 5; ++i) labels[40 + i] = 0;
  for (std::size_t i = 0; i < 20; ++i) labels[3 + i] = 2;
  const device_array<int> group_of_row(labels);
  multiply(by_labels(ones(), group_of_row.data()));
  expect_rows({40, 0, 3});
}

/// Tensor i of weights [K, N] holds i + 1, and twice as much in the right half.
TEST_F(recipes, weights_are_separate_tensors) {
  std::vector<bf16> weights;
  for (std::uint64_t i = 0; i < group_count * inputs * outputs; ++i) {
    const std::uint64_t tensor = i / (inputs * outputs);
    weights.push_back(__float2bfloat16(static_cast<float>((tensor + 1) * (i % outputs < outputs / 2 ? 1 : 2))));
  }
  memory_->weights.upload(weights);
  const std::uint64_t pitch = outputs * inputs * sizeof(bf16);
  const device_array<std::uint64_t> addresses(
      {memory_->weights.address() + 2 * pitch, memory_->weights.address(), memory_->weights.address() + pitch});
  multiply(with_separate_weights(ones(), addresses.data()));
  constexpr float of_group[group_count]{3, 1, 2};
  expect_rows({0, 5, 5}, [&](std::uint32_t group, std::uint64_t, std::uint64_t column) {
    return inputs * of_group[group] * (column < outputs / 2 ? 1 : 2);
  });
}

TEST_F(recipes, gradients_are_added_in_f32) {
  const device_array<float> main_grad(std::vector<float>(group_count * outputs * inputs, 0.5f));
  multiply(add_gradient(group_count, row_count, offsets(), memory_->x.data(), outputs, memory_->x.data(), inputs,
                        main_grad.data()));
  const std::vector<float> got = main_grad.download();
  for (std::uint64_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i], static_cast<float>(group_rows[i / (outputs * inputs)]) + 0.5f) << i;
  }
}

TEST_F(recipes, a_gate_keeps_its_sums) {
  const device_array<bf16> bias(all_of(-126, group_count * outputs));
  multiply(with_gate(ones(), bias.data(), memory_->kept.data()));
  const bf16 made = memory_->y.download()[0];
  EXPECT_EQ(__bfloat162float(memory_->kept.download()[0]), 2.0f);
  EXPECT_NEAR(__bfloat162float(made), 4 / (1 + std::exp(-2.0f)), 0.02f);
}

TEST_F(recipes, gradients_go_through_a_gate) {
  multiply(through_gate(ones(), memory_->kept.data()));
  const float sigma = 1 / (1 + std::exp(-2.0f));
  const std::vector<bf16> got = memory_->y.download();
  const float of_gate = 128 * 2 * sigma * (1 + 2 * (1 - sigma));
  EXPECT_NEAR(__bfloat162float(got[0]), of_gate, of_gate / 200);
  EXPECT_NEAR(__bfloat162float(got[outputs]), 128 * 2 * sigma, 1.0f);
}

constexpr unsigned char largest_e4m3 = 0x7e;

TEST_F(recipes, results_have_scales) {
  const device_array<unsigned char> c(row_count * outputs);
  const device_array<float> scales(row_count * outputs / 128);
  multiply(in_8_bits(ones(), c.data(), scales.data()));
  EXPECT_EQ(c.download()[0], largest_e4m3);
  EXPECT_EQ(scales.download()[2 * 25 - 1], 128.0f / 448);
  EXPECT_TRUE(is_poison(scales.download()[2 * 25]));
}

/// Returns 2 to the powers `number` % `powers` of the first `count` numbers.
std::vector<float> powers_of_two(std::uint64_t count, int powers) {
  std::vector<float> made;
  for (std::uint64_t i = 0; i < count; ++i) made.push_back(std::ldexp(1.0f, static_cast<int>(i) % powers));
  return made;
}

/// No two neighbouring scales are equal, in any direction.
TEST_F(recipes, operands_have_block_scales) {
  constexpr unsigned char one = 0x38;
  constexpr std::uint64_t blocks = 2;  // of K
  constexpr std::uint64_t k = 128 * blocks;
  const std::vector<float> of_a = powers_of_two(row_count * blocks, 5);
  const std::vector<float> of_b = powers_of_two(group_count * outputs / 128 * blocks, 3);
  const device_array<unsigned char> a(std::vector<unsigned char>(row_count * k, one));
  const device_array<unsigned char> b(std::vector<unsigned char>(group_count * outputs * k, one));
  const device_array<float> a_scales(of_a);
  const device_array<float> b_scales(of_b);
  gemm::row_problem problem = ones();
  problem.k = k;
  problem.a = {a.data(), k};
  problem.b = {b.data(), k};
  problem.b_group_pitch_bytes = outputs * k;
  multiply(with_block_scales(problem, a_scales.data(), b_scales.data()));
  expect_rows({0, 5, 5}, [&](std::uint32_t group, std::uint64_t row, std::uint64_t column) {
    float sum = 0;
    for (std::uint64_t block = 0; block < blocks; ++block) {
      const std::uint64_t of_columns = group * (outputs / 128) + column / 128;
      sum += 128 * of_a[row * blocks + block] * of_b[of_columns * blocks + block];
    }
    return sum;
  });
}

/// Column i of dy holds 2 to the power i % 5, that of x 2 to the power i % 3.
TEST_F(recipes, gradients_of_weights_have_eight_bits) {
  constexpr std::uint64_t rows = 384;
  constexpr int sizes[group_count]{128, 0, 200};
  const std::vector<float> of_dy = powers_of_two(outputs, 5);
  const std::vector<float> of_x = powers_of_two(inputs, 3);
  const auto rows_of = [](const std::vector<float>& values) {
    std::vector<bf16> made;
    for (std::uint64_t row = 0; row < rows; ++row) {
      for (const float value : values) made.push_back(__float2bfloat16(value));
    }
    return made;
  };
  const device_array<bf16> dy_rows(rows_of(of_dy));
  const device_array<bf16> x_rows(rows_of(of_x));
  const device_array<int> groups({sizes[0], sizes[1], sizes[2]});
  const device_array<unsigned char> dy(outputs * rows);
  const device_array<unsigned char> x(inputs * rows);
  const device_array<float> dy_scales(outputs * rows / 128);
  const device_array<float> x_scales(inputs * rows / 128);
  const device_array<float> main_grad(std::vector<float>(group_count * outputs * inputs, 0.5f));
  using ragged::value_type;
  TMAP_ASSERT_OK(
      quantize_columns(dy_rows.data(), dy.data(), dy_scales.data(), rows, outputs, value_type::f8_e5m2, ragged_run()));
  TMAP_ASSERT_OK(
      quantize_columns(x_rows.data(), x.data(), x_scales.data(), rows, inputs, value_type::f8_e4m3, ragged_run()));
  const gemm::weight_problem problem =
      add_gradient(group_count, rows, {groups.data(), offset_format::sizes, sizeof(int)}, nullptr, outputs, nullptr,
                   inputs, main_grad.data());
  multiply(in_eight_bits(problem, dy.data(), dy_scales.data(), x.data(), x_scales.data()));
  const std::vector<float> got = main_grad.download();
  for (std::uint64_t i = 0; i < got.size(); ++i) {
    const float of_row = of_dy[i / inputs % outputs] * of_x[i % inputs];
    ASSERT_NEAR(got[i], of_row * static_cast<float>(sizes[i / (outputs * inputs)]) + 0.5f, 0.05f) << i;
  }
}

/// Token t holds t + 1.
TEST_F(recipes, tokens_are_read_by_index) {
  constexpr std::int32_t token_count = 4;
  std::vector<bf16> x;
  for (std::uint64_t i = 0; i < token_count * inputs; ++i)
    x.push_back(__float2bfloat16(static_cast<float>(i / inputs + 1)));
  const device_array<bf16> values(x);
  std::vector<std::int32_t> of_rows;
  for (std::uint64_t row = 0; row < row_count; ++row) of_rows.push_back(static_cast<std::int32_t>(row * 3 % 4));
  const device_array<std::int32_t> tokens(of_rows);
  gemm::row_problem problem = ones();
  problem.a.address = values.address();
  multiply(of_tokens(problem, tokens.data(), token_count));
  expect_rows({0, 5, 5}, [&](std::uint32_t, std::uint64_t row, std::uint64_t) {
    return static_cast<float>(inputs) * static_cast<float>(of_rows[row] + 1);
  });
}

TEST_F(recipes, rows_are_stored_by_index) {
  std::vector<std::int32_t> tokens(row_count, -1);
  for (int i = 0; i < 25; ++i) tokens[static_cast<std::size_t>(i)] = 64 - i;
  const device_array<std::int32_t> token_of_row(tokens);
  const std::vector<float> of_rows = powers_of_two(row_count, 5);
  const device_array<float> weights(of_rows);
  multiply(to_tokens(ones(), token_of_row.data(), weights.data(), 65));
  const std::vector<bf16> got = memory_->y.download();
  for (std::uint64_t row = 0; row < row_count; ++row) {
    const bf16 value = got[row * outputs + row];
    if (row < 40 || row > 64) {
      EXPECT_TRUE(is_poison(value)) << row;
    } else {
      EXPECT_EQ(__bfloat162float(value), of_rows[64 - row] * inputs) << row;
    }
  }
}

TEST_F(recipes, two_rows_are_added_by_index) {
  std::vector<std::int32_t> tokens(row_count, -1);
  for (int i = 0; i < 25; ++i) tokens[static_cast<std::size_t>(i)] = i / 2;
  const device_array<std::int32_t> token_of_row(tokens);
  const std::vector<float> of_rows = powers_of_two(row_count, 5);
  const device_array<float> weights(of_rows);
  const device_array<float> sums(std::vector<float>(14 * outputs, 0.0f));
  gemm::row_problem problem = adding_two(to_tokens(ones(), token_of_row.data(), weights.data(), 14));
  problem.c.address = sums.address();
  multiply(problem);
  const std::vector<float> got = sums.download();
  for (std::uint64_t i = 0; i < got.size(); ++i) {
    const std::uint64_t token = i / outputs;
    float weight = token <= 12 ? of_rows[2 * token] : 0;
    if (token < 12) weight += of_rows[2 * token + 1];
    EXPECT_EQ(got[i], weight * inputs) << token;
  }
}

TEST_F(recipes, rows_of_groups_are_quantized) {
  const std::vector<float> of_rows = powers_of_two(row_count, 4);
  std::vector<bf16> x;
  for (std::uint64_t i = 0; i < row_count * inputs; ++i) x.push_back(__float2bfloat16(of_rows[i / inputs]));
  memory_->x.upload(x);
  const device_array<unsigned char> values(row_count * inputs);
  const device_array<float> scales(row_count * inputs / 128);
  TMAP_ASSERT_OK(
      to_8_bits(memory_->x.data(), inputs, values.data(), scales.data(), group_count, offsets(), ragged_run()));
  constexpr std::uint64_t used = 25;
  const std::vector<unsigned char> got = values.download();
  const std::vector<float> factors = scales.download();
  for (std::uint64_t row = 0; row < used; ++row) {
    EXPECT_EQ(got[row * inputs], largest_e4m3) << row;
    EXPECT_EQ(got[(row + 1) * inputs - 1], largest_e4m3) << row;
    EXPECT_EQ(factors[row], of_rows[row] / 448) << row;
  }
  EXPECT_TRUE(is_poison(got[used * inputs]));
  EXPECT_TRUE(is_poison(factors[used]));
}

TEST_F(recipes, rows_of_groups_are_added_up) {
  const device_array<float> sums(group_count * inputs);
  const device_array<int> one_row_each({1, 2, 3});
  TMAP_ASSERT_OK(
      sum_groups(memory_->x.data(), inputs, sums.data(), group_count, offsets(), one_row_each.data(), ragged_run()));
  const std::vector<float> got = sums.download();
  for (std::uint64_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], static_cast<float>(group_rows[i / inputs])) << i;
}

}  // namespace
}  // namespace tmap::testing
