// SPDX-License-Identifier: Apache-2.0
// Tests every argument that `layer` refuses before it queries the device. These cases run on any
// machine.
#include <tmap/moe_layer.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "lib/moe/layer_access.hpp"
#include "support/refusal.hpp"

namespace tmap::moe::testing {
namespace {

using tmap::testing::expect_refused;

template <class T>
T* address(std::uint64_t offset = 0) {
  return reinterpret_cast<T*>(0x10000 + offset);
}

layer_problem small_layer() {
  layer_problem made;
  made.routing = {.tokens = 100, .experts = 8, .k = 2, .choices = given_choices{.ids = address<void>()}};
  made.width = 64;
  made.inner = 32;
  made.x = {0x10000, 128};
  made.gate_up = {.values = {0x20000, 128}, .group_pitch_bytes = 64 * 128, .bias = address<void>()};
  made.down = {.values = {0x30000, 64}, .group_pitch_bytes = 64 * 64, .bias = address<void>()};
  made.base = {0x40000, 128};
  made.out = {0x50000, 128};
  return made;
}

result<void> call(const layer_problem& problem, const layer_results& results, std::uint64_t bytes) {
  return layer(problem, results, {.where = {cuda::stream_ref{cudaStream_t{}}, {address<void>(), bytes}}});
}

void layer_refuses(const std::string& name, const std::function<void(layer_problem&, layer_results&)>& spoil) {
  layer_problem problem = small_layer();
  layer_results results;
  const std::uint64_t bytes = workspace_bytes(problem).value();
  spoil(problem, results);
  expect_refused(call(problem, results, bytes), name);
}
void problem_refuses(const std::string& member, const std::function<void(layer_problem&)>& spoil) {
  layer_refuses("problem." + member, [&](layer_problem& problem, layer_results&) { spoil(problem); });
}
void results_refuse(const std::string& member, const std::function<void(layer_results&)>& spoil) {
  layer_refuses("results." + member, [&](layer_problem&, layer_results& results) { spoil(results); });
}

TEST(moe_layer_arguments, of_the_routing) {
  problem_refuses("routing.experts", [](auto& p) { p.routing.experts = max_experts + 1; });
  problem_refuses("routing.k", [](auto& p) { p.routing.k = 0; });
  problem_refuses("routing.tokens", [](auto& p) { p.routing.tokens = max_choices; });
  problem_refuses("routing.alignment", [](auto& p) { p.routing.alignment = 3; });
  problem_refuses("routing.rows", [](auto& p) { p.routing.rows = std::uint64_t{1} << 31; });
  problem_refuses("routing.choices.ids", [](auto& p) { p.routing.choices = given_choices{}; });
  problem_refuses("routing.choices.values.address", [](auto& p) { p.routing.choices = logits{}; });
  problem_refuses("routing.choices.bias", [](auto& p) {
    p.routing.choices = logits{.values = {0x10000, 32}, .bias = address<float>()};
  });
}

TEST(moe_layer_arguments, sizes) {
  problem_refuses("type", [](auto& p) { p.type = gemm::operand_type::f8_e5m2; });
  for (const std::uint64_t width : {std::uint64_t{0}, std::uint64_t{60}, max_columns + 8}) {
    problem_refuses("width", [=](auto& p) { p.width = width; });
  }
  for (const std::uint64_t inner : {std::uint64_t{0}, std::uint64_t{24}, max_columns + 16}) {
    problem_refuses("inner", [=](auto& p) { p.inner = inner; });
  }
  layer_problem problem = small_layer();
  problem.inner = 8;
  expect_refused(workspace_bytes(problem), "problem.inner");
}

TEST(moe_layer_arguments, weights) {
  problem_refuses("gate_up.values.address", [](auto& p) { p.gate_up.values.address = 0; });
  problem_refuses("gate_up.values.pitch_bytes", [](auto& p) { p.gate_up.values.pitch_bytes = 112; });
  problem_refuses("gate_up.group_pitch_bytes", [](auto& p) { p.gate_up.group_pitch_bytes -= 16; });
  problem_refuses("gate_up.addresses", [](auto& p) { p.gate_up.addresses = address<std::uint64_t>(4); });
  problem_refuses("gate_up.bias", [](auto& p) { p.gate_up.bias = address<void>(8); });
  problem_refuses("down.values.address", [](auto& p) { p.down.values.address += 8; });
  problem_refuses("down.values.pitch_bytes", [](auto& p) { p.down.values.pitch_bytes = 72; });
  problem_refuses("down.group_pitch_bytes", [](auto& p) { p.down.group_pitch_bytes = 0; });
  problem_refuses("down.addresses", [](auto& p) { p.down.addresses = address<std::uint64_t>(1); });
  problem_refuses("down.bias", [](auto& p) { p.down.bias = address<void>(2); });
}

gemm::block_scales scales_of(std::uint64_t lines, std::uint64_t columns) {
  return {.values = address<float>(),
          .line_stride = columns / 128,
          .k_stride = 1,
          .group_stride = lines / 128 * columns / 128,
          .lines = 128};
}

layer_problem scaled_layer() {
  layer_problem made = small_layer();
  made.type = gemm::operand_type::f8_e4m3;
  made.width = 256;
  made.inner = 128;
  made.x = made.base = made.out = {0x10000, 512};
  made.gate_up = {.values = {0x20000, 256}, .group_pitch_bytes = 256 * 256, .scales = scales_of(256, 256)};
  made.down = {.values = {0x30000, 128}, .group_pitch_bytes = 256 * 128, .scales = scales_of(256, 128)};
  return made;
}

void scaled_refuses(const std::string& member, const std::function<void(layer_problem&)>& spoil) {
  layer_problem problem = scaled_layer();
  const std::uint64_t bytes = workspace_bytes(problem).value();
  spoil(problem);
  expect_refused(call(problem, {}, bytes), "problem." + member);
}

TEST(moe_layer_arguments, scales) {
  expect_refused(call(scaled_layer(), {}, 0), "scratch.bytes");
  scaled_refuses("width", [](auto& p) { p.width = 248; });
  scaled_refuses("inner", [](auto& p) { p.inner = 64; });
  scaled_refuses("gate_up.scales.values", [](auto& p) { p.gate_up.scales = {}; });
  scaled_refuses("gate_up.scales.lines", [](auto& p) { p.gate_up.scales.lines = 1; });
  scaled_refuses("down.scales.values", [](auto& p) { p.down.scales.values = address<float>(2); });
  scaled_refuses("down.scales.lines", [](auto& p) { p.down.scales.lines = 64; });
  scaled_refuses("down.scales.group_stride", [](auto& p) { p.down.scales.group_stride = std::uint64_t{1} << 32; });
  problem_refuses("gate_up.scales.values", [](auto& p) { p.gate_up.scales = scales_of(128, 128); });
  results_refuse("row_scales", [](auto& r) { r.row_scales = address<float>(); });
  results_refuse("activated_scales", [](auto& r) { r.activated_scales = address<float>(); });
}

TEST(moe_layer_arguments, gate) {
  problem_refuses("gate.function", [](auto& p) { p.gate.function = gemm::gate_function::none; });
  problem_refuses("gate.function", [](auto& p) { p.gate.function = static_cast<gemm::gate_function>(4); });
  problem_refuses("gate.columns", [](auto& p) { p.gate.columns = static_cast<gemm::gate_columns>(2); });
  problem_refuses("gate.alpha", [](auto& p) { p.gate.alpha = std::numeric_limits<float>::infinity(); });
  problem_refuses("gate.limit", [](auto& p) { p.gate.limit = 0; });
  problem_refuses("gate.value_shift", [](auto& p) { p.gate.value_shift = std::nanf(""); });
  problem_refuses("gate.backward", [](auto& p) { p.gate.backward = true; });
  problem_refuses("gate.kept.pitch_bytes", [](auto& p) { p.gate.kept = {0x60000, 64}; });
}

TEST(moe_layer_arguments, tokens) {
  problem_refuses("x.address", [](auto& p) { p.x.address = 0; });
  problem_refuses("x.pitch_bytes", [](auto& p) { p.x.pitch_bytes = 64; });
  problem_refuses("base.pitch_bytes", [](auto& p) { p.base.pitch_bytes = 136; });
  problem_refuses("out.address", [](auto& p) { p.out.address = 0; });
}

TEST(moe_layer_arguments, results) {
  results_refuse("routed.ids", [](auto& r) { r.routed.ids = address<std::int32_t>(); });
  results_refuse("routed.counts", [](auto& r) { r.routed.counts = address<std::int32_t>(2); });
  results_refuse("rows.pitch_bytes", [](auto& r) { r.rows = {0x60000, 64}; });
  results_refuse("activated.address", [](auto& r) { r.activated = {0x60008, 64}; });
  results_refuse("outputs.pitch_bytes", [](auto& r) { r.outputs = {0x60000, 120}; });
  results_refuse("gate_up_statuses", [](auto& r) { r.gate_up_statuses = address<gemm::group_status>(1); });
  results_refuse("down_statuses", [](auto& r) { r.down_statuses = address<gemm::group_status>(1); });
}

TEST(moe_layer_arguments, run) {
  const layer_problem problem = small_layer();
  const std::uint64_t bytes = workspace_bytes(problem).value();
  expect_refused(call(problem, {}, bytes - 1), "scratch.bytes");
  run with{.where = {cuda::stream_ref{cudaStream_t{}}, {address<void>(64), bytes}}};
  expect_refused(layer(problem, {}, with), "scratch.memory");
  with.where.scratch.memory = address<void>();
  with.header = address<batch_header>(8);
  expect_refused(layer(problem, {}, with), "header");
  with.header = nullptr;
  const address_window window{};
  with.windows = {&window, 1};
  expect_refused(layer(problem, {}, with), "windows");
}

TEST(moe_layer_arguments, a_workspace_grows_with_each_size) {
  const std::uint64_t least = workspace_bytes(small_layer()).value();
  const auto grows = [&](const std::function<void(layer_problem&)>& enlarge) {
    layer_problem problem = small_layer();
    enlarge(problem);
    EXPECT_GT(workspace_bytes(problem).value(), least);
  };
  grows([](auto& p) { p.routing.tokens = 200; });
  grows([](auto& p) { p.routing.k = 4; });
  grows([](auto& p) { p.routing.experts = 600; });
  grows([](auto& p) { p.routing.alignment = 64; });
  grows([](auto& p) { p.routing.choices = logits{}; });
  grows([](auto& p) { p.width = 1024; });
  grows([](auto& p) { p.inner = 1024; });
}

TEST(moe_layer_arguments, scaled_rows_go_with_their_scales) {
  const layer_problem problem = scaled_layer();
  const std::uint64_t bytes = workspace_bytes(problem).value();
  expect_refused(call(problem, {.rows = {0x60000, 256}}, bytes), "results.row_scales");
  expect_refused(call(problem, {.row_scales = address<float>()}, bytes), "results.row_scales");
}

TEST(moe_layer_arguments, a_bad_alignment_has_no_workspace) {
  layer_problem problem = small_layer();
  problem.routing.alignment = 0;
  expect_refused(workspace_bytes(problem), "problem.routing.alignment");
}

/// A layer with so many tokens for each of 8 experts.
layer_problem layer_of_rows(std::uint64_t rows, std::uint64_t inner) {
  layer_problem made = small_layer();
  made.routing.tokens = 8 * rows / made.routing.k;
  made.inner = inner;
  return made;
}

TEST(moe_layer_access, copies_many_rows_of_many_columns_and_all_of_8_bits) {
  const auto access_of = [](layer_problem problem, gemm::operand_type type) {
    problem.type = type;
    return choose_access(problem);
  };
  using enum gemm::operand_type;
  for (const std::uint64_t inner : {std::uint64_t{1408}, std::uint64_t{1424}}) {
    const row_access many = inner == 1408 ? row_access::by_index : row_access::sorted;
    EXPECT_EQ(access_of(layer_of_rows(128, inner), bf16), row_access::by_index);
    EXPECT_EQ(access_of(layer_of_rows(129, inner), bf16), many);
    EXPECT_EQ(access_of(layer_of_rows(129, inner), f16), many);
    EXPECT_EQ(access_of(layer_of_rows(1, inner), f8_e4m3), row_access::sorted);
  }
  layer_problem bounded = layer_of_rows(1000, 4096);
  bounded.routing.rows = 8 * 128;
  EXPECT_EQ(choose_access(bounded), row_access::by_index);
}

TEST(moe_layer_access, a_copy_has_room_in_the_workspace) {
  layer_problem problem = layer_of_rows(200, 4096);
  const auto bytes = [&](row_access access) { return workspace_bytes(problem, access).value(); };
  const std::uint64_t rows = problem.routing.tokens * problem.routing.k;
  EXPECT_EQ(bytes(row_access::sorted) - bytes(row_access::by_index), rows * 256);  // rows have 128 bytes and a gap
  EXPECT_EQ(workspace_bytes(problem).value(), bytes(row_access::sorted));
  problem.routing.tokens = 16;
  EXPECT_EQ(workspace_bytes(problem).value(), bytes(row_access::by_index));
}

}  // namespace
}  // namespace tmap::moe::testing
