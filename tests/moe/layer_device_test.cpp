// SPDX-License-Identifier: Apache-2.0
// Tests whole layers of experts against plain loops, with every kind of gate, hostile choices, and
// memory around all results that must stay as it was.
#include <tmap/faults.hpp>
#include <tmap/moe_layer.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "gemm/gemm_fixture.hpp"
#include "moe/layer_on_device.hpp"
#include "support/refusal.hpp"

namespace tmap::moe::testing {
namespace {

/// Expects a row of numbers within their bounds.
void expect_row(const host_matrix& got, std::uint64_t row, const std::vector<bounded>& want, const std::string& what) {
  for (std::uint64_t i = 0; i < want.size(); ++i) {
    const double number = static_cast<double>(got.at(row, i));
    ASSERT_LE(std::abs(number - want[i].value), want[i].error) << what << ": row " << row << ", column " << i;
  }
}

void expect_tokens(const layer_case& of, const layer_inputs& from, const host_matrix& got, const std::string& what) {
  const sorted_choices sorted = sorted_of(of, from);
  for (std::uint64_t token = 0; token < of.sizes.tokens; ++token) {
    expect_row(got, token, run_token(of, from, sorted, token), what);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

/// Expects all intermediate results of a run, each by itself.
void expect_intermediates(const layer_case& of, const layer_inputs& from, const layer_on_device& got) {
  const sorted_choices sorted = sorted_of(of, from);
  got.routed().expect(sorted, "routed");
  const host_matrix rows = got.rows(), kept = got.kept(), activated = got.activated(), outputs = got.outputs();
  for (std::uint64_t choice = 0; choice < from.ids.size(); ++choice) {
    if (sorted.row_of_choice[choice] < 0) continue;
    const auto row = static_cast<std::uint64_t>(sorted.row_of_choice[choice]);
    const std::uint64_t token = choice / of.sizes.k;
    for (std::uint64_t i = 0; i < of.width; ++i) ASSERT_EQ(rows.at(row, i), from.x.at(token, i)) << row << ", " << i;
    const expert_row want = run_expert(of, from, token, static_cast<std::uint64_t>(from.ids[choice]));
    std::vector<bounded> sums;
    for (const bounded& sum : want.sums) sums.push_back(rounded(sum, of.type));
    expect_row(kept, row, sums, "kept");
    expect_row(activated, row, want.activated, "activated");
    expect_row(outputs, row, want.outputs, "outputs");
    if (::testing::Test::HasFatalFailure()) return;
  }
}

using moe_layer_call = gemm::testing::gemm_test;
class moe_layer_of : public moe_layer_call, public ::testing::WithParamInterface<layer_case> {};

TEST_P(moe_layer_of, equals_plain_loops_and_does_not_depend_on_what_is_kept) {
  const layer_case& of = GetParam();
  const layer_inputs from = random_inputs(of, 7);
  const layer_on_device device(of, from);
  TMAP_ASSERT_OK(layer(device.problem(), {}, device.on(nullptr)));
  const host_matrix alone = device.out().download("out");
  expect_tokens(of, from, alone, "without intermediates");
  device.reset();
  TMAP_ASSERT_OK(layer(device.problem(true), device.results(), device.on(nullptr)));
  EXPECT_EQ(device.out().download("out").bytes(), alone.bytes()) << "with intermediates";
  expect_intermediates(of, from, device);
}

TEST_P(moe_layer_of, has_the_same_bits_by_index_and_sorted) {
  const layer_case& of = GetParam();
  const layer_on_device device(of, random_inputs(of, 18));
  std::vector<std::vector<unsigned char>> got;
  for (const row_access access : {row_access::by_index, row_access::sorted}) {
    device.reset();
    const run with = device.on(nullptr, workspace_bytes(device.problem(), access).value());
    TMAP_ASSERT_OK(layer(device.problem(), {}, with, access));
    got.push_back(device.out().download("out").bytes());
  }
  EXPECT_EQ(got[0], got[1]);
}

using enum gemm::gate_function;
using enum gemm::gate_columns;
constexpr auto f16 = gemm::operand_type::f16;
constexpr gemm::gate gate_of(gemm::gate_function function, gemm::gate_columns columns) {
  return {.function = function, .columns = columns};
}

INSTANTIATE_TEST_SUITE_P(
    cases, moe_layer_of,
    ::testing::Values(
        layer_case{.name = "Small", .sizes = {40, 8, 2}, .width = 64, .inner = 48},
        layer_case{.name = "OneToken", .sizes = {1, 16, 4}, .width = 72, .inner = 16, .has_base = true},
        layer_case{.name = "MoreExpertsThanRows", .sizes = {5, 200, 2}, .width = 40, .inner = 32, .has_bias = true},
        layer_case{.name = "OneExpert", .sizes = {150, 1, 1}, .width = 136, .inner = 80, .has_bias = true},
        layer_case{.name = "Interleaved",
                   .sizes = {33, 5, 3},
                   .width = 64,
                   .inner = 64,
                   .gate = {.function = silu, .columns = interleaved, .alpha = 1.702f, .limit = 1, .value_shift = 1},
                   .has_bias = true,
                   .has_base = true},
        layer_case{
            .name = "Gelu", .sizes = {33, 5, 3}, .width = 64, .inner = 32, .type = f16, .gate = gate_of(gelu, halves)},
        layer_case{.name = "GeluTanh",
                   .sizes = {33, 5, 3},
                   .width = 64,
                   .inner = 32,
                   .type = f16,
                   .gate = gate_of(gelu_tanh, interleaved),
                   .has_bias = true},
        layer_case{.name = "NoWeights", .sizes = {30, 6, 2}, .width = 64, .inner = 32, .has_weights = false},
        layer_case{.name = "Addresses", .sizes = {60, 6, 2}, .width = 64, .inner = 32, .has_addresses = true},
        layer_case{.name = "Aligned", .sizes = {60, 6, 2, 16}, .width = 64, .inner = 32},
        layer_case{.name = "Capacity", .sizes = {60, 6, 2, 1, 70}, .width = 64, .inner = 32, .has_base = true},
        layer_case{
            .name = "Hostile", .sizes = {70, 9, 4}, .width = 64, .inner = 32, .has_base = true, .is_hostile = true},
        layer_case{.name = "HostileAlignedCapacity",
                   .sizes = {70, 9, 4, 32, 224},
                   .width = 64,
                   .inner = 32,
                   .is_hostile = true},
        layer_case{.name = "Larger", .sizes = {300, 4, 2}, .width = 264, .inner = 272, .has_bias = true}),
    [](const auto& of) { return of.param.name; });

TEST_F(moe_layer_call, of_no_tokens_writes_counts_alone) {
  const layer_case of{.sizes = {0, 6, 2}, .width = 64, .inner = 32};
  const layer_inputs from = random_inputs(of, 8);
  const layer_on_device device(of, from);
  TMAP_ASSERT_OK(layer(device.problem(true), device.results(), device.on(nullptr)));
  device.routed().expect(sorted_of(of, from), "routed");
  device.gate_up_statuses().expect(std::vector<gemm::group_status>(6, {0xa5a5a5a5}), "gate_up_statuses");
}

TEST_F(moe_layer_call, all_tokens_to_one_expert) {
  const layer_case of{.sizes = {200, 8, 1}, .width = 64, .inner = 48, .has_bias = true};
  layer_inputs from = random_inputs(of, 9);
  std::fill(from.ids.begin(), from.ids.end(), 5);
  const layer_on_device device(of, from);
  TMAP_ASSERT_OK(layer(device.problem(true), device.results(), device.on(nullptr)));
  expect_tokens(of, from, device.out().download("out"), "out");
  std::vector<gemm::group_status> want(8, {gemm::group_status::empty_bit});
  want[5] = {};
  device.gate_up_statuses().expect(want, "gate_up_statuses");
  device.down_statuses().expect(want, "down_statuses");
}

TEST_F(moe_layer_call, without_any_choice_the_base_comes_out) {
  const layer_case of{.sizes = {20, 4, 2}, .width = 64, .inner = 32, .has_base = true};
  layer_inputs from = random_inputs(of, 10);
  std::fill(from.ids.begin(), from.ids.end(), -1);
  const layer_on_device device(of, from);
  TMAP_ASSERT_OK(layer(device.problem(), {}, device.on(nullptr)));
  const host_matrix got = device.out().download("out");
  for (std::uint64_t token = 0; token < 20; ++token) {
    for (std::uint64_t i = 0; i < of.width; ++i) ASSERT_EQ(got.at(token, i), from.base.at(token, i));
  }
}

TEST_F(moe_layer_call, a_graph_replays_with_other_tokens) {
  const layer_case of{
      .sizes = {50, 8, 3}, .width = 64, .inner = 48, .has_bias = true, .has_base = true, .is_hostile = true};
  const layer_inputs first = random_inputs(of, 11);
  const layer_on_device device(of, first);
  const recorded_call graph([&](cudaStream_t stream) { return layer(device.problem(), {}, device.on(stream)); });
  for (std::uint64_t i = 0; i < 10; ++i) {
    layer_inputs other = random_inputs(of, 100 + i);
    other.gate_up = first.gate_up;
    other.down = first.down;
    other.gate_up_bias = first.gate_up_bias;
    other.down_bias = first.down_bias;
    device.set(other);
    device.reset();
    graph.replay();
    expect_tokens(of, other, device.out().download("out"), "replay " + std::to_string(i));
    device.routed().reports().expect(sorted_of(of, other).statuses, "replay " + std::to_string(i));
  }
}

TEST_F(moe_layer_call, a_token_has_the_same_bits_among_other_tokens) {
  const layer_case of{.sizes = {400, 8, 2}, .width = 128, .inner = 64, .gap = 0};
  const layer_inputs from = random_inputs(of, 12);
  const layer_on_device device(of, from);
  TMAP_ASSERT_OK(layer(device.problem(), {}, device.on(nullptr)));
  const host_matrix all = device.out().download("all");
  for (const std::uint64_t token : {std::uint64_t{0}, std::uint64_t{211}, std::uint64_t{399}}) {
    layer_problem alone = device.problem();
    alone.routing.tokens = 1;
    auto& choices = std::get<given_choices>(alone.routing.choices);
    choices.ids = static_cast<const std::int32_t*>(choices.ids) + token * of.sizes.k;
    choices.weights += token * of.sizes.k;
    alone.x.address = device.x().line(token);
    device.reset();
    run with = device.on(nullptr);
    TMAP_ASSERT_OK(layer(alone, {}, with));
    const std::vector<unsigned char> got = device.out().download("alone").bytes();
    const std::uint64_t row_bytes = of.width * 2;
    EXPECT_EQ(std::memcmp(&got[all.place_of(0, 0)], &all.bytes()[all.place_of(token, 0)], row_bytes), 0) << token;
  }
}

/// The arrays of the example of docs/experts.md, in GPU memory.
struct example_arrays {
  const float* logits;
  gemm::matrix x;
  device_address gate_up;
  device_address down;
  gemm::matrix out;
};

/// Makes the layer of the page, with its names.
layer_problem example_layer(const example_arrays& arrays, const layer_case& of) {
  const auto [tokens, experts, k] = std::tuple{of.sizes.tokens, of.sizes.experts, of.sizes.k};
  const auto [width, inner] = std::tuple{of.width, of.inner};
  // [layer]
  constexpr std::uint64_t item = 2;                                            // bytes of a bf16
  tmap::moe::logits from{.values = {arrays.logits, experts * sizeof(float)}};  // [tokens, experts]
  from.renormalise = true;
  tmap::moe::layer_problem problem;
  problem.type = tmap::gemm::operand_type::bf16;
  problem.routing = {.tokens = tokens, .experts = experts, .k = k, .choices = from};
  problem.width = width;
  problem.inner = inner;
  problem.x = arrays.x;  // [tokens, width]
  // [experts, 2 * inner, width], and [experts, width, inner]
  problem.gate_up = {.values = {arrays.gate_up, width * item}, .group_pitch_bytes = 2 * inner * width * item};
  problem.down = {.values = {arrays.down, inner * item}, .group_pitch_bytes = width * inner * item};
  problem.gate.function = tmap::gemm::gate_function::silu;
  problem.out = arrays.out;  // [tokens, width]
  // [layer]
  return problem;
}

/// Runs it as the page does.
result<void> run_example(const layer_problem& problem, const layer_results& results, cuda::stream_ref stream,
                         const device_array<unsigned char>& memory) {
  // [run_layer]
  const auto bytes = tmap::moe::workspace_bytes(problem);
  if (!bytes) return tmap::failure{bytes.error()};
  const tmap::workspace scratch{memory.data(), *bytes};
  return tmap::moe::layer(problem, results, {{stream, scratch}});
  // [run_layer]
}

TEST_F(moe_layer_call, from_logits_equals_its_own_choices) {
  const layer_case of{.sizes = {90, 16, 4}, .width = 64, .inner = 32};
  layer_inputs from = random_inputs(of, 13);
  const layer_on_device device(of, from);
  std::mt19937_64 random = tmap::testing::run_random(14);
  std::normal_distribution<float> normal;
  std::vector<float> scores;
  for (int i = 0; i < 90 * 16; ++i) scores.push_back(normal(random));
  const device_array<float> device_scores(scores);
  const guarded<std::int32_t> ids(of.sizes.choices());
  const guarded<float> weights(of.sizes.choices());
  const layer_problem given = device.problem();
  const layer_problem problem = example_layer(
      {device_scores.data(), given.x, given.gate_up.values.address, given.down.values.address, given.out}, of);
  const device_array<unsigned char> memory(workspace_bytes(problem).value());
  const cuda::stream_ref stream{cudaStream_t{}};
  TMAP_ASSERT_OK(run_example(problem, {.routed = {.ids = ids.data(), .weights = weights.data()}}, stream, memory));
  from.ids = ids.download("ids");
  from.weights = weights.download("weights");
  const host_matrix got = device.out().download("out");
  expect_tokens(of, from, got, "out");
  device.reset();
  memory.fill_poison();
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  TMAP_ASSERT_OK(run_example(problem, {}, stream, memory));
  EXPECT_EQ(device.out().download("out").bytes(), got.bytes()) << "without ids and weights";
}

TEST_F(moe_layer_call, a_bad_address_is_reported_and_spoils_its_expert_alone) {
  const layer_case of{.sizes = {64, 4, 1}, .width = 64, .inner = 32, .has_addresses = true};
  const layer_inputs from = random_inputs(of, 15);
  const layer_on_device device(of, from);
  std::vector<std::uint64_t> addresses = device.gate_up_addresses().download();
  addresses[2] = 0;
  device.gate_up_addresses().upload(addresses);
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  TMAP_ASSERT_OK(reset_faults());
  TMAP_ASSERT_OK(layer(device.problem(), device.results(), device.on(nullptr)));
  std::vector<gemm::group_status> want(4);
  want[2] = {static_cast<std::uint32_t>(gemm::fault::address)};
  device.gate_up_statuses().expect(want, "gate_up_statuses");
  const host_matrix got = device.out().download("out");
  const sorted_choices sorted = sorted_of(of, from);
  for (std::uint64_t token = 0; token < 64; ++token) {
    if (from.ids[token] != 2) expect_row(got, token, run_token(of, from, sorted, token), "out");
  }
  const auto report = reset_faults();
  TMAP_ASSERT_OK(report);
  EXPECT_EQ(report->groups, 1u);
  EXPECT_EQ(report->rows, 0u);
  run with = device.on(nullptr);
  with.check = fault_check::sync;
  const result<void> checked = layer(device.problem(), {}, with);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, status::bad_items);
}

TEST_F(moe_layer_call, a_checked_call_with_bad_choices_fails_after_all_its_work) {
  const layer_case of{.sizes = {40, 4, 2}, .width = 64, .inner = 32, .is_hostile = true};
  const layer_inputs from = random_inputs(of, 16);
  const layer_on_device device(of, from);
  run with = device.on(nullptr);
  with.check = fault_check::sync;
  const result<void> checked = layer(device.problem(), {}, with);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, status::bad_items);
  expect_tokens(of, from, device.out().download("out"), "out");
}

TEST_F(moe_layer_call, works_within_its_workspace) {
  const layer_case of{.sizes = {100, 8, 4}, .width = 64, .inner = 32};
  const layer_inputs from = random_inputs(of, 17);
  const layer_on_device device(of, from);
  for (const row_access access : {row_access::by_index, row_access::sorted}) {
    const bounded_workspace exact(workspace_bytes(device.problem(), access).value());
    run with = device.on(nullptr);
    with.where.scratch = exact.place();
    TMAP_ASSERT_OK(layer(device.problem(), {}, with, access));
    expect_tokens(of, from, device.out().download("out"), "out");
    exact.expect_bounds();
    --with.where.scratch.bytes;
    tmap::testing::expect_refused(layer(device.problem(), {}, with, access), "scratch.bytes");
    device.reset();
  }
}

// Rows enough for a copy: the layer sorts them, and the caller's copy is the same.
TEST_F(moe_layer_call, of_many_rows_sorts_them) {
  const layer_case of{.sizes = {130, 1, 1}, .width = 64, .inner = 1424};
  const layer_inputs from = random_inputs(of, 19);
  const layer_on_device device(of, from);
  ASSERT_EQ(choose_access(device.problem()), row_access::sorted);
  TMAP_ASSERT_OK(layer(device.problem(), {}, device.on(nullptr)));
  const host_matrix alone = device.out().download("out");
  expect_tokens(of, from, alone, "out");
  device.reset();
  TMAP_ASSERT_OK(layer(device.problem(), device.results(), device.on(nullptr)));
  EXPECT_EQ(device.out().download("out").bytes(), alone.bytes());
}

}  // namespace
}  // namespace tmap::moe::testing
