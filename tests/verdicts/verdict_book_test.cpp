// SPDX-License-Identifier: Apache-2.0
// Tests which deviations of the driver are expected, and which stop the comparison.
#include "verdicts/verdict_book.hpp"

#include <tmap/rule_info.hpp>

#include <gmock/gmock.h>

namespace tmap::testing {
namespace {

using ::testing::HasSubstr;

std::uint64_t breaking(std::initializer_list<rule> rules) {
  rule_set broken;
  for (const rule id : rules) broken.insert(id);
  return broken.bits;
}

TEST(verdict_book, rules_of_ours_alone_are_those_of_the_table) {
  EXPECT_EQ(rules_of_ours_alone().bits,
            breaking({rule::t05_address_null, rule::t25_interleave_32_swizzle, rule::t34_extent_range,
                      rule::t36_global_dim_copied, rule::t38_address_window, rule::w01_compute_capability}));
}

TEST(verdict_book, the_driver_may_accept_what_only_we_refuse) {
  EXPECT_TRUE(is_expected(breaking({rule::t05_address_null}), false));
  EXPECT_TRUE(is_expected(breaking({rule::t34_extent_range, rule::t36_global_dim_copied}), false));
  EXPECT_TRUE(is_expected(0, false));
}

TEST(verdict_book, the_driver_must_refuse_what_breaks_a_rule_of_both) {
  for (std::uint32_t i = 0; i < rule_count; ++i) {
    const rule_info& row = info(static_cast<rule>(i));
    if (!row.driver_refuses) continue;
    EXPECT_TRUE(is_expected(breaking({row.id}), true)) << row.name;
    EXPECT_FALSE(is_expected(breaking({row.id}), false)) << row.name;
    EXPECT_FALSE(is_expected(breaking({row.id, rule::t36_global_dim_copied}), false)) << row.name;
  }
  EXPECT_TRUE(is_expected(map_status::empty_bit, true));
  EXPECT_FALSE(is_expected(map_status::empty_bit, false)) << "a dim of 0 breaks a rule of both";
}

TEST(verdict_book, the_driver_must_not_refuse_what_we_accept) {
  EXPECT_FALSE(is_expected(0, true));
  EXPECT_FALSE(is_expected(breaking({rule::t05_address_null}), true)) << "nor for a rule that is not its own";
}

TEST(verdict_book, counts_and_reports) {
  verdict_book book;
  const std::uint64_t null = breaking({rule::t05_address_null});
  const std::uint64_t both = breaking({rule::t06_address_multiple_of_16, rule::t09_global_dim_range});
  EXPECT_TRUE(book.add(0, false));
  EXPECT_TRUE(book.add(null, false));
  EXPECT_TRUE(book.add(both, true));
  EXPECT_FALSE(book.add(both, false));
  book.add(map_status::empty_bit);
  verdict_book sum;
  sum.add(book);
  sum.add(book);
  EXPECT_EQ(sum.judged(), 10u);
  EXPECT_EQ(sum.bad(), 6u);
  EXPECT_EQ(sum.empty(), 2u);
  EXPECT_EQ(sum.alone(rule::t05_address_null), 2u);
  EXPECT_EQ(sum.broken_alone(), 2u);
  EXPECT_EQ(sum.driver_asked(), 8u);
  EXPECT_EQ(sum.driver_refused(), 2u);
  EXPECT_EQ(sum.deviations(), (std::map<std::uint64_t, std::uint64_t>{{null, 2}, {both, 2}}));
  const std::string report = sum.report("things");
  EXPECT_THAT(report, HasSubstr("things: 10 judged; 60.0 % bad (20.0 % break one rule alone), 20.0 % empty"));
  EXPECT_THAT(report, HasSubstr("T06 T09"));
  EXPECT_THAT(report, HasSubstr(info(rule::t05_address_null).sentence));
}

}  // namespace
}  // namespace tmap::testing
