// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/run_tool.hpp"
#include "apps/sample_maps.hpp"

namespace tmap {
namespace {

using namespace testing;

TEST(tool_diff, is_silent_about_equal_maps) {
  const temporary_folder folder;
  const tool_result run = run_tmap({"diff", hex_of(sample_map()), folder.file("same.bin", bytes_of(sample_map()))});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out + run.err, "");
  EXPECT_EQ(run_tmap({"diff", "--json", "-", hex_of(sample_map())}, bytes_of(sample_map())).out, "[]\n");
}

TEST(tool_diff, shows_each_field_that_differs_with_exit_code_1) {
  const tool_result run = run_tmap({"diff", hex_of(sample_map(7)), "-"}, bytes_of(sample_map(8)));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "global_dim[1]  7  8\n");
  EXPECT_EQ(run.err, "");
  const tool_result as_json = run_tmap({"diff", "--json", hex_of(sample_map(7)), hex_of(sample_map(8))});
  EXPECT_EQ(as_json.exit_code, 1);
  EXPECT_EQ(as_json.out, "[{\"field\":\"global_dim[1]\",\"first\":7,\"second\":8}]\n");
}

TEST(tool_diff, compares_arrays_pair_by_pair) {
  const temporary_folder folder;
  const std::string first =
      folder.file("first.bin", bytes_of(sample_map(1)) + bytes_of(sample_map(2)) + bytes_of(sample_map(3)));
  const std::string second =
      folder.file("second.bin", bytes_of(sample_map(1)) + bytes_of(sample_map(5)) + bytes_of(sample_map(9)));
  const tool_result run = run_tmap({"diff", first, second});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "map 1\nglobal_dim[1]  2  5\nmap 2\nglobal_dim[1]  3  9\n2 of 3 maps differ: 1, 2\n");
  const auto pairs = nlohmann::json::parse(run_tmap({"diff", "--json", first, second}).out);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[1]["map"], 2);
  EXPECT_EQ(pairs[1]["differences"][0]["second"], 9);
  EXPECT_EQ(run_tmap({"diff", first, first}).out, "");
  EXPECT_EQ(run_tmap({"diff", first, first}).exit_code, 0);
}

TEST(tool_diff, says_in_one_sentence_what_is_wrong_with_its_input) {
  const temporary_folder folder;
  const std::string hex = hex_of(sample_map());
  const std::string two = folder.file("two.bin", bytes_of(sample_map()) + bytes_of(sample_map()));
  expect_trouble(run_tmap({"diff", hex}), "second is required");
  expect_trouble(run_tmap({"diff", hex, two}), "two.bin: holds 2 tensor maps");
  expect_trouble(run_tmap({"diff", hex, "absent.bin"}), "absent.bin");
  expect_trouble(run_tmap({"diff", "-", "-"}, hex), "standard input can be one of the maps, not both");
}

}  // namespace
}  // namespace tmap
