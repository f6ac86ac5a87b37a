// SPDX-License-Identifier: Apache-2.0
#include "lib/stand_ins/fmt/format.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace {

TEST(stand_in_format, places_are_filled_in_their_order) {
  const char name[] = "box";
  EXPECT_EQ(fmt::format("{} of {}: {}, {}", 3u, -4, std::string{"dims"}, name), "3 of -4: dims, box");
  EXPECT_EQ(fmt::format("{}", std::uint64_t{18446744073709551615u}), "18446744073709551615");
}

TEST(stand_in_format, doubled_braces_stand_for_one) {
  EXPECT_EQ(fmt::format(R"({{"free":{}}})", 7), R"({"free":7})");
}

TEST(stand_in_format, hexadecimal_numbers_and_widths) {
  EXPECT_EQ(fmt::format("{:#x} {:#x}", 0u, 0x1ff0u), "0x0 0x1ff0");
  EXPECT_EQ(fmt::format("{:<6}|{:<2}|", std::string_view{"rank"}, "wide"), "rank  |wide|");
}

TEST(stand_in_format, names) {
  const std::string_view text = "is {found}, must be at most {allowed}, not {found}";
  EXPECT_EQ(fmt::format(fmt::runtime(text), fmt::arg("found", 9u), fmt::arg("allowed", 4u)),
            "is 9, must be at most 4, not 9");
}

TEST(stand_in_format, what_is_not_known_stays) {
  EXPECT_EQ(fmt::format("{} {other} {", 1), "1 {other} {");
}

}  // namespace
