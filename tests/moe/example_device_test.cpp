// SPDX-License-Identifier: Apache-2.0
// Holds the example of docs/experts.md, and runs it with experts that return their inputs: each
// token must come back, because its weights add up to 1.
#include <tmap/moe.hpp>
#include <tmap/ragged.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "device/gpu_fixture.hpp"

namespace tmap::moe::testing {
namespace {

using tmap::testing::device_array;

constexpr std::uint64_t tokens = 1000;
constexpr std::uint32_t experts = 64;
constexpr std::uint32_t k = 8;
constexpr std::uint64_t columns = 256;
constexpr std::uint64_t row_bytes = columns * sizeof(float);

struct layer_arrays {
  const float* logits;
  const float* x;
  float* weights;
  float* rows;
  float* out;
  std::int32_t* row_of_choice;
  std::int32_t* token_of_row;
  std::int32_t* ends;
};

route_problem routed(const float* scores) {
  logits from{.values = {scores, experts * sizeof(float)}};
  from.renormalise = true;
  return {.tokens = tokens, .experts = experts, .k = k, .choices = from};
}

/// The names of the page: `arrays` are in GPU memory.
result<void> send_and_return(const layer_arrays& arrays, cuda::stream_ref stream, const workspace& scratch) {
  const run run{{stream, scratch}};
  // [route]
  tmap::moe::logits from{.values = {arrays.logits, experts * sizeof(float)}};  // [tokens, experts]
  from.renormalise = true;
  const tmap::moe::route_problem problem{.tokens = tokens, .experts = experts, .k = k, .choices = from};
  const tmap::moe::route_results to{.weights = arrays.weights,
                                    .ends = arrays.ends,
                                    .row_of_choice = arrays.row_of_choice,
                                    .token_of_row = arrays.token_of_row};
  if (const auto chosen = tmap::moe::route(problem, to, run); !chosen) return chosen;
  const tmap::ragged::row_matrix x{arrays.x, tokens, row_bytes, row_bytes};
  const tmap::ragged::row_matrix rows{arrays.rows, tokens * k, row_bytes, row_bytes};
  const auto gathered =
      tmap::ragged::gather_rows(x, {arrays.token_of_row, tokens * k, 4}, rows, {tmap::on_stream{stream}});
  if (!gathered) return gathered;
  // Here two products multiply the rows of each expert: tmap::gemm::multiply, with the offsets
  // {arrays.ends, tmap::offset_format::ends}.
  return tmap::moe::combine({.tokens = tokens,
                             .k = k,
                             .columns = columns,
                             .rows = tokens * k,
                             .values = {arrays.rows, row_bytes},
                             .row_of_choice = arrays.row_of_choice,
                             .weights = arrays.weights,
                             .out = {arrays.out, row_bytes}},
                            run);
  // [route]
}

class moe_example : public tmap::testing::gpu_test {};

TEST_F(moe_example, tokens_return_from_experts_that_change_nothing) {
  std::vector<float> scores(tokens * experts);
  for (std::uint64_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<float>(i * 7919 % 1013) / 100;
  std::vector<float> values(tokens * columns);
  for (std::uint64_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 977);
  const device_array<float> device_scores(scores), x(values), weights(tokens * k), rows(tokens * k * columns),
      out(values.size());
  const device_array<std::int32_t> row_of_choice(tokens * k), token_of_row(tokens * k), ends(experts);
  const device_array<unsigned char> scratch(workspace_bytes(routed(device_scores.data())).value());
  TMAP_ASSERT_OK(send_and_return({device_scores.data(), x.data(), weights.data(), rows.data(), out.data(),
                                  row_of_choice.data(), token_of_row.data(), ends.data()},
                                 cuda::stream_ref{cudaStream_t{}}, {scratch.data(), scratch.bytes()}));
  const std::vector<float> got = out.download();
  for (std::uint64_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], values[i], 1e-3) << i;
  EXPECT_EQ(ends.download().back(), static_cast<std::int32_t>(tokens * k));
}

}  // namespace
}  // namespace tmap::moe::testing
