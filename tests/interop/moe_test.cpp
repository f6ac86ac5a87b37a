// SPDX-License-Identifier: Apache-2.0
// Tests routes and sums of experts in C as far as possible without a device: the conversions, and
// what is refused.
#include <tmap/moe.hpp>

#include <string>
#include <variant>

#include "interop/expect_matrix.hpp"
#include "interop/refuses_bad_structs.hpp"
#include "interop/routed_logits.hpp"
#include "lib/interop/convert.hpp"

namespace tmap::testing {
namespace {

tmap_route_problem from_ids() {
  tmap_route_problem made = sized<tmap_route_problem>();
  made.experts = 64;
  made.tokens = 65536;
  made.k = 4;
  made.choices.kind = TMAP_CHOICES_GIVEN;
  made.choices.bytes = 8;
  made.choices.ids = unread<void>(0x10000);
  made.choices.weights = unread<float>(0x20000);
  return made;
}

/// Returns what sums and their gradients have in common.
template <class Problem>
Problem sums() {
  Problem made = sized<Problem>();
  made.k = 4;
  made.tokens = 100;
  made.columns = 64;
  made.rows = 400;
  made.row_type = TMAP_FLOAT_F16;
  made.values = {0x10000, 128};
  made.row_of_choice = unread<std::int32_t>(0x20000);
  made.weights = unread<float>(0x30000);
  return made;
}

tmap_combine_problem combined() {
  tmap_combine_problem made = sums<tmap_combine_problem>();
  made.base = {0x40000, 144};
  made.out = {0x50000, 160};
  return made;
}

tmap_combine_gradients gradients() {
  tmap_combine_gradients made = sums<tmap_combine_gradients>();
  made.d_out = {0x40000, 144};
  made.d_values = {0x50000, 160};
  made.d_weights = unread<float>(0x60000);
  return made;
}

/// Expects what `sums` returned.
template <class Problem>
void expect_sums(const Problem& made) {
  EXPECT_EQ(made.k, 4u);
  EXPECT_EQ(made.tokens, 100u);
  EXPECT_EQ(made.columns, 64u);
  EXPECT_EQ(made.rows, 400u);
  EXPECT_EQ(made.row_type, moe::float_type::f16);
  expect_matrix(made.values, 0x10000, 128);
  EXPECT_EQ(made.row_of_choice, unread<std::int32_t>(0x20000));
  EXPECT_EQ(made.weights, unread<float>(0x30000));
}

TEST(c_moe, a_problem_of_logits_is_converted_whole) {
  const moe::route_problem made = interop::library_of(c_logits());
  EXPECT_EQ(made.experts, 64u);
  EXPECT_EQ(made.tokens, 1000u);
  EXPECT_EQ(made.k, 4u);
  EXPECT_EQ(made.alignment, 16u);
  EXPECT_EQ(made.rows, 512u);
  const auto& from = std::get<moe::logits>(made.choices);
  EXPECT_EQ(from.type, moe::float_type::bf16);
  expect_matrix(from.values, 0x10000, 128);
  EXPECT_EQ(from.scoring, moe::scoring::sigmoid);
  EXPECT_EQ(from.scale, 2.5f);
  EXPECT_EQ(from.bias, unread<float>(0x20000));
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
  EXPECT_EQ(from.ids, unread<void>(0x10000));
  EXPECT_EQ(from.bytes, 8u);
  EXPECT_EQ(from.weights, unread<float>(0x20000));
}

TEST(c_moe, results_are_converted_whole) {
  tmap_route_results given = sized<tmap_route_results>();
  given.ids = unread<std::int32_t>(0x10000);
  given.weights = unread<float>(0x20000);
  given.counts = unread<std::int32_t>(0x30000);
  given.begins = unread<std::int32_t>(0x40000);
  given.ends = unread<std::int32_t>(0x50000);
  given.row_of_choice = unread<std::int32_t>(0x60000);
  given.token_of_row = unread<std::int32_t>(0x70000);
  given.weight_of_row = unread<float>(0x80000);
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
  const moe::combine_problem made = interop::library_of(combined());
  expect_sums(made);
  expect_matrix(made.base, 0x40000, 144);
  expect_matrix(made.out, 0x50000, 160);
}

TEST(c_moe, gradients_are_converted_whole) {
  const moe::combine_gradients made = interop::library_of(gradients());
  expect_sums(made);
  expect_matrix(made.d_out, 0x40000, 144);
  expect_matrix(made.d_values, 0x50000, 160);
  EXPECT_EQ(made.d_weights, unread<float>(0x60000));
}

TEST(c_moe, gradients_are_refused_by_the_names_of_c) {
  tmap_combine_gradients bad = gradients();
  bad.row_type = 3;
  EXPECT_EQ(refused(tmap_moe_combine_backward(&bad, nullptr)), "problem.row_type");
  bad = gradients();
  bad.d_values.address = 8;
  EXPECT_EQ(refused(tmap_moe_combine_backward(&bad, nullptr)), "problem.d_values.address");
}

/// Calls `function` with a `check` that is refused after all other arguments. Maps that refusal to
/// success.
template <class Problem>
tmap_status without_check(tmap_status (*function)(const Problem*, const tmap_call*), const Problem* problem) {
  tmap_call call = sized<tmap_call>();
  call.check = 3;
  const tmap_status answer = function(problem, &call);
  return refused(answer) == "call.check" ? tmap_status{TMAP_OK} : answer;
}

TEST(c_moe, structs_are_checked) {
  const tmap_route_problem good = c_logits();
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
  const tmap_combine_problem sum = combined();
  const auto combine = [](const tmap_combine_problem* p) { return without_check(tmap_moe_combine, p); };
  EXPECT_EQ(combine(&sum), TMAP_OK);
  refuses_bad_structs<tmap_combine_problem>(sum, combine);
  const tmap_combine_gradients of_sum = gradients();
  const auto combine_backward = [](const tmap_combine_gradients* p) {
    return without_check(tmap_moe_combine_backward, p);
  };
  EXPECT_EQ(combine_backward(&of_sum), TMAP_OK);
  refuses_bad_structs<tmap_combine_gradients>(of_sum, combine_backward);
}

TEST(c_moe, members_are_refused_by_the_names_of_c) {
  const auto refuses = [](const tmap_route_problem& good, const std::string& member, const auto& spoil) {
    tmap_route_problem bad = good;
    spoil(bad);
    EXPECT_EQ(refused(tmap_moe_route(&bad, nullptr, nullptr)), "problem." + member);
  };
  for (const std::uint32_t wild : {3u, ~0u}) {
    refuses(c_logits(), "choices.kind", [&](auto& p) { p.choices.kind = wild; });
    refuses(c_logits(), "choices.type", [&](auto& p) { p.choices.type = wild; });
    refuses(c_logits(), "choices.scoring", [&](auto& p) { p.choices.scoring = wild; });
    refuses(c_logits(), "choices.renormalise", [&](auto& p) { p.choices.renormalise = wild; });
    refuses(c_logits(), "choices.groups.score", [&](auto& p) { p.choices.groups.score = wild; });
    refuses(c_logits(), "choices.groups.padding", [&](auto& p) { p.choices.groups.padding = wild; });
  }
  refuses(c_logits(), "choices.values.address", [](auto& p) { p.choices.values.address = 0; });
  refuses(c_logits(), "choices.groups.count", [](auto& p) { p.choices.groups.count = 7; });
  refuses(from_ids(), "choices.bytes", [](auto& p) { p.choices.bytes = 0; });
  refuses(from_ids(), "alignment", [](auto& p) { p.alignment = 3; });
  tmap_combine_problem sum = combined();
  sum.row_type = 3;
  EXPECT_EQ(refused(tmap_moe_combine(&sum, nullptr)), "problem.row_type");
  tmap_call call = sized<tmap_call>();
  call.workspace_bytes = 1;
  sum = combined();
  EXPECT_EQ(refused(tmap_moe_combine(&sum, &call)), "call.workspace_bytes");
}

TEST(c_moe, members_of_the_other_kind_must_be_zero) {
  const auto refuses = [](const tmap_route_problem& good, const std::string& member, const auto& spoil) {
    tmap_route_problem bad = good;
    spoil(bad.choices);
    EXPECT_EQ(refused(tmap_moe_route(&bad, nullptr, nullptr)), "problem.choices." + member);
  };
  refuses(c_logits(), "bytes", [](auto& c) { c.bytes = 4; });
  refuses(c_logits(), "ids", [](auto& c) { c.ids = unread<void>(0x10000); });
  refuses(c_logits(), "weights", [](auto& c) { c.weights = unread<float>(0x10000); });
  refuses(from_ids(), "type", [](auto& c) { c.type = 1; });
  refuses(from_ids(), "values", [](auto& c) { c.values.pitch_bytes = 1; });
  refuses(from_ids(), "scoring", [](auto& c) { c.scoring = 1; });
  refuses(from_ids(), "scale", [](auto& c) { c.scale = 1; });
  refuses(from_ids(), "bias", [](auto& c) { c.bias = unread<float>(0x10000); });
  refuses(from_ids(), "groups", [](auto& c) { c.groups.chosen = 1; });
  refuses(from_ids(), "renormalise", [](auto& c) { c.renormalise = 1; });
}

TEST(c_moe, workspace_and_rows_are_those_of_cpp) {
  std::uint64_t bytes = 77;
  tmap_route_problem problem = c_logits();
  EXPECT_EQ(refused(tmap_moe_workspace_bytes(&problem, nullptr)), "bytes");
  EXPECT_EQ(tmap_moe_workspace_bytes(&problem, &bytes), TMAP_OK);
  EXPECT_EQ(bytes, moe::workspace_bytes(interop::library_of(problem)).value());
  problem.k = 0;
  EXPECT_EQ(refused(tmap_moe_workspace_bytes(&problem, &bytes)), "problem.k");
  EXPECT_EQ(tmap_moe_most_rows(100, 64, 4, 16), moe::most_rows(100, 64, 4, 16));
  EXPECT_EQ(tmap_moe_most_rows(100, 64, 4, 0), 0u);
}

}  // namespace
}  // namespace tmap::testing
