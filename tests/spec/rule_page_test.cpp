// SPDX-License-Identifier: Apache-2.0
#include "spec/rule_page.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace tmap::testing {
namespace {

constexpr const char* page_path = TMAP_TEST_DATA "/../../docs/fields_and_rules.md";

std::string checked_in_page() {
  std::ifstream file{page_path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{}};
}

TEST(rule_page, equals_the_checked_in_page) {
  if (const char* write = std::getenv("TMAP_WRITE_DOCS"); write != nullptr && std::string{write} == "1") {
    std::ofstream{page_path, std::ios::binary} << rule_page();
  }
  EXPECT_EQ(checked_in_page(), rule_page()) << "docs/fields_and_rules.md differs from the rule table. To write it "
                                               "again: TMAP_WRITE_DOCS=1 ctest -R rule_page";
}

TEST(rule_page, every_cell_stays_in_its_row) {
  const std::string page = rule_page();
  std::size_t columns = 0;
  for (std::size_t begin = 0; begin < page.size();) {
    const std::size_t end = page.find('\n', begin);
    const std::string line = page.substr(begin, end - begin);
    const auto bars = static_cast<std::size_t>(std::count(line.begin(), line.end(), '|'));
    if (line.empty() || line[0] != '|') columns = 0;
    if (columns == 0) columns = bars;
    EXPECT_EQ(bars, columns) << line;
    begin = end + 1;
  }
}

TEST(rule_page, lists_each_error_that_the_driver_accepts) {
  const std::string page = rule_page();
  const std::string list = page.substr(page.find("## Where the driver's verdict differs"));
  for (const char* name : {"T05", "T25", "T34", "T36", "T38", "W01"}) {
    EXPECT_NE(list.find(std::string{"\n| "} + name + " | "), std::string::npos) << name;
  }
  constexpr std::ptrdiff_t head = 2;
  std::ptrdiff_t rows = 0;
  for (std::size_t at = list.find("\n|"); at != std::string::npos; at = list.find("\n|", at + 1)) ++rows;
  EXPECT_EQ(rows, head + 6);
}

}  // namespace
}  // namespace tmap::testing
