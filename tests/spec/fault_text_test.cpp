// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tmap/faults.hpp>

#include <cstdint>
#include <set>
#include <string>

namespace tmap::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint32_t last_tensor_fault = static_cast<std::uint32_t>(moe::fault::capacity);
constexpr std::uint32_t last_group_fault = static_cast<std::uint32_t>(gemm::fault::c_row);

TEST(fault_text, statuses_in_words) {
  EXPECT_EQ(to_string(map_status{}), "good");
  EXPECT_EQ(to_string(map_status{map_status::empty_bit}), "empty");
  EXPECT_EQ(to_string(ragged::tensor_status{}), "good");
  EXPECT_EQ(to_string(ragged::tensor_status{ragged::tensor_status::empty_bit}), "empty");
  EXPECT_EQ(to_string(gemm::group_status{gemm::group_status::empty_bit}), "empty");
  EXPECT_EQ(to_string(ragged::tensor_status{static_cast<std::uint32_t>(ragged::fault::mismatch)}),
            "mismatch (its two sides differ in shape)");
  rule_set rules;
  rules.insert(rule::t06_address_multiple_of_16);
  rules.insert(rule::t38_address_window);
  const std::string text = to_string(map_status{rules.bits});
  EXPECT_THAT(text, HasSubstr("T06 (`global_address` is a multiple of 16), T38 ("));
}

TEST(fault_text, every_fault_has_words_of_its_own) {
  std::set<std::string> texts;
  std::uint32_t faults = 0;
  for (std::uint32_t bit = 1; bit <= last_tensor_fault; bit <<= 1, ++faults) {
    texts.insert(ragged::to_string(ragged::tensor_status{bit}));
  }
  for (std::uint32_t bit = 1; bit <= last_group_fault; bit <<= 1, ++faults) {
    texts.insert(gemm::to_string(gemm::group_status{bit}));
  }
  EXPECT_EQ(texts.size(), faults);
  for (const std::string& text : texts) {
    EXPECT_THAT(text, HasSubstr(" (")) << "a meaning";
    EXPECT_THAT(text, Not(HasSubstr("unknown")));
  }
  EXPECT_EQ(ragged::to_string(ragged::tensor_status{last_tensor_fault << 1}), "unknown bit 10");
  EXPECT_EQ(gemm::to_string(gemm::group_status{last_group_fault << 1}), "unknown bit 8");
  EXPECT_THAT(to_string(map_status{~std::uint64_t{0}}), HasSubstr("unknown bit 63"));
}

TEST(fault_text, every_call_has_a_name) {
  std::set<std::string> names;
  for (std::uint32_t call = 0; call < batch_call_count; ++call) names.insert(name(static_cast<batch_call>(call)));
  EXPECT_EQ(names.size(), batch_call_count);
  EXPECT_STREQ(name(static_cast<batch_call>(batch_call_count)), "unknown call");
}

TEST(fault_text, items_of_each_call) {
  EXPECT_EQ(items_of(batch_call::encode_batch), item_kind::map);
  EXPECT_EQ(items_of(batch_call::service_update), item_kind::map);
  EXPECT_EQ(items_of(batch_call::ragged_copy), item_kind::tensor);
  EXPECT_EQ(items_of(batch_call::ragged_scatter_rows), item_kind::row);
  EXPECT_EQ(items_of(batch_call::ragged_reduce_rows), item_kind::tensor);
  EXPECT_EQ(items_of(batch_call::gemm_rows), item_kind::group);
  EXPECT_EQ(items_of(batch_call::gemm_pointers), item_kind::group);
  EXPECT_EQ(items_of(batch_call::moe_route), item_kind::row);
  EXPECT_EQ(items_of(batch_call::moe_combine), item_kind::row);
  EXPECT_EQ(items_of(batch_call::moe_combine_backward), item_kind::row);
}

TEST(fault_text, reports) {
  EXPECT_EQ(to_string(fault_report{}), "no bad items");
  EXPECT_EQ(to_string(bad_item{}), "none");
  const fault_report report{3, 1, 0, 2, {batch_call::ragged_copy, 17, 3, 16}};
  EXPECT_EQ(to_string(report),
            "3 bad maps, 1 bad tensor, 2 bad groups; the first: ragged::copy (call 17): tensor 3: mismatch (its "
            "two sides differ in shape)");
  EXPECT_EQ(to_string(fault_report{0, 0, 5, 0, {}}), "5 bad row numbers");
}

TEST(fault_text, an_error_names_call_count_item_and_what_to_do) {
  error e{status::bad_items};
  e.found = 2;
  e.allowed = 1000;
  e.bad = {batch_call::gemm_rows, 4, 7, 1};
  const std::string text = to_string(e);
  EXPECT_THAT(text, HasSubstr("gemm::multiply of a row_problem (call 4): 2 of 1000 groups are bad"));
  EXPECT_THAT(text, HasSubstr("group 7: rows (it ends before it begins"));
  EXPECT_THAT(text, HasSubstr("docs/when_results_look_wrong.md"));
  e.found = 1;
  EXPECT_THAT(to_string(e), HasSubstr("1 of 1000 groups is bad"));
  e.bad.bits = static_cast<std::uint64_t>(gemm::fault::a_row);
  EXPECT_THAT(to_string(e), HasSubstr("1 item is bad, among them row number 7: a_row (A has no row"));
  e.bad.bits = static_cast<std::uint64_t>(gemm::fault::c_row);
  EXPECT_THAT(to_string(e), HasSubstr("1 item is bad, among them row number 7: c_row (C has no row"));
}

TEST(fault_text, an_errors_detail_is_told) {
  EXPECT_THAT(to_string(error{.argument = "TMAP_CHECK"}), ::testing::StartsWith("`TMAP_CHECK`: "));
}

}  // namespace
}  // namespace tmap::testing
