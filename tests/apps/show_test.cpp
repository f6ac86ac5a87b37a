// SPDX-License-Identifier: Apache-2.0
// `tmap show`: what it draws of specs and maps, and its exit codes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "apps/markup.hpp"
#include "apps/run_tool.hpp"
#include "apps/sample_maps.hpp"

namespace tmap {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing;

const std::vector<std::string> spec_flags{"--type", "f16", "--dims", "100,70", "--strides", "256", "--box", "64,32"};

tool_result show(std::vector<std::string> more = {}, std::vector<std::string> flags = spec_flags) {
  flags.insert(flags.begin(), "show");
  flags.insert(flags.end(), more.begin(), more.end());
  return run_tmap(flags);
}

std::string content_of(const std::string& path) {
  std::ifstream file{path};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(tool_show, draws_a_spec_to_the_terminal) {
  const tool_result run = show({"--swizzle", "128"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("2 x 3 boxes of 64 x 32"));
  EXPECT_THAT(run.out, HasSubstr("global_dim[1]           4: 32-63              70\n"));
  EXPECT_THAT(run.out, HasSubstr("Shared memory after the load at (64, 64)\n"));
  EXPECT_THAT(run.out, HasSubstr("a column"));
  EXPECT_THAT(run.out, Not(HasSubstr("\x1b[")));
}

TEST(tool_show, loads_the_box_it_is_asked_for) {
  EXPECT_THAT(show({"--at", "0,32"}).out, HasSubstr("after the load at (0, 32)\n"));
  const tool_result before = show({"--at=-8,0"});
  EXPECT_EQ(before.exit_code, 0) << before.err;
  EXPECT_THAT(before.out, HasSubstr("   128    1,0f    1,1 "));
  expect_trouble(show({"--at", "3,0"}), "--at: the copy engine would raise an illegal instruction: U09");
  expect_trouble(show({"--at", "0"}), "--at: 1 given, but rank 2 needs 2");
  expect_trouble(show({"--at", "0,x"}), "--at: 'x' is no whole number");
  expect_trouble(show({"--at", "0,4294967296"}), "--at: '4294967296' is no whole number");
}

TEST(tool_show, takes_maps_and_specs_in_each_form) {
  const temporary_folder folder;
  const std::string json = run_tmap({"inspect", "--json", hex_of(sample_map())}).out;
  for (const tool_result& run :
       {run_tmap({"show", hex_of(sample_map())}), run_tmap({"show", folder.file("map.bin", bytes_of(sample_map()))}),
        run_tmap({"show", "-"}, words_of(sample_map())), run_tmap({"show", "-"}, json),
        run_tmap({"show", folder.file("spec.json", json)})}) {
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("f16 [64 x 100] at 0x7f0000001000\n"));
    EXPECT_THAT(run.out, HasSubstr("after the load at (0, 96)\n"));
  }
}

TEST(tool_show, a_broken_rule_is_drawn_and_is_a_no) {
  const tool_result run = show({}, {"--type", "f16", "--dims", "100,70", "--box", "64,300"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, HasSubstr("error   T13 global_stride_bytes[0] is 200"));
  EXPECT_THAT(run.out, HasSubstr("error   T17 box_dim[1] is 300"));
  EXPECT_THAT(run.out, HasSubstr("no load: the map cannot be used"));
  const tool_result noise = run_tmap({"show", std::string(256, 'f')});
  EXPECT_EQ(noise.exit_code, 1);
  EXPECT_THAT(noise.out, HasSubstr("The tensor map: 128 bytes"));
}

TEST(tool_show, writes_a_page_and_a_picture) {
  const temporary_folder folder;
  const tool_result run = show({"--html", folder.file("a.html"), "--svg", folder.file("a.svg")});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, Not(HasSubstr("■")));
  for (const char* file : {"a.html", "a.svg"}) {
    const auto all = elements_of(content_of(folder.file(file)));
    EXPECT_EQ(of_class(all, "byte").size(), 128u) << file;
    EXPECT_EQ(of_class(all, "read").size(), 3u) << file;
    EXPECT_EQ(of_class(all, "mark").size(), 2u) << file;  // the tensor's and the legend's
  }
  const tool_result broken =
      show({"--html", folder.file("b.html")}, {"--type", "u8", "--dims", "20,8", "--box", "16,8"});
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(content_of(folder.file("b.html")), HasSubstr("T13 global_stride_bytes[0] is 20"));
  expect_trouble(show({"--html", folder.file("absent/a.html")}), "absent/a.html");
}

TEST(tool_show, says_in_one_sentence_what_is_wrong) {
  expect_trouble(run_tmap({"show"}), "--type: must be given");
  expect_trouble(run_tmap({"show", "absent.json"}), "absent.json: no such file");
  expect_trouble(run_tmap({"show", "-"}, "{\"element_type\": "), "standard input: ");
  expect_trouble(run_tmap({"show", "-"}, "nonsense"), "standard input: is text, and not the bytes");
  expect_trouble(run_tmap({"show", "-"}, words_of(sample_map()) + words_of(sample_map())), "holds 2 tensor maps");
  expect_trouble(run_tmap({"show", hex_of(sample_map()), "--type", "f16"}), "--type: goes with no spec or map");
}

}  // namespace
}  // namespace tmap
