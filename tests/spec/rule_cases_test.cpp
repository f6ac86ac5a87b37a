// SPDX-License-Identifier: Apache-2.0
#include <tmap/patch_rules.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "lib/driver/map_driver.hpp"
#include "support/fake_runtime.hpp"
#include "support/rule_cases.hpp"

namespace tmap::testing {
namespace {

rule_set one(rule id) {
  rule_set set;
  set.insert(id);
  return set;
}

std::string names(rule_set rules) {
  std::string text;
  for (std::uint32_t i = 0; i < rule_count; ++i) {
    if (rules.contains(static_cast<rule>(i))) text += std::string{info(static_cast<rule>(i)).name} + " ";
  }
  return text;
}

TEST(rule_cases, each_breaks_its_rule_alone) {
  for (const rule_case& each : all_rule_cases()) {
    const violations found = validate_any(each.spec, each.limits);
    EXPECT_EQ(names(found.rules()), names(one(each.id))) << info(each.id).name << ": " << each.what;
  }
}

TEST(rule_cases, the_specs_they_change_break_nothing) {
  EXPECT_EQ(to_string(validate(plain_spec())), "no rule broken");
  EXPECT_EQ(to_string(validate(interleaved_spec(interleave::bytes_16))), "no rule broken");
  EXPECT_EQ(to_string(validate(interleaved_spec(interleave::bytes_32))), "no rule broken");
  EXPECT_EQ(to_string(validate(plain_im2col_spec())), "no rule broken");
  EXPECT_EQ(to_string(validate(plain_im2col_wide_spec(), blackwell_limits())), "no rule broken");
  for (const auto type : {element_type::u4_align8, element_type::u4_align16, element_type::u6_align16}) {
    EXPECT_EQ(to_string(validate(packed_type_spec(type), blackwell_limits())), "no rule broken") << name(type);
  }
}

rule_set outside_its_window() {
  const address_window window{plain_spec().global_address, plain_spec().global_address + 64};
  return check_address_windows(plain_spec(), &window, 1);
}

rule_set encode_on_fake_driver(CUresult answer) {
  fake_cuda cuda;
  cuda.answers = {answer, answer};
  driver::map_driver driver{fake_runtime()};
  const auto map = driver.encode(plain_spec());
  return map ? rule_set{} : map.error().rules;
}

/// Returns the cases of rules that no spec can break, but a use or the encode call can.
const std::map<rule, std::function<rule_set()>>& cases_beside_specs() {
  static constexpr std::int32_t misaligned[] = {1, 0, 0};
  static constexpr std::int32_t negative[] = {0, -1, 0};
  static const std::map<rule, std::function<rule_set()>> cases{
      {rule::t31_context_present, [] { return encode_on_fake_driver(CUDA_ERROR_INVALID_CONTEXT); }},
      {rule::t32_no_earlier_error, [] { return encode_on_fake_driver(CUDA_ERROR_ILLEGAL_ADDRESS); }},
      {rule::t38_address_window, outside_its_window},
      {rule::u01_shared_alignment, [] { return check_shared_address(plain_spec(), 64); }},
      {rule::u03_store_corner, [] { return check_store_corner(plain_spec(), negative); }},
      {rule::u06_reduction_type, [] { return check_reduction(plain_spec(), reduction::min); }},
      {rule::u07_instruction_rank, [] { return check_instruction_rank(plain_spec(), 2); }},
      {rule::u09_innermost_coordinate, [] { return check_load_corner(plain_spec(), misaligned); }},
  };
  return cases;
}

TEST(rule_cases, uses_and_calls_break_their_rule_alone) {
  for (const auto& [id, broken] : cases_beside_specs()) EXPECT_EQ(names(broken()), names(one(id)));
}

/// Types enforce these rules for every call and every spec.
TEST(rule_cases, types_keep_the_map_aligned_and_the_strides_present) {
  fake_cuda cuda;
  driver::map_driver driver{fake_runtime()};
  tensor_spec rank_1 = plain_spec();
  rank_1.rank = 1;
  ASSERT_TRUE(driver.encode(rank_1));
  ASSERT_TRUE(driver.encode(plain_im2col_spec()));
  for (const fake_call& call : cuda.calls) {
    EXPECT_TRUE(call.map_aligned_to_64) << "T01 " << call.function;
    EXPECT_TRUE(call.strides_present) << "T12 " << call.function;
  }
  EXPECT_EQ(cuda.calls.size(), 2u);
}

TEST(rule_cases, every_rule_has_a_case) {
  std::map<rule, int> cases{{rule::t01_map_alignment, 1}, {rule::t12_strides_present, 1}};
  for (const auto& [id, stage] :
       {std::pair{rule::t01_map_alignment, rule_stage::type}, std::pair{rule::t12_strides_present, rule_stage::type}}) {
    EXPECT_EQ(info(id).stage, stage) << "only rules that a type enforces may lack a breaking case";
  }
  for (const rule_case& each : all_rule_cases()) {
    EXPECT_EQ(info(each.id).stage, rule_stage::spec) << info(each.id).name;
    ++cases[each.id];
  }
  for (const auto& [id, broken] : cases_beside_specs()) ++cases[id];
  for (std::uint32_t i = 0; i < rule_count; ++i) {
    EXPECT_GT(cases[static_cast<rule>(i)], 0) << info(static_cast<rule>(i)).name << " has no case";
  }
}

TEST(rule_cases, all_broken_rules_are_listed_at_once) {
  tensor_spec spec = plain_spec();
  spec.global_address = 0x10008;
  spec.global_dim[1] = 0;
  spec.global_stride_bytes[0] = 1000;
  spec.box_dim[0] = 3;
  spec.box_dim[2] = 300;
  spec.element_stride[1] = 9;
  spec.l2_promotion = l2_promotion{9};
  EXPECT_EQ(names(validate(spec).rules()), "T06 T09 T13 T17 T18 T20 T29 ");
}

TEST(rule_cases, every_axis_is_listed) {
  tensor_spec spec = plain_spec();
  spec.rank = 5;
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) spec.global_dim[axis] = 0;
  std::uint32_t axes = 0;
  for (const violation& v : validate(spec)) {
    if (v.id == rule::t09_global_dim_range) axes |= 1u << v.axis;
  }
  EXPECT_EQ(axes, 0b11111u);
}

TEST(rule_cases, broken_rules_leaves_warnings_out) {
  tensor_spec spec = plain_spec();
  spec.global_stride_bytes[0] = 0;
  EXPECT_TRUE(validate(spec).rules().contains(rule::t16_stride_overlap));
  EXPECT_TRUE(broken_rules(spec).empty());
}

constexpr tensor_spec constant_spec{
    .global_address = 4096, .type = element_type::u8, .rank = 1, .global_dim = {100}, .box_dim = {32}};
static_assert(broken_rules(constant_spec).empty() && validate(constant_spec).empty());
static_assert(validate(tensor_spec{}).rules().contains(rule::t03_rank));

}  // namespace
}  // namespace tmap::testing
