// SPDX-License-Identifier: Apache-2.0
// Compares gradients of sums with plain loops: those of rows in every bit, those of weights in f64.
#include <cuda_bf16.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "moe/on_device.hpp"
#include "support/run_seed.hpp"

namespace tmap::moe::testing {
namespace {

struct gradient_case {
  std::uint64_t tokens{};
  std::uint32_t k{};
  std::uint64_t columns{};
  bool has_weights{true};
  bool is_hostile{};

  std::uint64_t choices() const { return tokens * k; }
  std::uint64_t rows() const { return choices() + 5; }
  std::string text() const {
    return std::to_string(tokens) + " tokens, k " + std::to_string(k) + ", " + std::to_string(columns) + " columns" +
           (has_weights ? ", weights" : "") + (is_hostile ? ", hostile" : "");
  }
};

/// Operands of bf16, and the results by definition.
struct gradient_values {
  std::vector<std::int32_t> rows;  // no row twice
  std::vector<float> weights;
  std::vector<__nv_bfloat16> values;
  std::vector<__nv_bfloat16> d_out;

  gradient_values(const gradient_case& of, std::mt19937_64& random) : rows(of.rows()) {
    std::iota(rows.begin(), rows.end(), 0);
    std::shuffle(rows.begin(), rows.end(), random);
    rows.resize(of.choices());
    for (std::int32_t& row : rows) {
      if (random() % 8 == 0) row = -1;
      if (of.is_hostile && random() % 4 == 0) row = random() % 2 == 0 ? -7 : static_cast<std::int32_t>(of.rows());
    }
    std::uniform_real_distribution<float> number(-2, 2);
    for (std::uint64_t i = 0; i < of.choices(); ++i) weights.push_back(number(random));
    for (std::uint64_t i = 0; i < of.rows() * of.columns; ++i) values.push_back(__float2bfloat16(number(random)));
    for (std::uint64_t i = 0; i < of.tokens * of.columns; ++i) d_out.push_back(__float2bfloat16(number(random)));
  }
};

class gradients_on_device {
 public:
  gradients_on_device(const gradient_case& of, const gradient_values& from)
      : of_(of),
        rows_(from.rows),
        weights_(from.weights),
        values_(from.values),
        d_out_(from.d_out),
        d_values_(of.rows() * of.columns),
        d_weights_(of.choices()),
        reports_(of.choices()) {
    d_values_.reset();
    d_weights_.reset();
    reports_.reset();
  }

  combine_gradients problem() const {
    combine_gradients made;
    made.tokens = of_.tokens;
    made.k = of_.k;
    made.columns = of_.columns;
    made.row_type = float_type::bf16;
    made.rows = of_.rows();
    made.values = {values_.address(), of_.columns * 2};
    made.row_of_choice = rows_.data();
    made.weights = of_.has_weights ? weights_.data() : nullptr;
    made.d_out = {d_out_.address(), of_.columns * 2};
    made.d_values = {d_values_.data(), of_.columns * 2};
    made.d_weights = d_weights_.data();
    return made;
  }
  result<void> enqueue() const { return combine_backward(problem(), reports_.on(nullptr)); }
  /// Rows that no choice names keep the poison that they had.
  void expect(const gradient_values& from) const {
    std::vector<__nv_bfloat16> want = d_values_.download("before");
    const std::vector<__nv_bfloat16> got = want;
    std::fill(want.begin(), want.end(), poison());
    const std::vector<float> d_weights = d_weights_.download(of_.text());
    std::vector<choice_status> statuses;
    for (std::uint64_t i = 0; i < of_.choices(); ++i) {
      const std::int32_t row = from.rows[i];
      const bool has_row = row >= 0 && static_cast<std::uint64_t>(row) < of_.rows();
      const choice_status skipped = row == -1 ? choice_status{choice_status::empty_bit} : status_of(fault::row);
      statuses.push_back(has_row ? choice_status{} : skipped);
      const double dot = has_row ? take_row(from, i, static_cast<std::uint64_t>(row), want) : 0;
      ASSERT_NEAR(double{d_weights[i]}, dot, 1e-5 * static_cast<double>(of_.columns)) << of_.text() << ", choice " << i;
    }
    d_values_.expect(want, of_.text() + ": d_values");
    reports_.expect(statuses, of_.text());
  }
  const guarded<float>& d_weights() const { return d_weights_; }
  const guarded<__nv_bfloat16>& d_values() const { return d_values_; }

 private:
  static __nv_bfloat16 poison() {
    __nv_bfloat16 made;
    std::memset(static_cast<void*>(&made), static_cast<int>(device_array<unsigned char>::poison), sizeof(made));
    return made;
  }
  double take_row(const gradient_values& from, std::uint64_t choice, std::uint64_t row,
                  std::vector<__nv_bfloat16>& want) const {
    double dot = 0;
    for (std::uint64_t column = 0; column < of_.columns; ++column) {
      const float d = __bfloat162float(from.d_out[choice / of_.k * of_.columns + column]);
      const std::uint64_t at = row * of_.columns + column;
      want[at] = __float2bfloat16((of_.has_weights ? from.weights[choice] : 1.0f) * d);
      dot += double{d} * double{__bfloat162float(from.values[at])};
    }
    return dot;
  }

  gradient_case of_;
  device_array<std::int32_t> rows_;
  device_array<float> weights_;
  device_array<__nv_bfloat16> values_;
  device_array<__nv_bfloat16> d_out_;
  guarded<__nv_bfloat16> d_values_;
  guarded<float> d_weights_;
  reports_on_device reports_;
};

class moe_combine_backward : public tmap::testing::gpu_test {};

TEST_F(moe_combine_backward, equals_plain_loops) {
  const gradient_case cases[]{{1, 1, 8},         {3, 2, 248},         {50, 8, 256},
                              {20, 6, 1024 + 8}, {30, 32, 72, false}, {40, 8, 512, true, true},
                              {7, 3, 7168, true}};
  for (const gradient_case& of : cases) {
    std::mt19937_64 random = tmap::testing::run_random(of.choices() + of.columns);
    const gradient_values from(of, random);
    const gradients_on_device device(of, from);
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    TMAP_ASSERT_OK(device.enqueue());
    device.expect(from);
  }
}

TEST_F(moe_combine_backward, each_result_alone_has_the_same_bits) {
  const gradient_case of{33, 4, 640};
  std::mt19937_64 random = tmap::testing::run_random(41);
  const gradient_values from(of, random);
  const gradients_on_device both(of, from);
  const gradients_on_device alone(of, from);
  combine_gradients rows_only = alone.problem();
  rows_only.d_weights = nullptr;
  rows_only.values = {};
  combine_gradients weights_only = alone.problem();
  weights_only.d_values = {};
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  TMAP_ASSERT_OK(both.enqueue());
  both.expect(from);
  const run plain{.where = {cuda::stream_ref{cudaStream_t{}}}};
  TMAP_ASSERT_OK(combine_backward(rows_only, plain));
  TMAP_ASSERT_OK(combine_backward(weights_only, plain));
  alone.d_values().expect(both.d_values().download("both"), "rows alone");
  alone.d_weights().expect(both.d_weights().download("both"), "weights alone");
}

}  // namespace
}  // namespace tmap::moe::testing
