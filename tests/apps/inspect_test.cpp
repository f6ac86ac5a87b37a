// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/run_tool.hpp"
#include "apps/sample_maps.hpp"

namespace tmap {
namespace {

using ::testing::HasSubstr;
using namespace testing;

void expect_sample(const tool_result& run) {
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(run.out, describe(sample_map()));
}

TEST(tool_inspect, reads_a_map_in_every_form) {
  const temporary_folder folder;
  const tensor_map map = sample_map();
  expect_sample(run_tmap({"inspect", hex_of(map)}));
  expect_sample(run_tmap({"inspect", "0x" + hex_of(map)}));
  expect_sample(run_tmap({"inspect", words_of(map)}));
  expect_sample(run_tmap({"inspect", folder.file("raw.bin", bytes_of(map))}));
  expect_sample(run_tmap({"inspect", folder.file("hex.txt", hex_of(map) + "\n")}));
  expect_sample(run_tmap({"inspect", "-"}, bytes_of(map)));
  expect_sample(run_tmap({"inspect", "-"}, words_of(map)));
}

TEST(tool_inspect, reads_a_debuggers_dump) {
  std::string dump;
  const tensor_map map = sample_map();
  for (int word = 0; word < 16; word += 2) {
    dump += fmt::format("{:#x} <map+{}>:\t{:#018x}\t{:#018x}\n", 0x7ffe0000 + 8 * word, 8 * word, map.words[word],
                        map.words[word + 1]);
  }
  expect_sample(run_tmap({"inspect", "-"}, dump));
}

TEST(tool_inspect, shows_an_array_of_maps) {
  const temporary_folder folder;
  const std::string file = folder.file("maps.bin", bytes_of(sample_map(1)) + bytes_of(sample_map(2)));
  const tool_result text = run_tmap({"inspect", file});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_EQ(text.out, "map 0\n" + describe(sample_map(1)) + "\nmap 1\n" + describe(sample_map(2)));
  const std::string broken = folder.file("broken.bin", bytes_of(sample_map()) + std::string(128, '\0'));
  EXPECT_EQ(run_tmap({"inspect", broken}).exit_code, 1) << "one of them is none";
  const tool_result json = run_tmap({"inspect", "--json", file});
  EXPECT_EQ(json.out, describe_json(sample_map(1)) + "\n" + describe_json(sample_map(2)) + "\n");
}

TEST(tool_inspect, bytes_that_are_no_map_are_shown_with_exit_code_1) {
  const tool_result run = run_tmap({"inspect", std::string(256, '0')});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("refused"));
}

TEST(tool_inspect, says_in_one_sentence_what_is_wrong_with_its_input) {
  const temporary_folder folder;
  const std::string hex = hex_of(sample_map());
  expect_trouble(run_tmap({"inspect"}), "map is required");
  expect_trouble(run_tmap({"inspect", "no_such_file.bin"}), "no_such_file.bin: no such file");
  expect_trouble(run_tmap({"inspect", hex.substr(2)}), "127 bytes are no whole number");
  expect_trouble(run_tmap({"inspect", hex.substr(1)}), "no hex digits of a tensor map");
  expect_trouble(run_tmap({"inspect", folder.file("empty", "")}), "it is empty");
  expect_trouble(run_tmap({"inspect", "-"}), "standard input: holds no tensor map");
  expect_trouble(run_tmap({"inspect", folder.file("short.bin", bytes_of(sample_map()).substr(1))}), "short.bin: 127");
  expect_trouble(run_tmap({"inspect", "/tmp"}), "/tmp: is a folder");
  const std::string misspelt = 'g' + hex.substr(1);  // 256 characters, which are no two raw maps
  expect_trouble(run_tmap({"inspect", folder.file("misspelt.txt", misspelt)}), "misspelt.txt: is text, and not");
  expect_trouble(run_tmap({"inspect", "-"}, describe(sample_map())), "standard input: is text, and not");
  expect_trouble(run_tmap({"inspect", hex, "--yaml"}), "--yaml");
  expect_trouble(run_tmap({"inspect", hex, hex}), "not expected");
}

}  // namespace
}  // namespace tmap
