// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/convert.hpp"

namespace tmap::interop {
namespace {

static_assert(mirrors(TMAP_FLOAT_F32, moe::float_type::f32) && mirrors(TMAP_FLOAT_BF16, moe::float_type::bf16));
static_assert(mirrors(TMAP_FLOAT_F16, moe::float_type::f16));
static_assert(mirrors(TMAP_SCORING_SOFTMAX_THEN_TOP_K, moe::scoring::softmax_then_top_k));
static_assert(mirrors(TMAP_SCORING_TOP_K_THEN_SOFTMAX, moe::scoring::top_k_then_softmax));
static_assert(mirrors(TMAP_SCORING_SIGMOID, moe::scoring::sigmoid));
static_assert(mirrors(TMAP_GROUP_SCORE_LARGEST, moe::group_scoring::largest));
static_assert(mirrors(TMAP_GROUP_SCORE_SUM_OF_TWO_LARGEST, moe::group_scoring::sum_of_two_largest));

moe::expert_groups groups_of(const tmap_expert_groups& from) {
  const bool are_zeros = (from.count | from.chosen) == 0;
  return {.count = are_zeros ? 1 : from.count,
          .chosen = are_zeros ? 1 : from.chosen,
          .score = static_cast<moe::group_scoring>(from.score)};
}

moe::logits logits_of(const tmap_choices& from) {
  return {.values = library_of(from.values),
          .type = static_cast<moe::float_type>(from.type),
          .scoring = static_cast<moe::scoring>(from.scoring),
          .bias = from.bias,
          .groups = groups_of(from.groups),
          .renormalise = from.renormalise != 0,
          .scale = from.scale == 0 ? 1 : from.scale};
}

struct other_member {
  const char* name;
  bool is_set;
};

moe::expert_weights weights_of(const tmap_expert_weights& from) {
  return {.values = library_of(from.values),
          .group_pitch_bytes = from.group_pitch_bytes,
          .addresses = from.addresses,
          .bias = from.bias,
          .scales = library_of(from.scales)};
}

bool has_groups(const tmap_expert_groups& groups) {
  return (groups.count | groups.chosen | groups.score) != 0;
}

}  // namespace

void check_members(arguments& all, const tmap_route_problem& problem, const support::argument& name) {
  const tmap_choices& from = problem.choices;
  const support::argument choices = name.member("choices");
  all.enumerator(from.kind, TMAP_CHOICES_GIVEN, choices.member("kind"));
  all.enumerator(from.renormalise, 1, choices.member("renormalise"));
  all.equal(from.groups.padding, 0, choices.member("groups").member("padding"), "is {found}; it must be {allowed}");
  const bool are_given = from.kind == TMAP_CHOICES_GIVEN;
  const other_member of_logits[] = {{"type", from.type != 0},
                                    {"values", (from.values.address | from.values.pitch_bytes) != 0},
                                    {"scoring", from.scoring != 0},
                                    {"scale", from.scale != 0},
                                    {"bias", from.bias != nullptr},
                                    {"groups", has_groups(from.groups)},
                                    {"renormalise", from.renormalise != 0}};
  const other_member of_given[] = {
      {"bytes", from.bytes != 0}, {"ids", from.ids != nullptr}, {"weights", from.weights != nullptr}};
  for (const other_member& other :
       are_given ? cuda::std::span<const other_member>{of_logits} : cuda::std::span<const other_member>{of_given}) {
    if (other.is_set) all.refuse(choices.member(other.name), "belongs to the other kind of choices; it must be 0");
  }
}

void check_members(arguments& all, const tmap_layer_problem& problem, const support::argument& name) {
  const support::argument routing = name.member("routing");
  all.structure(&problem.routing, routing);
  if (all) check_members(all, problem.routing, routing);
  all.enumerator(problem.gate.backward, 1, name.member("gate").member("backward"));
  all.enumerator(problem.powers_of_two, 1, name.member("powers_of_two"));
}

void check_members(arguments& all, const tmap_layer_results& results, const support::argument& name) {
  all.structure(&results.routed, name.member("routed"));
}

moe::route_problem library_of(const tmap_route_problem& from) {
  moe::route_problem made{.tokens = from.tokens,
                          .experts = from.experts,
                          .k = from.k,
                          .choices = {},
                          .alignment = from.alignment == 0 ? 1 : from.alignment,
                          .rows = from.rows};
  if (from.choices.kind == TMAP_CHOICES_GIVEN) {
    made.choices = moe::given_choices{from.choices.ids, from.choices.bytes, from.choices.weights};
  } else {
    made.choices = logits_of(from.choices);
  }
  return made;
}

moe::route_results library_of(const tmap_route_results& from) {
  return {.ids = from.ids,
          .weights = from.weights,
          .counts = from.counts,
          .begins = from.begins,
          .ends = from.ends,
          .row_of_choice = from.row_of_choice,
          .token_of_row = from.token_of_row,
          .weight_of_row = from.weight_of_row};
}

moe::combine_problem library_of(const tmap_combine_problem& from) {
  return {.tokens = from.tokens,
          .k = from.k,
          .columns = from.columns,
          .row_type = static_cast<moe::float_type>(from.row_type),
          .rows = from.rows,
          .values = library_of(from.values),
          .row_of_choice = from.row_of_choice,
          .weights = from.weights,
          .base = library_of(from.base),
          .out = library_of(from.out)};
}

moe::layer_problem library_of(const tmap_layer_problem& from) {
  return {.type = static_cast<gemm::operand_type>(from.operand),
          .routing = library_of(from.routing),
          .width = from.width,
          .inner = from.inner,
          .x = library_of(from.x),
          .gate_up = weights_of(from.gate_up),
          .gate = library_of(from.gate),
          .down = weights_of(from.down),
          .powers_of_two = from.powers_of_two != 0,
          .base = library_of(from.base),
          .out = library_of(from.out)};
}

moe::layer_results library_of(const tmap_layer_results& from) {
  return {.routed = library_of(from.routed),
          .rows = library_of(from.rows),
          .activated = library_of(from.activated),
          .row_scales = from.row_scales,
          .activated_scales = from.activated_scales,
          .outputs = library_of(from.outputs),
          .gate_up_statuses = reinterpret_cast<gemm::group_status*>(from.gate_up_statuses),
          .down_statuses = reinterpret_cast<gemm::group_status*>(from.down_statuses)};
}

moe::combine_gradients library_of(const tmap_combine_gradients& from) {
  return {.tokens = from.tokens,
          .k = from.k,
          .columns = from.columns,
          .row_type = static_cast<moe::float_type>(from.row_type),
          .rows = from.rows,
          .values = library_of(from.values),
          .row_of_choice = from.row_of_choice,
          .weights = from.weights,
          .d_out = library_of(from.d_out),
          .d_values = library_of(from.d_values),
          .d_weights = from.d_weights};
}

}  // namespace tmap::interop
