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

/// Returns the fields of a map and its words, as inspect --json prints them.
std::string json_line_of(const tensor_map& map) {
  auto object = nlohmann::ordered_json::parse(describe_json(map));
  for (const std::uint64_t word : map.words) object["words"].push_back(fmt::format("{:#018x}", word));
  return object.dump() + "\n";
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
  EXPECT_EQ(json.out, json_line_of(sample_map(1)) + json_line_of(sample_map(2)));
}

TEST(tool_inspect, shows_what_is_asked_for) {
  const temporary_folder folder;
  const std::string file =
      folder.file("maps.bin", bytes_of(sample_map(1)) + std::string(128, '\0') + bytes_of(sample_map(3)));
  const tool_result bad = run_tmap({"inspect", "--only-bad", file});
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_THAT(bad.out, ::testing::StartsWith("map 1\n"));
  EXPECT_THAT(bad.out, ::testing::Not(HasSubstr("map 2")));
  const tool_result named = run_tmap({"inspect", "--index", "0,2-2", file});
  EXPECT_EQ(named.exit_code, 0) << named.err;
  EXPECT_EQ(named.out, "map 0\n" + describe(sample_map(1)) + "\nmap 2\n" + describe(sample_map(3)));
  EXPECT_EQ(run_tmap({"inspect", "--only-bad", hex_of(sample_map())}).out, "");
}

TEST(tool_inspect, many_maps_are_a_table) {
  std::string bytes;
  for (std::uint64_t rows = 1; rows <= 3000; ++rows) bytes += bytes_of(sample_map(rows));
  const tool_result run = run_tmap({"inspect", "-"}, bytes + std::string(128, '\0'));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 1 + 3001);
  EXPECT_THAT(run.out, ::testing::ContainsRegex("\n    120  tiled +f16 +0x7f0000001000 +64x121 +64x8 +128B +ok\n"));
  EXPECT_THAT(run_tmap({"inspect", "--table", hex_of(sample_map())}).out, HasSubstr("64x100"));
}

TEST(tool_inspect, bytes_that_are_no_map_are_shown_with_exit_code_1) {
  const tool_result run = run_tmap({"inspect", std::string(256, '0')});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("refused"));
}

TEST(tool_inspect, says_in_one_sentence_what_is_wrong_with_its_input) {
  const temporary_folder folder;
  const std::string hex = hex_of(sample_map());
  expect_trouble(run_tmap({"inspect"}), "inspect: map is required (tmap help inspect shows more)");
  expect_trouble(run_tmap({"inspect", "no_such_file.bin"}), "no_such_file.bin: no such file");
  expect_trouble(run_tmap({"inspect", hex.substr(2)}), "127 bytes are not a whole number");
  expect_trouble(run_tmap({"inspect", hex.substr(1)}), "not the bytes of a tensor map");
  expect_trouble(run_tmap({"inspect", folder.file("empty", "")}), "it is empty");
  expect_trouble(run_tmap({"inspect", "-"}), "standard input: holds no tensor map");
  expect_trouble(run_tmap({"inspect", folder.file("short.bin", bytes_of(sample_map()).substr(1))}), "short.bin: 127");
  expect_trouble(run_tmap({"inspect", "/tmp"}), "/tmp: is a folder");
  const std::string misspelt = 'g' + hex.substr(1);  // 256 characters, which are not two raw maps
  expect_trouble(run_tmap({"inspect", folder.file("misspelt.txt", misspelt)}), "misspelt.txt: is text, and not");
  expect_trouble(run_tmap({"inspect", "-"}, describe(sample_map())), "standard input: is text, and not");
  expect_trouble(run_tmap({"inspect", hex, "--yaml"}), "--yaml");
  expect_trouble(run_tmap({"inspect", hex, "absent.bin", folder.file("raw.bin", bytes_of(sample_map()))}),
                 "no such file");
  expect_trouble(run_tmap({"inspect", "0x12", "34"}), "some of its numbers begin with 0x, others do not");
  expect_trouble(run_tmap({"inspect", "-"}, "00 10\n00 1x 20"), "(line 2, column 4: '1x')");
  expect_trouble(run_tmap({"inspect", "-"}, "{\"element_type\": \"f16\",}"), "line 1, column 24");
  expect_trouble(run_tmap({"inspect", "-"}, "{\"words\": [1]}"), "\"words\" must be 16 strings");
  expect_trouble(run_tmap({"inspect", hex, "--index", "1"}), "--index: 1 is not below the number of maps, 1");
  expect_trouble(run_tmap({"inspect", hex, "--index", "3-1"}), "--index: '3-1' is not a number or range");
}

}  // namespace
}  // namespace tmap
