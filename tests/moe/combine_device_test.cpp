// SPDX-License-Identifier: Apache-2.0
// Adds up rows of tokens, and compares every bit with plain loops in f32.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "moe/on_device.hpp"
#include "support/run_seed.hpp"

namespace tmap::moe::testing {
namespace {

/// A number in the form of its type, in the low bits.
using word = std::uint32_t;

word word_of(float value, float_type type) {
  word made{};
  const __nv_bfloat16 as_bf16 = __float2bfloat16(value);
  const __half as_f16 = __float2half(value);
  switch (type) {
    case float_type::f32: std::memcpy(&made, &value, sizeof(value)); break;
    case float_type::bf16: std::memcpy(&made, &as_bf16, sizeof(as_bf16)); break;
    case float_type::f16: std::memcpy(&made, &as_f16, sizeof(as_f16)); break;
  }
  return made;
}

float value_of(word from, float_type type) {
  float value{};
  switch (type) {
    case float_type::f32: std::memcpy(&value, &from, sizeof(value)); return value;
    case float_type::bf16: return __bfloat162float(__nv_bfloat16_raw{static_cast<unsigned short>(from)});
    default: return __half2float(__half_raw{static_cast<unsigned short>(from)});
  }
}

/// A matrix in host memory, with poison between its rows.
class rows_of_words {
 public:
  rows_of_words(std::uint64_t rows, std::uint64_t columns, std::uint64_t spare_bytes, float_type type)
      : rows_(rows),
        columns_(columns),
        pitch_(columns * float_bytes(type) + spare_bytes),
        type_(type),
        bytes_(rows * pitch_, static_cast<unsigned char>(device_array<unsigned char>::poison)) {}

  void set(std::uint64_t row, std::uint64_t column, float value) {
    const word made = word_of(value, type_);
    std::memcpy(&bytes_[place(row, column)], &made, float_bytes(type_));
  }
  float get(std::uint64_t row, std::uint64_t column) const {
    word made{};
    std::memcpy(&made, &bytes_[place(row, column)], float_bytes(type_));
    return value_of(made, type_);
  }
  std::uint64_t rows() const { return rows_; }
  std::uint64_t columns() const { return columns_; }
  std::uint64_t pitch() const { return pitch_; }
  const std::vector<unsigned char>& bytes() const { return bytes_; }

 private:
  std::uint64_t place(std::uint64_t row, std::uint64_t column) const {
    return row * pitch_ + column * float_bytes(type_);
  }

  std::uint64_t rows_;
  std::uint64_t columns_;
  std::uint64_t pitch_;
  float_type type_;
  std::vector<unsigned char> bytes_;
};

struct combine_case {
  std::uint64_t tokens{};
  std::uint32_t k{};
  std::uint64_t columns{};
  float_type type{};
  std::uint64_t rows{};
  bool has_weights{true};
  bool has_base{};
  bool is_in_place{};  ///< the base is the output
  bool is_hostile{};
  std::uint64_t spare_bytes{32};

  std::string text() const {
    return std::to_string(tokens) + " tokens, k " + std::to_string(k) + ", " + std::to_string(columns) +
           " columns, type " + std::to_string(static_cast<int>(type)) + (has_weights ? ", weights" : "") +
           (has_base ? ", base" : "") + (is_in_place ? " in place" : "") + (is_hostile ? ", hostile" : "");
  }
};

/// The operands of a case, and the result by definition.
struct combine_values {
  rows_of_words values;
  rows_of_words base;
  std::vector<std::int32_t> rows;
  std::vector<float> weights;

  combine_values(const combine_case& of, std::mt19937_64& random, bool are_whole)
      : values(of.rows, of.columns, of.spare_bytes, of.type), base(of.tokens, of.columns, of.spare_bytes, of.type) {
    fill(values, random, are_whole);
    fill(base, random, are_whole);
    const std::int32_t wild[]{-2, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max(),
                              static_cast<std::int32_t>(of.rows)};
    for (std::uint64_t i = 0; i < of.tokens * of.k; ++i) {
      const bool has_row = of.rows != 0 && random() % 8 != 0;
      std::int32_t row = has_row ? static_cast<std::int32_t>(random() % of.rows) : -1;
      if (of.is_hostile && random() % 4 == 0) row = wild[random() % 4];
      rows.push_back(row);
      weights.push_back(number(random, are_whole));
    }
  }

