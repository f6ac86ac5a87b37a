// SPDX-License-Identifier: Apache-2.0
// Tests every argument that `route` and `combine` refuse before they query the device. These cases
// run on any machine.
#include <tmap/faults.hpp>
#include <tmap/moe.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "support/refusal.hpp"

namespace tmap::moe::testing {
namespace {

using tmap::testing::expect_refused;

const cuda::stream_ref no_stream{cudaStream_t{}};

template <class T>
T* somewhere(std::uint64_t offset = 0) {
  return reinterpret_cast<T*>(0x10000 + offset);
}

route_problem from_logits() {
  logits from;
  from.values = {0x10000, 64 * sizeof(float)};
  return {.tokens = 1000, .experts = 64, .k = 4, .choices = from};
}

route_problem from_ids() {
  given_choices from;
  from.ids = somewhere<void>();
  return {.tokens = 100, .experts = 64, .k = 4, .choices = from};
}

/// Returns a problem of sums or of their gradients, without its outputs.
template <class Problem>
Problem of_rows() {
  Problem made;
  made.tokens = 100;
  made.k = 4;
  made.columns = 64;
  made.row_type = float_type::bf16;
  made.rows = 400;
  made.values = {0x10000, 128};
  made.row_of_choice = somewhere<std::int32_t>();
  return made;
}

combine_problem sums() {
  combine_problem made = of_rows<combine_problem>();
  made.out = {0x20000, 128};
  return made;
}

combine_gradients gradients() {
  combine_gradients made = of_rows<combine_gradients>();
  made.d_out = {0x20000, 128};
  made.d_values = {0x30000, 128};
  made.d_weights = somewhere<float>();
  return made;
}

run run_in(const workspace& scratch) {
  return {{no_stream, scratch}};
}
run good_run(const route_problem& problem) {
  return run_in({somewhere<void>(), workspace_bytes(problem).value()});
}

void route_refuses(route_problem problem, const std::string& member, const std::function<void(route_problem&)>& spoil) {
  const run with = good_run(problem);
  spoil(problem);
  expect_refused(route(problem, {}, with), "problem." + member);
}
void logits_refuse(const std::string& member, const std::function<void(logits&)>& spoil) {
  route_refuses(from_logits(), "choices." + member, [&](auto& p) { spoil(std::get<logits>(p.choices)); });
}
void ids_refuse(const std::string& member, const std::function<void(given_choices&)>& spoil) {
  route_refuses(from_ids(), "choices." + member, [&](auto& p) { spoil(std::get<given_choices>(p.choices)); });
}
void gradients_refuse(const std::string& member, const std::function<void(combine_gradients&)>& spoil) {
  combine_gradients problem = gradients();
  spoil(problem);
  expect_refused(combine_backward(problem, run_in({})), "problem." + member);
}

void combine_refuses(const std::string& member, const std::function<void(combine_problem&)>& spoil) {
  combine_problem problem = sums();
  spoil(problem);
  expect_refused(combine(problem, run_in({})), "problem." + member);
}

TEST(moe_route_arguments, sizes) {
  for (const route_problem& problem : {from_logits(), from_ids()}) {
    route_refuses(problem, "experts", [](auto& p) { p.experts = 0; });
    route_refuses(problem, "experts", [](auto& p) { p.experts = max_experts + 1; });
    route_refuses(problem, "k", [](auto& p) { p.k = 0; });
    route_refuses(problem, "k", [](auto& p) { p.k = max_k + 1; });
    route_refuses(problem, "tokens", [](auto& p) { p.tokens = max_choices / p.k + 1; });
    route_refuses(problem, "tokens", [](auto& p) { p.tokens = ~std::uint64_t{0}; });
    for (const std::uint32_t alignment : {0u, 3u, 2 * max_alignment}) {
      route_refuses(problem, "alignment", [=](auto& p) { p.alignment = alignment; });
    }
    route_refuses(problem, "rows", [](auto& p) { p.rows = std::uint64_t{1} << 31; });
    route_refuses(problem, "rows", [](auto& p) {
      p.alignment = 16;
      p.rows = 24;
    });
  }
}

TEST(moe_route_arguments, logits) {
  route_refuses(from_logits(), "k", [](auto& p) { p.experts = 3; });
  logits_refuse("type", [](auto& from) { from.type = static_cast<float_type>(3); });
  logits_refuse("scoring", [](auto& from) { from.scoring = static_cast<scoring>(3); });
  logits_refuse("values.address", [](auto& from) { from.values.address = 0; });
  logits_refuse("values.address", [](auto& from) { from.values.address = 0x10002; });
  logits_refuse("values.address", [](auto& from) { from.values.address = std::uint64_t{1} << 57; });
  logits_refuse("values.pitch_bytes", [](auto& from) { from.values.pitch_bytes -= 4; });
  logits_refuse("values.pitch_bytes", [](auto& from) { from.values.pitch_bytes += 2; });
  logits_refuse("values.pitch_bytes", [](auto& from) { from.values.pitch_bytes = std::uint64_t{1} << 41; });
  logits_refuse("bias", [](auto& from) { from.bias = somewhere<float>(); });
  logits_refuse("bias", [](auto& from) {
    from.scoring = scoring::sigmoid;
    from.bias = somewhere<float>(2);
  });
  logits_refuse("scale", [](auto& from) { from.scale = std::numeric_limits<float>::infinity(); });
  logits_refuse("scale", [](auto& from) { from.scale = std::numeric_limits<float>::quiet_NaN(); });
}

TEST(moe_route_arguments, groups) {
  logits_refuse("groups.count", [](auto& from) { from.groups.count = 0; });
  logits_refuse("groups.count", [](auto& from) { from.groups.count = max_expert_groups + 1; });
  logits_refuse("groups.count", [](auto& from) { from.groups.count = 7; });
  logits_refuse("groups.chosen", [](auto& from) { from.groups.chosen = 0; });
  logits_refuse("groups.chosen", [](auto& from) { from.groups.chosen = 2; });
  logits_refuse("groups.chosen", [](auto& from) { from.groups.count = 32; });
  logits_refuse("groups.score", [](auto& from) { from.groups.score = static_cast<group_scoring>(2); });
  route_problem lone = from_logits();
  lone.experts = 4;
  lone.k = 1;
  route_refuses(lone, "choices.groups.score", [](auto& p) {
    auto& groups = std::get<logits>(p.choices).groups;
    groups = {.count = 4, .chosen = 1, .score = group_scoring::sum_of_two_largest};
  });
}

TEST(moe_route_arguments, given_choices) {
  ids_refuse("ids", [](auto& from) { from.ids = nullptr; });
  ids_refuse("ids", [](auto& from) { from.ids = somewhere<void>(2); });
  ids_refuse("ids", [](auto& from) {
    from.bytes = 8;
    from.ids = somewhere<void>(4);
  });
  ids_refuse("bytes", [](auto& from) { from.bytes = 2; });
  ids_refuse("weights", [](auto& from) { from.weights = somewhere<float>(1); });
}

TEST(moe_route_arguments, results) {
  const auto refuses = [](const std::string& name, const route_problem& problem,
                          const std::function<void(route_results&)>& spoil) {
    route_results results;
    spoil(results);
    expect_refused(route(problem, results, good_run(problem)), "results." + name);
  };
  const auto off = somewhere<std::int32_t>(2);
  const route_problem problem = from_logits();
  refuses("ids", problem, [=](auto& r) { r.ids = off; });
  refuses("weights", problem, [](auto& r) { r.weights = somewhere<float>(2); });
  refuses("counts", problem, [=](auto& r) { r.counts = off; });
  refuses("begins", problem, [=](auto& r) { r.begins = off; });
  refuses("ends", problem, [=](auto& r) { r.ends = off; });
  refuses("row_of_choice", problem, [=](auto& r) { r.row_of_choice = off; });
  refuses("token_of_row", problem, [=](auto& r) { r.token_of_row = off; });
  refuses("weight_of_row", problem, [](auto& r) { r.weight_of_row = somewhere<float>(2); });
  refuses("ids", from_ids(), [](auto& r) { r.ids = somewhere<std::int32_t>(); });
  refuses("weights", from_ids(), [](auto& r) { r.weights = somewhere<float>(); });
}

TEST(moe_route_arguments, workspace) {
  const route_problem problem = from_logits();
  const std::uint64_t bytes = workspace_bytes(problem).value();
  ASSERT_GT(bytes, 0u);
  expect_refused(route(problem, {}, run_in({somewhere<void>(), bytes - 1})), "scratch.bytes", bytes - 1, bytes,
                 "a byte less");
  expect_refused(route(problem, {}, run_in({somewhere<void>(128), bytes})), "scratch.memory");
  expect_refused(route(problem, {}, run_in({nullptr, bytes})), "scratch.memory");
}

TEST(moe_workspace, grows_with_the_choices) {
  route_problem problem = from_ids();
  problem.tokens = 32768 / 4;
  EXPECT_EQ(workspace_bytes(problem).value(), 0u) << "one cluster needs none";
  ++problem.tokens;
  EXPECT_GT(workspace_bytes(problem).value(), 0u);
  problem = from_logits();
  problem.tokens = 512;
  EXPECT_EQ(workspace_bytes(problem).value(), 0u) << "one cluster chooses, too";
  ++problem.tokens;
  EXPECT_GT(workspace_bytes(problem).value(), 0u);
  std::uint64_t last = 0;
  for (const std::uint64_t tokens : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{65536}, max_choices / 4}) {
    problem.tokens = tokens;
    const std::uint64_t bytes = workspace_bytes(problem).value();
    EXPECT_GE(bytes, last);
    last = bytes;
  }
  problem.tokens = max_choices / 4 + 1;
  expect_refused(workspace_bytes(problem), "problem.tokens", problem.tokens, max_choices / 4, "too many");
  problem = from_logits();
  problem.k = 0;
  expect_refused(workspace_bytes(problem), "problem.k");
}

TEST(moe_rows, are_enough_for_any_choices) {
  EXPECT_EQ(most_rows(100, 64, 4), 400u);
  EXPECT_EQ(most_rows(0, 64, 4, 16), 0u);
  EXPECT_EQ(most_rows(1, 64, 1, 16), 16u);
  // Two experts of 1 and 17 choices fill 16 and 32 rows.
  EXPECT_EQ(most_rows(18, 2, 1, 16), 48u);
  EXPECT_EQ(most_rows(max_choices, max_experts, 1, max_alignment) % max_alignment, 0u);
  EXPECT_LT(most_rows(max_choices, max_experts, 1, max_alignment), std::uint64_t{1} << 31);
}

TEST(moe_combine_arguments, sizes) {
  combine_refuses("row_type", [](auto& p) { p.row_type = static_cast<float_type>(3); });
  combine_refuses("k", [](auto& p) { p.k = 0; });
  combine_refuses("k", [](auto& p) { p.k = max_k + 1; });
  combine_refuses("tokens", [](auto& p) { p.tokens = max_choices / p.k + 1; });
  combine_refuses("columns", [](auto& p) { p.columns = max_columns + 8; });
  combine_refuses("columns", [](auto& p) { p.columns = 60; });
  combine_refuses("columns", [](auto& p) {
    p.row_type = float_type::f32;
    p.columns = 62;
  });
  combine_refuses("rows", [](auto& p) { p.rows = std::uint64_t{1} << 31; });
}

TEST(moe_gradient_arguments, sizes_and_arrays) {
  gradients_refuse("row_type", [](auto& p) { p.row_type = static_cast<float_type>(3); });
  gradients_refuse("k", [](auto& p) { p.k = 0; });
  gradients_refuse("columns", [](auto& p) { p.columns = 60; });
  gradients_refuse("rows", [](auto& p) { p.rows = std::uint64_t{1} << 31; });
  gradients_refuse("row_of_choice", [](auto& p) { p.row_of_choice = nullptr; });
  gradients_refuse("weights", [](auto& p) { p.weights = somewhere<float>(2); });
  gradients_refuse("d_weights", [](auto& p) { p.d_weights = somewhere<float>(2); });
  gradients_refuse("d_out.address", [](auto& p) { p.d_out = {}; });
  gradients_refuse("values.address", [](auto& p) { p.values = {}; });
  gradients_refuse("values.pitch_bytes", [](auto& p) { p.values.pitch_bytes = 112; });
  gradients_refuse("d_values.address", [](auto& p) { p.d_values.address = 0x30008; });
}

TEST(moe_combine_arguments, arrays) {
  combine_refuses("row_of_choice", [](auto& p) { p.row_of_choice = nullptr; });
  combine_refuses("row_of_choice", [](auto& p) { p.row_of_choice = somewhere<std::int32_t>(2); });
  combine_refuses("weights", [](auto& p) { p.weights = somewhere<float>(2); });
  const struct {
    const char* name;
    gemm::matrix combine_problem::*member;
  } matrices[] = {
      {"values", &combine_problem::values}, {"base", &combine_problem::base}, {"out", &combine_problem::out}};
  for (const auto& each : matrices) {
    const auto refuses = [&](const char* member, const gemm::matrix& bad) {
      combine_refuses(std::string{each.name} + member, [&](auto& p) { p.*each.member = bad; });
    };
    refuses(".address", {0x10008, 128});
    refuses(".address", {std::uint64_t{1} << 57, 128});
    refuses(".pitch_bytes", {0x10000, 112});
    refuses(".pitch_bytes", {0x10000, 136});
    refuses(".pitch_bytes", {0x10000, std::uint64_t{1} << 41});
  }
  combine_refuses("values.address", [](auto& p) { p.values = {}; });
  combine_refuses("out.address", [](auto& p) { p.out = {}; });
}

TEST(moe_combine_arguments, no_tokens_and_no_columns_need_nothing) {
  combine_problem problem;
  problem.k = 1;
  EXPECT_TRUE(combine(problem, run_in({})).has_value());
  problem.tokens = 10;
  EXPECT_TRUE(combine(problem, run_in({})).has_value());
}

/// `call` takes a run, and refuses nothing else.
template <class Call>
void expect_run_refused(const Call& call, const run& good) {
  const auto refused = [&](const char* name, const std::function<void(run&)>& spoil) {
    run bad = good;
    spoil(bad);
    expect_refused(call(bad), name);
  };
  const address_window window{0, ~std::uint64_t{0}};
  refused("statuses", [](run& r) { r.statuses = somewhere<choice_status>(2); });
  refused("header", [](run& r) { r.header = somewhere<batch_header>(8); });
  refused("check", [](run& r) { r.check = static_cast<fault_check>(3); });
  refused("windows", [&](run& r) { r.windows = {&window, 1}; });
}

TEST(moe_run, is_refused_by_both) {
  const route_problem problem = from_logits();
  expect_run_refused([&](const run& with) { return route(problem, {}, with); }, good_run(problem));
  expect_run_refused([](const run& with) { return combine(sums(), with); }, run_in({}));
}

TEST(moe_status, has_words) {
  EXPECT_EQ(to_string(choice_status{}), "good");
  EXPECT_EQ(to_string(choice_status{choice_status::empty_bit}), "empty");
  EXPECT_EQ(to_string(choice_status{static_cast<std::uint32_t>(fault::expert)}),
            "expert (there is no expert of this number)");
  EXPECT_EQ(to_string(choice_status{static_cast<std::uint32_t>(fault::capacity)}),
            "capacity (its row would be past the last one)");
  EXPECT_EQ(to_string(choice_status{static_cast<std::uint32_t>(fault::row)}), "index (there is no row of this number)");
}

}  // namespace
}  // namespace tmap::moe::testing
