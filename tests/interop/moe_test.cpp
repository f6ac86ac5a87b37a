// SPDX-License-Identifier: Apache-2.0
// Tests routes and sums of experts in C as far as possible without a device: the conversions, and
// what is refused.
#include <tmap/moe.hpp>
#include <tmap/moe_layer.hpp>

#include <string>
#include <variant>

#include "interop/no_stream.hpp"
#include "interop/refuses_bad_structs.hpp"
#include "interop/sized.hpp"
#include "lib/interop/convert.hpp"

namespace tmap::testing {
namespace {

template <class T>
T* place(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

tmap_route_problem from_logits() {
  tmap_route_problem made = sized<tmap_route_problem>();
  made.experts = 64;
  made.tokens = 1000;
  made.k = 4;
  made.alignment = 16;
  made.rows = 512;
  made.choices.type = TMAP_FLOAT_BF16;
  made.choices.values = {0x10000, 128};
  made.choices.scoring = TMAP_SCORING_SIGMOID;
  made.choices.scale = 2.5f;
  made.choices.bias = place<float>(0x20000);
  made.choices.groups = {8, 4, TMAP_GROUP_SCORE_SUM_OF_TWO_LARGEST, 0};
  made.choices.renormalise = 1;
  return made;
}

tmap_route_problem from_ids() {
  tmap_route_problem made = sized<tmap_route_problem>();
  made.experts = 64;
  made.tokens = 65536;
  made.k = 4;
  made.choices.kind = TMAP_CHOICES_GIVEN;
  made.choices.bytes = 8;
  made.choices.ids = place<void>(0x10000);
  made.choices.weights = place<float>(0x20000);
  return made;
}

tmap_combine_problem sums() {
  tmap_combine_problem made = sized<tmap_combine_problem>();
  made.k = 4;
  made.tokens = 100;
  made.columns = 64;
  made.rows = 400;
  made.row_type = TMAP_FLOAT_F16;
  made.values = {0x10000, 128};
  made.row_of_choice = place<std::int32_t>(0x20000);
  made.weights = place<float>(0x30000);
  made.base = {0x40000, 144};
  made.out = {0x50000, 160};
  return made;
}

TEST(c_moe, a_problem_of_logits_is_converted_whole) {
  const moe::route_problem made = interop::library_of(from_logits());
  EXPECT_EQ(made.experts, 64u);
  EXPECT_EQ(made.tokens, 1000u);
  EXPECT_EQ(made.k, 4u);
  EXPECT_EQ(made.alignment, 16u);
  EXPECT_EQ(made.rows, 512u);
  const auto& from = std::get<moe::logits>(made.choices);
  EXPECT_EQ(from.type, moe::float_type::bf16);
  EXPECT_EQ(from.values.address, 0x10000u);
  EXPECT_EQ(from.values.pitch_bytes, 128u);
  EXPECT_EQ(from.scoring, moe::scoring::sigmoid);
  EXPECT_EQ(from.scale, 2.5f);
  EXPECT_EQ(from.bias, place<float>(0x20000));
  EXPECT_EQ(from.groups.count, 8u);
  EXPECT_EQ(from.groups.chosen, 4u);
  EXPECT_EQ(from.groups.score, moe::group_scoring::sum_of_two_largest);
  EXPECT_TRUE(from.renormalise);
}

TEST(c_moe, zeros_stand_for_the_defaults) {
  const moe::route_problem made = interop::library_of(sized<tmap_route_problem>());
  EXPECT_EQ(made.alignment, 1u);
  const auto& from = std::get<moe::logits>(made.choices);
  EXPECT_EQ(from.scale, 1.0f);
  EXPECT_EQ(from.groups.count, 1u);
  EXPECT_EQ(from.groups.chosen, 1u);
  EXPECT_FALSE(from.renormalise);
}

TEST(c_moe, given_choices_are_converted_whole) {
  const moe::route_problem made = interop::library_of(from_ids());
  const auto& from = std::get<moe::given_choices>(made.choices);
  EXPECT_EQ(from.ids, place<void>(0x10000));
  EXPECT_EQ(from.bytes, 8u);
  EXPECT_EQ(from.weights, place<float>(0x20000));
}

TEST(c_moe, results_are_converted_whole) {
  tmap_route_results given = sized<tmap_route_results>();
  given.ids = place<std::int32_t>(0x10000);
  given.weights = place<float>(0x20000);
  given.counts = place<std::int32_t>(0x30000);
  given.begins = place<std::int32_t>(0x40000);
  given.ends = place<std::int32_t>(0x50000);
  given.row_of_choice = place<std::int32_t>(0x60000);
  given.token_of_row = place<std::int32_t>(0x70000);
  given.weight_of_row = place<float>(0x80000);
  const moe::route_results made = interop::library_of(given);
  EXPECT_EQ(made.ids, given.ids);
  EXPECT_EQ(made.weights, given.weights);
  EXPECT_EQ(made.counts, given.counts);
  EXPECT_EQ(made.begins, given.begins);
  EXPECT_EQ(made.ends, given.ends);
  EXPECT_EQ(made.row_of_choice, given.row_of_choice);
  EXPECT_EQ(made.token_of_row, given.token_of_row);
  EXPECT_EQ(made.weight_of_row, given.weight_of_row);
}

TEST(c_moe, a_combine_problem_is_converted_whole) {
  const moe::combine_problem made = interop::library_of(sums());
  EXPECT_EQ(made.k, 4u);
  EXPECT_EQ(made.tokens, 100u);
  EXPECT_EQ(made.columns, 64u);
  EXPECT_EQ(made.rows, 400u);
  EXPECT_EQ(made.row_type, moe::float_type::f16);
  EXPECT_EQ(made.values.address, 0x10000u);
  EXPECT_EQ(made.values.pitch_bytes, 128u);
  EXPECT_EQ(made.row_of_choice, place<std::int32_t>(0x20000));
  EXPECT_EQ(made.weights, place<float>(0x30000));
  EXPECT_EQ(made.base.address, 0x40000u);
  EXPECT_EQ(made.base.pitch_bytes, 144u);
  EXPECT_EQ(made.out.address, 0x50000u);
  EXPECT_EQ(made.out.pitch_bytes, 160u);
}

TEST(c_moe, gradients_are_converted_whole) {
  tmap_combine_gradients from = sized<tmap_combine_gradients>();
  from.k = 4;
  from.tokens = 100;
  from.columns = 64;
  from.rows = 400;
  from.row_type = TMAP_FLOAT_F16;
  from.values = {0x10000, 128};
  from.row_of_choice = place<std::int32_t>(0x20000);
  from.weights = place<float>(0x30000);
  from.d_out = {0x40000, 144};
  from.d_values = {0x50000, 160};
  from.d_weights = place<float>(0x60000);
  const moe::combine_gradients made = interop::library_of(from);
  EXPECT_EQ(made.tokens, 100u);
  EXPECT_EQ(made.k, 4u);
  EXPECT_EQ(made.columns, 64u);
  EXPECT_EQ(made.rows, 400u);
  EXPECT_EQ(made.row_type, moe::float_type::f16);
  EXPECT_EQ(made.values.address, 0x10000u);
  EXPECT_EQ(made.values.pitch_bytes, 128u);
  EXPECT_EQ(made.row_of_choice, place<std::int32_t>(0x20000));
  EXPECT_EQ(made.weights, place<float>(0x30000));
  EXPECT_EQ(made.d_out.address, 0x40000u);
  EXPECT_EQ(made.d_out.pitch_bytes, 144u);
  EXPECT_EQ(made.d_values.address, 0x50000u);
  EXPECT_EQ(made.d_values.pitch_bytes, 160u);
  EXPECT_EQ(made.d_weights, place<float>(0x60000));
  from.row_type = 3;
  EXPECT_EQ(refused(tmap_moe_combine_backward(&from, nullptr)), "problem.row_type");
  from.row_type = TMAP_FLOAT_F16;
  from.d_values.address = 8;
  EXPECT_EQ(refused(tmap_moe_combine_backward(&from, nullptr)), "problem.d_values.address");
}

/// Maps the refusal of a missing workspace to success, because a good call ends with it here.
tmap_status without_workspace(tmap_status answer) {
  return refused(answer) == "call.workspace_bytes" ? tmap_status{TMAP_OK} : answer;
}

TEST(c_moe, structs_are_checked) {
  const tmap_route_problem good = from_logits();
  const auto route = [](const tmap_route_problem* p, const tmap_route_results* r, const tmap_call* c) {
    return without_workspace(tmap_moe_route(p, r, c));
  };
  EXPECT_EQ(route(&good, nullptr, nullptr), TMAP_OK);
  const tmap_route_problem given = from_ids();
  EXPECT_EQ(route(&given, nullptr, nullptr), TMAP_OK);
  refuses_bad_structs<tmap_route_problem>(good, [&](auto* p) { return route(p, nullptr, nullptr); });
  refuses_bad_structs<tmap_route_results>(
      sized<tmap_route_results>(), [&](auto* r) { return route(&good, r, nullptr); }, true);
  refuses_bad_structs<tmap_call>(
      sized<tmap_call>(), [&](auto* c) { return route(&good, nullptr, c); }, true);
  // Its last argument is refused after all others.
  const auto combine = [](const tmap_combine_problem* p) {
    tmap_call call = sized<tmap_call>();
    call.check = 3;
    const tmap_status answer = tmap_moe_combine(p, &call);
    return refused(answer) == "call.check" ? tmap_status{TMAP_OK} : answer;
  };
  const tmap_combine_problem sum = sums();
  EXPECT_EQ(combine(&sum), TMAP_OK);
  refuses_bad_structs<tmap_combine_problem>(sum, combine);
}

TEST(c_moe, members_are_refused_by_the_names_of_c) {
  const auto refuses = [](const tmap_route_problem& good, const std::string& member, const auto& spoil) {
    tmap_route_problem bad = good;
    spoil(bad);
    EXPECT_EQ(refused(tmap_moe_route(&bad, nullptr, nullptr)), "problem." + member);
  };
  for (const std::uint32_t wild : {3u, ~0u}) {
    refuses(from_logits(), "choices.kind", [&](auto& p) { p.choices.kind = wild; });
    refuses(from_logits(), "choices.type", [&](auto& p) { p.choices.type = wild; });
    refuses(from_logits(), "choices.scoring", [&](auto& p) { p.choices.scoring = wild; });
    refuses(from_logits(), "choices.renormalise", [&](auto& p) { p.choices.renormalise = wild; });
    refuses(from_logits(), "choices.groups.score", [&](auto& p) { p.choices.groups.score = wild; });
    refuses(from_logits(), "choices.groups.padding", [&](auto& p) { p.choices.groups.padding = wild; });
  }
  refuses(from_logits(), "choices.values.address", [](auto& p) { p.choices.values.address = 0; });
  refuses(from_logits(), "choices.groups.count", [](auto& p) { p.choices.groups.count = 7; });
  refuses(from_ids(), "choices.bytes", [](auto& p) { p.choices.bytes = 0; });
  refuses(from_ids(), "alignment", [](auto& p) { p.alignment = 3; });
  tmap_combine_problem sum = sums();
  sum.row_type = 3;
  EXPECT_EQ(refused(tmap_moe_combine(&sum, nullptr)), "problem.row_type");
  tmap_call call = sized<tmap_call>();
  call.workspace_bytes = 1;
  sum = sums();
  EXPECT_EQ(refused(tmap_moe_combine(&sum, &call)), "call.workspace_bytes");
}

TEST(c_moe, members_of_the_other_kind_must_be_zero) {
  const auto refuses = [](const tmap_route_problem& good, const std::string& member, const auto& spoil) {
    tmap_route_problem bad = good;
    spoil(bad.choices);
    EXPECT_EQ(refused(tmap_moe_route(&bad, nullptr, nullptr)), "problem.choices." + member);
  };
  refuses(from_logits(), "bytes", [](auto& c) { c.bytes = 4; });
  refuses(from_logits(), "ids", [](auto& c) { c.ids = place<void>(0x10000); });
  refuses(from_logits(), "weights", [](auto& c) { c.weights = place<float>(0x10000); });
  refuses(from_ids(), "type", [](auto& c) { c.type = 1; });
  refuses(from_ids(), "values", [](auto& c) { c.values.pitch_bytes = 1; });
  refuses(from_ids(), "scoring", [](auto& c) { c.scoring = 1; });
  refuses(from_ids(), "scale", [](auto& c) { c.scale = 1; });
  refuses(from_ids(), "bias", [](auto& c) { c.bias = place<float>(0x10000); });
  refuses(from_ids(), "groups", [](auto& c) { c.groups.chosen = 1; });
  refuses(from_ids(), "renormalise", [](auto& c) { c.renormalise = 1; });
}

TEST(c_moe, workspace_and_rows_are_those_of_cpp) {
  std::uint64_t bytes = 77;
  tmap_route_problem problem = from_logits();
  EXPECT_EQ(refused(tmap_moe_workspace_bytes(&problem, nullptr)), "bytes");
  EXPECT_EQ(tmap_moe_workspace_bytes(&problem, &bytes), TMAP_OK);
  EXPECT_EQ(bytes, moe::workspace_bytes(interop::library_of(problem)).value());
  problem.k = 0;
  EXPECT_EQ(refused(tmap_moe_workspace_bytes(&problem, &bytes)), "problem.k");
  EXPECT_EQ(tmap_moe_most_rows(100, 64, 4, 16), moe::most_rows(100, 64, 4, 16));
  EXPECT_EQ(tmap_moe_most_rows(100, 64, 4, 0), 0u);
}

tmap_layer_problem layer_in_c() {
  tmap_layer_problem made = sized<tmap_layer_problem>();
  made.operand = TMAP_OPERAND_F16;
  made.routing = from_logits();
  made.width = 64;
  made.inner = 32;
  made.x = {0x10000, 128};
  made.gate_up = {{0x20000, 144}, 64 * 144, nullptr, place<void>(0x21000), {}};
  made.gate = {TMAP_GATE_GELU, TMAP_GATE_INTERLEAVED, 2, 7, 1, 0, {0x30000, 160}};
  made.down = {{0, 80}, 0, place<std::uint64_t>(0x41000), nullptr, {}};
  made.base = {0x50000, 176};
  made.out = {0x60000, 192};
  return made;
}

tmap_layer_results layer_results_in_c() {
  tmap_layer_results made = sized<tmap_layer_results>();
  made.routed = sized<tmap_route_results>();
  made.routed.counts = place<std::int32_t>(0x10000);
  made.rows = {0x20000, 128};
  made.activated = {0x30000, 144};
  made.outputs = {0x40000, 160};
  made.row_scales = place<float>(0x70000);
  made.activated_scales = place<float>(0x80000);
  made.gate_up_statuses = place<std::uint32_t>(0x50000);
  made.down_statuses = place<std::uint32_t>(0x60000);
  return made;
}

void expect_matrix(const gemm::matrix& made, std::uint64_t address, std::uint64_t pitch) {
  EXPECT_EQ(made.address, address);
  EXPECT_EQ(made.pitch_bytes, pitch);
}

TEST(c_moe, a_layer_is_converted_whole) {
  const moe::layer_problem made = interop::library_of(layer_in_c());
  EXPECT_EQ(made.type, gemm::operand_type::f16);
  EXPECT_EQ(made.routing.rows, 512u);
  EXPECT_EQ(made.width, 64u);
  EXPECT_EQ(made.inner, 32u);
  expect_matrix(made.x, 0x10000, 128);
  expect_matrix(made.gate_up.values, 0x20000, 144);
  EXPECT_EQ(made.gate_up.group_pitch_bytes, 64u * 144);
  EXPECT_EQ(made.gate_up.addresses, nullptr);
  EXPECT_EQ(made.gate_up.bias, place<void>(0x21000));
  EXPECT_EQ(made.gate.function, gemm::gate_function::gelu);
  EXPECT_EQ(made.gate.columns, gemm::gate_columns::interleaved);
  EXPECT_EQ(made.gate.alpha, 2.0f);
  EXPECT_EQ(made.gate.limit, 7.0f);
  EXPECT_EQ(made.gate.value_shift, 1.0f);
  expect_matrix(made.gate.kept, 0x30000, 160);
  expect_matrix(made.down.values, 0, 80);
  EXPECT_EQ(made.down.addresses, place<std::uint64_t>(0x41000));
  EXPECT_EQ(made.down.bias, nullptr);
  expect_matrix(made.base, 0x50000, 176);
  expect_matrix(made.out, 0x60000, 192);
}

TEST(c_moe, scales_of_a_layer_are_converted) {
  tmap_layer_problem given = layer_in_c();
  given.gate_up.scales = {place<float>(0x70000), 3, 5, 7, 128, 0};
  given.powers_of_two = 1;
  const moe::layer_problem made = interop::library_of(given);
  EXPECT_EQ(made.gate_up.scales.values, place<float>(0x70000));
  EXPECT_EQ(made.gate_up.scales.line_stride, 3u);
  EXPECT_EQ(made.gate_up.scales.k_stride, 5u);
  EXPECT_EQ(made.gate_up.scales.group_stride, 7u);
  EXPECT_EQ(made.gate_up.scales.lines, 128u);
  EXPECT_TRUE(made.powers_of_two);
  given.powers_of_two = 2;
  EXPECT_EQ(refused(tmap_moe_layer(&given, nullptr, nullptr)), "problem.powers_of_two");
}

TEST(c_moe, results_of_a_layer_are_converted_whole) {
  const moe::layer_results made = interop::library_of(layer_results_in_c());
  EXPECT_EQ(made.routed.counts, place<std::int32_t>(0x10000));
  expect_matrix(made.rows, 0x20000, 128);
  expect_matrix(made.activated, 0x30000, 144);
  expect_matrix(made.outputs, 0x40000, 160);
  EXPECT_EQ(made.row_scales, place<float>(0x70000));
  EXPECT_EQ(made.activated_scales, place<float>(0x80000));
  EXPECT_EQ(made.gate_up_statuses, place<gemm::group_status>(0x50000));
  EXPECT_EQ(made.down_statuses, place<gemm::group_status>(0x60000));
}

TEST(c_moe, structs_of_a_layer_are_checked) {
  const auto run = [](const tmap_layer_problem* p, const tmap_layer_results* r, const tmap_call* c) {
    return without_workspace(tmap_moe_layer(p, r, c));
  };
  const tmap_layer_problem good = layer_in_c();
  tmap_layer_results results = layer_results_in_c();
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

TEST(c_moe, the_workspace_of_a_layer_is_that_of_cpp) {
  std::uint64_t bytes = 77;
  tmap_layer_problem problem = layer_in_c();
  EXPECT_EQ(refused(tmap_moe_layer_workspace_bytes(&problem, nullptr)), "bytes");
  EXPECT_EQ(tmap_moe_layer_workspace_bytes(&problem, &bytes), TMAP_OK);
  EXPECT_EQ(bytes, moe::workspace_bytes(interop::library_of(problem)).value());
  problem.inner = 8;
  EXPECT_EQ(refused(tmap_moe_layer_workspace_bytes(&problem, &bytes)), "problem.inner");
}

}  // namespace
}  // namespace tmap::testing