  bool has_row(std::size_t choice) const {
    return rows[choice] >= 0 && static_cast<std::uint64_t>(rows[choice]) < values.rows();
  }
  rows_of_words sum(const combine_case& of) const {
    rows_of_words made = of.is_in_place ? base : rows_of_words(of.tokens, of.columns, of.spare_bytes, of.type);
    for (std::uint64_t token = 0; token < of.tokens; ++token) {
      for (std::uint64_t column = 0; column < of.columns; ++column) {
        float total = of.has_base ? base.get(token, column) : 0;
        for (std::size_t i = token * of.k; i < (token + 1) * of.k; ++i) {
          if (!has_row(i)) continue;
          const float value = values.get(static_cast<std::uint64_t>(rows[i]), column);
          total = std::fma(of.has_weights ? weights[i] : 1.0f, value, total);
        }
        made.set(token, column, total);
      }
    }
    return made;
  }
  std::vector<choice_status> statuses() const {
    std::vector<choice_status> made;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const choice_status skipped = rows[i] == -1 ? choice_status{choice_status::empty_bit} : status_of(fault::row);
      made.push_back(has_row(i) ? choice_status{} : skipped);
    }
    return made;
  }

 private:
  static float number(std::mt19937_64& random, bool is_whole) {
    if (is_whole) return static_cast<float>(random() % 9) - 4;
    return std::uniform_real_distribution<float>(-2, 2)(random);
  }
  static void fill(rows_of_words& matrix, std::mt19937_64& random, bool are_whole) {
    for (std::uint64_t row = 0; row < matrix.rows(); ++row) {
      for (std::uint64_t column = 0; column < matrix.columns(); ++column) {
        matrix.set(row, column, number(random, are_whole));
      }
    }
  }
};

class combine_on_device {
 public:
  combine_on_device(const combine_case& of, const combine_values& from)
      : of_(of),
        values_(from.values.bytes()),
        base_(from.base.bytes()),
        rows_(from.rows),
        weights_(from.weights),
        out_(from.base.bytes().size()),
        reports_(of.tokens * of.k) {}

  void set(const combine_values& from) const {
    values_.upload(from.values.bytes());
    base_.upload(from.base.bytes());
    rows_.upload(from.rows);
    weights_.upload(from.weights);
    reports_.reset();
    out_.reset();
    if (of_.is_in_place) upload_out(from.base.bytes());
  }
  combine_problem problem(std::uint64_t pitch_of_values, std::uint64_t pitch) const {
    combine_problem made;
    made.tokens = of_.tokens;
    made.k = of_.k;
    made.columns = of_.columns;
    made.row_type = of_.type;
    made.rows = of_.rows;
    made.values = {values_.address(), pitch_of_values};
    made.row_of_choice = rows_.data();
    if (of_.has_weights) made.weights = weights_.data();
    made.out = {out_.data(), pitch};
    if (of_.has_base) made.base = of_.is_in_place ? made.out : gemm::matrix{base_.address(), pitch};
    return made;
  }
  result<void> enqueue(const combine_values& from, cudaStream_t stream) const {
    return combine(problem(from.values.pitch(), from.base.pitch()), reports_.on(stream));
  }
  void expect(const combine_values& from, const std::string& what) const {
    out_.expect(from.sum(of_).bytes(), what);
    reports_.expect(from.statuses(), what);
  }
  const guarded<unsigned char>& out() const { return out_; }

 private:
  void upload_out(const std::vector<unsigned char>& bytes) const {
    EXPECT_EQ(cudaMemcpy(out_.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice), cudaSuccess);
  }

