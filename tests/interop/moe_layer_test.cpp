// SPDX-License-Identifier: Apache-2.0
// Tests layers of experts in C as far as possible without a device: the conversions, and what is
// refused.
#include <tmap/moe_layer.hpp>

#include "interop/expect_matrix.hpp"
#include "interop/refuses_bad_structs.hpp"
#include "interop/routed_logits.hpp"
#include "lib/interop/convert.hpp"

namespace tmap::testing {
namespace {

tmap_layer_problem c_layer() {
  tmap_layer_problem made = sized<tmap_layer_problem>();
  made.operand = TMAP_OPERAND_F16;
  made.routing = c_logits();
  made.width = 64;
  made.inner = 32;
  made.x = {0x10000, 128};
  made.gate_up = {{0x20000, 144}, 64 * 144, nullptr, unread<void>(0x21000), {}};
  made.gate = {TMAP_GATE_GELU, TMAP_GATE_INTERLEAVED, 2, 7, 1, 0, {0x30000, 160}};
  made.down = {{0, 80}, 0, unread<std::uint64_t>(0x41000), nullptr, {}};
  made.base = {0x50000, 176};
  made.out = {0x60000, 192};
  return made;
}

tmap_layer_results c_layer_results() {
  tmap_layer_results made = sized<tmap_layer_results>();
  made.routed = sized<tmap_route_results>();
  made.routed.counts = unread<std::int32_t>(0x10000);
  made.rows = {0x20000, 128};
  made.activated = {0x30000, 144};
  made.outputs = {0x40000, 160};
  made.row_scales = unread<float>(0x70000);
  made.activated_scales = unread<float>(0x80000);
  made.gate_up_statuses = unread<std::uint32_t>(0x50000);
  made.down_statuses = unread<std::uint32_t>(0x60000);
  return made;
}

TEST(c_moe_layer, a_layer_is_converted_whole) {
  const moe::layer_problem made = interop::library_of(c_layer());
  EXPECT_EQ(made.type, gemm::operand_type::f16);
  EXPECT_EQ(made.routing.rows, 512u);
  EXPECT_EQ(made.width, 64u);
  EXPECT_EQ(made.inner, 32u);
  expect_matrix(made.x, 0x10000, 128);
  expect_matrix(made.gate_up.values, 0x20000, 144);
  EXPECT_EQ(made.gate_up.group_pitch_bytes, 64u * 144);
  EXPECT_EQ(made.gate_up.addresses, nullptr);
  EXPECT_EQ(made.gate_up.bias, unread<void>(0x21000));
  EXPECT_EQ(made.gate.function, gemm::gate_function::gelu);
  EXPECT_EQ(made.gate.columns, gemm::gate_columns::interleaved);
  EXPECT_EQ(made.gate.alpha, 2.0f);
  EXPECT_EQ(made.gate.limit, 7.0f);
  EXPECT_EQ(made.gate.value_shift, 1.0f);
  expect_matrix(made.gate.kept, 0x30000, 160);
  expect_matrix(made.down.values, 0, 80);
  EXPECT_EQ(made.down.addresses, unread<std::uint64_t>(0x41000));
  EXPECT_EQ(made.down.bias, nullptr);
  expect_matrix(made.base, 0x50000, 176);
  expect_matrix(made.out, 0x60000, 192);
}

TEST(c_moe_layer, scales_of_a_layer_are_converted) {
  tmap_layer_problem given = c_layer();
  given.gate_up.scales = {unread<float>(0x70000), 3, 5, 7, 128, 0};
  given.powers_of_two = 1;
  const moe::layer_problem made = interop::library_of(given);
  EXPECT_EQ(made.gate_up.scales.values, unread<float>(0x70000));
  EXPECT_EQ(made.gate_up.scales.line_stride, 3u);
  EXPECT_EQ(made.gate_up.scales.k_stride, 5u);
  EXPECT_EQ(made.gate_up.scales.group_stride, 7u);
  EXPECT_EQ(made.gate_up.scales.lines, 128u);
  EXPECT_TRUE(made.powers_of_two);
  given.powers_of_two = 2;
  EXPECT_EQ(refused(tmap_moe_layer(&given, nullptr, nullptr)), "problem.powers_of_two");
}

TEST(c_moe_layer, results_of_a_layer_are_converted_whole) {
  const moe::layer_results made = interop::library_of(c_layer_results());
  EXPECT_EQ(made.routed.counts, unread<std::int32_t>(0x10000));
  expect_matrix(made.rows, 0x20000, 128);
  expect_matrix(made.activated, 0x30000, 144);
  expect_matrix(made.outputs, 0x40000, 160);
  EXPECT_EQ(made.row_scales, unread<float>(0x70000));
  EXPECT_EQ(made.activated_scales, unread<float>(0x80000));
  EXPECT_EQ(made.gate_up_statuses, unread<gemm::group_status>(0x50000));
  EXPECT_EQ(made.down_statuses, unread<gemm::group_status>(0x60000));
}

TEST(c_moe_layer, structs_of_a_layer_are_checked) {
  const auto run = [](const tmap_layer_problem* p, const tmap_layer_results* r, const tmap_call* c) {
    return without_workspace(tmap_moe_layer(p, r, c));
  };
  const tmap_layer_problem good = c_layer();
  tmap_layer_results results = c_layer_results();
  results.row_scales = results.activated_scales = nullptr;
  EXPECT_EQ(run(&good, &results, nullptr), TMAP_OK);
  refuses_bad_structs<tmap_layer_problem>(good, [&](auto* p) { return run(p, nullptr, nullptr); });
  refuses_bad_structs<tmap_layer_results>(
      results, [&](auto* r) { return run(&good, r, nullptr); }, true);
  tmap_layer_problem bad = good;
  bad.routing.struct_size = 0;
  EXPECT_EQ(refused(tmap_moe_layer(&bad, nullptr, nullptr)), "problem.routing.struct_size");
  bad = good;
  bad.routing.choices.kind = 2;
  EXPECT_EQ(refused(tmap_moe_layer(&bad, nullptr, nullptr)), "problem.routing.choices.kind");
  bad = good;
  bad.gate.backward = 2;
  EXPECT_EQ(refused(tmap_moe_layer(&bad, nullptr, nullptr)), "problem.gate.backward");
  tmap_layer_results unsized = results;
  unsized.routed.struct_size = 0;
  EXPECT_EQ(refused(tmap_moe_layer(&good, &unsized, nullptr)), "results.routed.struct_size");
}

TEST(c_moe_layer, the_workspace_of_a_layer_is_that_of_cpp) {
  std::uint64_t bytes = 77;
  tmap_layer_problem problem = c_layer();
  EXPECT_EQ(refused(tmap_moe_layer_workspace_bytes(&problem, nullptr)), "bytes");
  EXPECT_EQ(tmap_moe_layer_workspace_bytes(&problem, &bytes), TMAP_OK);
  EXPECT_EQ(bytes, moe::workspace_bytes(interop::library_of(problem)).value());
  problem.inner = 8;
  EXPECT_EQ(refused(tmap_moe_layer_workspace_bytes(&problem, &bytes)), "problem.inner");
}

}  // namespace
}  // namespace tmap::testing