  combine_case of_;
  device_array<unsigned char> values_;
  device_array<unsigned char> base_;
  device_array<std::int32_t> rows_;
  device_array<float> weights_;
  guarded<unsigned char> out_;
  reports_on_device reports_;
};

class moe_combine : public tmap::testing::gpu_test {
 protected:
  void check(const combine_case& of, bool are_whole = false) {
    std::mt19937_64 random = tmap::testing::run_random(of.tokens * 1000 + of.k + of.columns);
    const combine_values from(of, random, are_whole);
    const combine_on_device device(of, from);
    device.set(from);
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    TMAP_ASSERT_OK(device.enqueue(from, nullptr));
    device.expect(from, of.text());
  }
};

TEST_F(moe_combine, every_k_and_type) {
  for (const float_type type : {float_type::f32, float_type::bf16, float_type::f16}) {
    for (std::uint32_t k = 1; k <= max_k; ++k) check({.tokens = 9, .k = k, .columns = 72, .type = type, .rows = 50});
  }
}

TEST_F(moe_combine, whole_numbers_without_any_rounding) {
  for (const bool has_base : {false, true}) {
    for (const bool has_weights : {false, true}) {
      check({.tokens = 200,
             .k = 2,
             .columns = 512,
             .type = float_type::bf16,
             .rows = 400,
             .has_weights = has_weights,
             .has_base = has_base},
            true);
    }
  }
}

TEST_F(moe_combine, all_widths) {
  for (const std::uint64_t units : {1u, 2u, 3u, 31u, 32u, 33u, 63u, 64u, 65u, 127u, 128u, 129u, 300u, 896u}) {
    check({.tokens = 3, .k = 4, .columns = units * 8, .type = float_type::bf16, .rows = 20});
    check({.tokens = 3, .k = 4, .columns = units * 4, .type = float_type::f32, .rows = 20, .spare_bytes = 0});
    check({.tokens = 300, .k = 1, .columns = units * 8, .type = float_type::f16, .rows = 20});
  }
}

TEST_F(moe_combine, one_token_and_many) {
  for (const std::uint64_t tokens : {1u, 2u, 7u, 100u, 1000u, 4000u}) {
    check({.tokens = tokens, .k = 8, .columns = 256, .type = float_type::bf16, .rows = 900, .has_base = true});
  }
  check({.tokens = 1, .k = 8, .columns = 7168, .type = float_type::bf16, .rows = 8});
}

TEST_F(moe_combine, in_place) {
  check({.tokens = 100,
         .k = 6,
         .columns = 264,
         .type = float_type::f32,
         .rows = 300,
         .has_base = true,
         .is_in_place = true});
}

TEST_F(moe_combine, without_rows) {
  check({.tokens = 10, .k = 3, .columns = 64, .type = float_type::bf16, .rows = 0, .has_base = true});
  check({.tokens = 10, .k = 3, .columns = 64, .type = float_type::bf16, .rows = 0});
}

TEST_F(moe_combine, hostile_rows_are_skipped_and_reported) {
  for (const std::uint32_t k : {1u, 5u, 8u, 20u, 32u}) {
    check({.tokens = 150, .k = k, .columns = 136, .type = float_type::bf16, .rows = 77, .is_hostile = true});
  }
}

TEST_F(moe_combine, a_skipped_row_adds_nothing_even_to_infinity_and_minus_zero) {
  const combine_case of{
      .tokens = 2, .k = 1, .columns = 8, .type = float_type::f32, .rows = 1, .has_base = true, .spare_bytes = 0};
  std::mt19937_64 random = tmap::testing::run_random(41);
  combine_values from(of, random, true);
  for (std::uint64_t column = 0; column < 8; ++column) {
    from.base.set(0, column, -0.0f);
    from.base.set(1, column, std::numeric_limits<float>::infinity());
    from.values.set(0, column, std::numeric_limits<float>::quiet_NaN());
  }
  from.rows = {-1, 5};
  const combine_on_device device(of, from);
  device.set(from);
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  TMAP_ASSERT_OK(device.enqueue(from, nullptr));
  device.out().expect(from.base.bytes(), "unchanged");
}

/// Returns the case of one token of another, with the same rows.
combine_values only_token(const combine_case& one, const combine_case& many, const combine_values& from,
                          std::uint64_t token) {
  std::mt19937_64 unused;
  combine_values made(one, unused, true);
  made.values = from.values;
  for (std::uint64_t column = 0; column < many.columns; ++column) {
    made.base.set(0, column, from.base.get(token, column));
  }
  for (std::size_t j = 0; j < many.k; ++j) {
    made.rows[j] = from.rows[token * many.k + j];
    made.weights[j] = from.weights[token * many.k + j];
  }
  return made;
}

TEST_F(moe_combine, a_token_has_the_same_bits_among_other_tokens) {
  const combine_case many{
      .tokens = 1000, .k = 8, .columns = 1024, .type = float_type::bf16, .rows = 2000, .has_base = true};
  combine_case one = many;
  one.tokens = 1;
  std::mt19937_64 random = tmap::testing::run_random(42);
  const combine_values from(many, random, false);
  const combine_on_device all(many, from);
  all.set(from);
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  TMAP_ASSERT_OK(all.enqueue(from, nullptr));
  const std::vector<unsigned char> got = all.out().download("all");
  for (const std::uint64_t token : {std::uint64_t{0}, std::uint64_t{500}, std::uint64_t{999}}) {
    const combine_values alone = only_token(one, many, from, token);
    const combine_on_device device(one, alone);
    device.set(alone);
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    TMAP_ASSERT_OK(device.enqueue(alone, nullptr));
    const auto first = got.begin() + static_cast<std::ptrdiff_t>(token * from.base.pitch());
    device.out().expect({first, first + static_cast<std::ptrdiff_t>(from.base.pitch())},
                        "token " + std::to_string(token));
  }
}

TEST_F(moe_combine, a_graph_replays_with_other_contents) {
  const combine_case of{.tokens = 64, .k = 6, .columns = 128, .type = float_type::f16, .rows = 300, .is_hostile = true};
  std::mt19937_64 random = tmap::testing::run_random(43);
  const combine_values first(of, random, false);
  const combine_on_device device(of, first);
  const recorded_call graph([&](cudaStream_t stream) { return device.enqueue(first, stream); });
  for (int i = 0; i < 20; ++i) {
    const combine_values from(of, random, false);
    device.set(from);
    graph.replay();
    device.expect(from, "replay " + std::to_string(i));
  }
}

TEST_F(moe_combine, rows_come_back_to_their_tokens_after_a_route) {
  const route_sizes sizes{500, 16, 4, 32};
  std::mt19937_64 random = tmap::testing::run_random(44);
  std::vector<std::int32_t> ids;
  for (std::uint64_t i = 0; i < sizes.choices(); ++i) ids.push_back(static_cast<std::int32_t>(random() % 16));
  const device_array<std::int32_t> given(ids);
  const results_on_device results(sizes);
  route_problem problem = problem_of(sizes);
  problem.choices = given_choices{.ids = given.data()};
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  TMAP_ASSERT_OK(route(problem, results.places(true), results.reports().on(nullptr)));
  // Each row holds the number of its token in all columns, so that each sum is k times the token.
  rows_of_words values(sizes.row_count(), 8, 0, float_type::f32);
  const route_results places = results.places(true);
  std::vector<std::int32_t> tokens(sizes.row_count());
  TMAP_ASSERT_CUDA(cudaMemcpy(tokens.data(), places.token_of_row, tokens.size() * 4, cudaMemcpyDeviceToHost));
  for (std::uint64_t row = 0; row < tokens.size(); ++row) {
    for (std::uint64_t column = 0; column < 8; ++column) values.set(row, column, static_cast<float>(tokens[row]));
  }
  const device_array<unsigned char> rows(values.bytes());
  const guarded<float> out(sizes.tokens * 8);
  combine_problem back{.tokens = sizes.tokens, .k = sizes.k, .columns = 8, .row_type = float_type::f32};
  back.rows = sizes.row_count();
  back.values = {rows.address(), values.pitch()};
  back.row_of_choice = places.row_of_choice;
  back.out = {out.data(), 32};
  TMAP_ASSERT_OK(combine(back, results.reports().on(nullptr)));
  std::vector<float> want;
  for (std::uint64_t i = 0; i < sizes.tokens * 8; ++i) want.push_back(static_cast<float>(i / 8 * sizes.k));
  out.expect(want, "sums");
}

}  // namespace
}  // namespace tmap::moe::testing
