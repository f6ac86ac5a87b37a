// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/run_tool.hpp"
#include "apps/sample_maps.hpp"

namespace tmap {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing;

TEST(tool_explain, derives_packed_strides_and_shows_the_map) {
  const tool_result run = run_tmap({"explain", "--type", "f16", "--dims", "64,100", "--box", "64,8", "--swizzle", "128",
                                    "--address", "0x7f0000001000"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("packed strides of 128 bytes\n"));
  EXPECT_THAT(run.out, HasSubstr("legal on compute capability 9.0\n" + describe(sample_map())));
  EXPECT_THAT(run.out, HasSubstr("bytes per load          1024\n"));
}

TEST(tool_explain, what_inspect_writes_explain_reads) {
  const temporary_folder folder;
  const tool_result inspected = run_tmap({"inspect", "--json", hex_of(sample_map())});
  for (const tool_result& run : {run_tmap({"explain", "--json", "-"}, inspected.out),
                                 run_tmap({"explain", "--json", folder.file("spec.json", inspected.out)})}) {
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const auto answer = nlohmann::json::parse(run.out, nullptr, false);
    EXPECT_EQ(answer["legal"], true);
    EXPECT_EQ(answer["assumed"].size(), 0u);
    EXPECT_EQ(answer["map"], nlohmann::json::parse(describe_json(sample_map())));
    EXPECT_EQ(answer["words"].size(), 16u);
    EXPECT_EQ(answer["words"][1], fmt::format("{:#018x}", sample_map().words[1]));
    EXPECT_EQ(answer["tile_bytes"], 1024);
  }
}

TEST(tool_explain, tells_what_a_barrier_waits_for_and_what_a_tile_takes) {
  const tool_result run =
      run_tmap({"explain", "--type", "f16", "--dims", "64,100", "--box", "16,8", "--swizzle", "128"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("bytes per load          256\n"));
  EXPECT_THAT(run.out, HasSubstr("shared memory           1024, aligned to 1024\n"));
}

TEST(tool_explain, reads_element_strides_of_a_file) {
  const std::string spec = R"({"element_type":"f16","global_dim":[64,8],"box_dim":[64,8],"element_stride":[1,9]})";
  const tool_result run = run_tmap({"explain", "-"}, spec);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("T20 element_stride[1] is 9"));
}

TEST(tool_explain, rounds_packed_rows_up_to_bytes) {
  const tool_result run = run_tmap({"explain", "--type", "u4_align8", "--dims", "3,2", "--box", "32,2"});
  EXPECT_THAT(run.out, HasSubstr("packed strides of 2 bytes\n"));
}

TEST(tool_explain, names_every_broken_rule_at_once) {
  const tool_result run = run_tmap({"explain", "--type", "u32", "--dims", "0,8", "--box", "3,257", "--strides", "24"});
  EXPECT_EQ(run.exit_code, 1);
  for (const char* id : {"T09", "T13", "T17", "T18"}) EXPECT_THAT(run.out, HasSubstr(std::string{"error   "} + id));
  EXPECT_THAT(run.out, HasSubstr("not legal"));
  EXPECT_THAT(run.out, Not(HasSubstr("global_dim[0]           ")));
  EXPECT_EQ(run.err, "");
}

TEST(tool_explain, json_lists_rule_axis_found_and_allowed) {
  const tool_result run =
      run_tmap({"explain", "--json", "--type", "u8", "--dims", "16,8", "--box", "16,8", "--strides", "24"});
  EXPECT_EQ(run.exit_code, 1);
  const auto answer = nlohmann::json::parse(run.out, nullptr, false);
  ASSERT_EQ(answer["violations"].size(), 1u);
  EXPECT_EQ(answer["legal"], false);
  EXPECT_EQ(answer["violations"][0]["rule"], "T13");
  EXPECT_EQ(answer["violations"][0]["severity"], "error");
  EXPECT_EQ(answer["violations"][0]["axis"], 0);
  EXPECT_EQ(answer["violations"][0]["found"], 24);
  EXPECT_EQ(answer["violations"][0]["allowed"], 16);
}

TEST(tool_explain, takes_every_number_that_a_field_holds) {
  const std::string spec = R"({"element_type":"u8","global_dim":[18446744073709551615],)"
                           R"("box_dim":[4294967295],"global_address":"0x1000"})";
  const tool_result run = run_tmap({"explain", "-"}, spec);
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_THAT(run.out, HasSubstr("global_dim[0] is 18446744073709551615"));
  EXPECT_THAT(run.out, HasSubstr("box_dim[0] is 4294967295"));
}

TEST(tool_explain, a_warning_alone_is_legal) {
  const tool_result run = run_tmap({"explain", "--type", "u8", "--dims", "64,8", "--box", "16,8", "--strides", "16"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("warning T16"));
}

TEST(tool_explain, takes_a_version_as_people_and_compilers_write_it) {
  const std::vector<std::string> spec = {"explain", "--type", "f16",  "--dims",
                                         "64,8",    "--box",  "64,8", "--compute-capability"};
  const std::pair<const char*, const char*> cases[] = {
      {"9", "9.0"},      {"90", "9.0"},       {"9.0", "9.0"},        {"90a", "9.0"},  {"sm_90", "9.0"},
      {"sm_90a", "9.0"}, {"9.0a", "9.0"},     {"compute_90", "9.0"}, {"10", "10.0"},  {"100", "10.0"},
      {"10.3", "10.3"},  {"sm_103f", "10.3"}, {"12", "12.0"},        {"120", "12.0"}, {"sm_121a", "12.1"},
  };
  for (const auto& [word, version] : cases) {
    auto arguments = spec;
    arguments.push_back(word);
    const tool_result run = run_tmap(arguments);
    EXPECT_EQ(run.exit_code, 0) << word << ": " << run.err;
    EXPECT_THAT(run.out, HasSubstr(std::string{"on compute capability "} + version + "\n")) << word;
  }
  for (const char* word : {"8", "sm_80", "8.9", "50", "89"}) {
    auto arguments = spec;
    arguments.push_back(word);
    const tool_result run = run_tmap(arguments);
    EXPECT_EQ(run.exit_code, 2) << word;
    EXPECT_TRUE(is_one_sentence_about(run.err, "has no tensor maps")) << run.err;
  }
  for (const char* word : {"a", "sm_", "9.", ".0", "9.10", "1000", "100.0", "-9", "90b", "0x5a", "9.0.0"}) {
    auto arguments = spec;
    arguments.back() += "=" + std::string{word};
    const tool_result run = run_tmap(arguments);
    EXPECT_EQ(run.exit_code, 2) << word;
    EXPECT_TRUE(is_one_sentence_about(run.err, "is not a version such as")) << run.err;
  }
}

TEST(tool_explain, knows_later_gpus) {
  const std::vector<std::string> spec = {"explain", "--type", "f16", "--dims", "64,8", "--box", "64,8", "--swizzle"};
  auto on_hopper = spec;
  on_hopper.insert(on_hopper.end(), {"128B_atom_32B"});
  EXPECT_EQ(run_tmap(on_hopper).exit_code, 1);
  auto later = on_hopper;
  later.insert(later.end(), {"--compute-capability", "10.0"});
  const tool_result run = run_tmap(later);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("legal on compute capability 10.0\n"));
  EXPECT_THAT(run.out, HasSubstr("Bits as documents have them: only compute capability 9.0 was measured.\nkind "));
  EXPECT_THAT(run.out, HasSubstr(" 128B_atom_32B\n"));
  auto like_hopper = later;
  like_hopper[8] = "128B";
  EXPECT_THAT(run_tmap(like_hopper).out, HasSubstr("only compute capability 9.0 was measured.\nkind "));
}

TEST(tool_explain, packed_strides_that_overflow_break_a_rule) {
  const std::string most = "4294967296";
  const tool_result run =
      run_tmap({"explain", "--type", "u64", "--dims", most + "," + most + "," + most, "--box", "2,1,1"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("T14 global_stride_bytes[1] is 18446744073709551615"));
}

TEST(tool_explain, says_what_to_do_about_each_broken_rule) {
  const tool_result run = run_tmap({"explain", "--type", "f16", "--dims", "4100,4096", "--box", "64,257"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("must be a multiple of 16\n        use a pitch of 8208 bytes (4104 elements)\n"));
  EXPECT_THAT(run.out, HasSubstr("to 256\n        use 256 for box_dim[1]\n"));
}

TEST(tool_explain, names_modes_as_they_were_typed) {
  const tool_result run = run_tmap({"explain", "--type", "u32", "--dims", "64,8", "--box", "8,8", "--fill", "nan"});
  EXPECT_THAT(run.out, HasSubstr("T30 oob_fill is nan, must be zero for this element type\n"));
  const tool_result type = run_tmap({"explain", "--type", "u4_align8", "--dims", "64,8", "--box", "32,8"});
  EXPECT_THAT(type.out, HasSubstr("T02 type is u4_align8, must be from u8 to tf32_ftz on this GPU\n"));
}

TEST(tool_explain, finds_the_nearest_legal_spec) {
  const std::vector<std::string> spec = {"explain", "--fix",     "--type", "u32",    "--dims", "100,0,7",   "--box",
                                         "3,257,1", "--swizzle", "64",     "--fill", "nan",    "--address", "0x1008"};
  const tool_result run = run_tmap(spec);
  EXPECT_EQ(run.exit_code, 1) << "the spec that was given is not legal";
  for (const char* change : {"oob_fill: nan -> zero", "global_address: 0x1008 -> 0x1010", "global_dim[1]: 0 -> 1",
                             "box_dim[0]: 3 -> 4", "box_dim[1]: 257 -> 256"}) {
    EXPECT_THAT(run.out, HasSubstr(std::string{"change  "} + change + "\n"));
  }
  auto as_json = spec;
  as_json.push_back("--json");
  const auto nearest = nlohmann::json::parse(run_tmap(as_json).out)["nearest"];
  EXPECT_EQ(nearest["legal"], true);
  const tool_result again = run_tmap({"explain", "--json", "-"}, nearest["spec"].dump());
  EXPECT_EQ(again.exit_code, 0) << again.out;
  EXPECT_EQ(nlohmann::json::parse(again.out)["words"], nearest["words"]);
}

TEST(tool_explain, packed_strides_stay_packed_when_the_first_is_widened) {
  const tool_result run = run_tmap({"explain", "--fix", "--type", "f16", "--dims", "9,10,11,12", "--box", "8,1,1,1"});
  EXPECT_THAT(run.out, HasSubstr("change  global_stride_bytes[0]: 18 -> 32\n"));
  EXPECT_THAT(run.out, HasSubstr("change  global_stride_bytes[1]: 180 -> 320\n"));
  EXPECT_THAT(run.out, HasSubstr("change  global_stride_bytes[2]: 1980 -> 3520\n"));
}

TEST(tool_explain, a_spec_that_no_number_mends_is_said_to_be_so) {
  const tool_result run =
      run_tmap({"explain", "--fix", "--type", "f16", "--dims", "64,8", "--box", "64,8", "--address", "0"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("no legal spec is near: T05 global_address is null\n"));
}

TEST(tool_explain, writes_the_map_to_a_file) {
  const temporary_folder folder;
  const std::string file = folder.file("map.bin");
  const tool_result run = run_tmap({"explain", "--type", "f16", "--dims", "64,100", "--box", "64,8", "--swizzle", "128",
                                    "--address", "0x7f0000001000", "--out", file});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run_tmap({"inspect", file}).out, describe(sample_map()));
  const std::string none = folder.file("none.bin");
  EXPECT_EQ(run_tmap({"explain", "--type", "f16", "--dims", "65,2", "--box", "64,2", "--out", none}).exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(none)) << "there is no map to write";
  expect_trouble(run_tmap({"explain", "--type", "f16", "--dims", "64", "--box", "64", "--out", "/no/such/map.bin"}),
                 "/no/such/map.bin");
}

TEST(tool_explain, code_of_no_legal_spec_is_no_code) {
  const tool_result run = run_tmap({"explain", "--type", "f16", "--dims", "65,2", "--box", "64,2", "--emit", "c++"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("T13"));
  EXPECT_THAT(run.err, HasSubstr("add --fix"));
}

TEST(tool_explain, knows_im2col) {
  const std::vector<std::string> spec = {
      "explain",       "--type",     "f16", "--dims",   "64,28,28,8", "--lower=-1,-1",
      "--upper=-1,-1", "--channels", "64",  "--pixels", "128"};
  const tool_result run = run_tmap(spec);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, ContainsRegex("kind +im2col\n"));
  EXPECT_THAT(run.out, ContainsRegex("lower_corner\\[0\\] +-1\n"));
  EXPECT_THAT(run.out, HasSubstr("bytes per load          16384\n"));
  auto as_json = spec;
  as_json.push_back("--json");
  const std::string first = run_tmap(as_json).out;
  EXPECT_EQ(run_tmap({"explain", "-"}, run_tmap({"inspect", "--json", "-"}, first).out).exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(run_tmap({"explain", "--json", "-"}, first).out)["words"],
            nlohmann::json::parse(first)["words"]);
  expect_trouble(run_tmap({"explain", "--type", "f16", "--dims", "64,28,8", "--pixels", "8"}),
                 "--channels: must be given for im2col");
  auto broken = spec;
  broken.back() = "2000";
  broken.push_back("--fix");
  EXPECT_THAT(run_tmap(broken).out, HasSubstr("change  pixels_per_column: 2000 -> 1024\n"));
}

TEST(tool_explain, what_it_writes_is_read_back) {
  const std::vector<std::string> legal = {"explain", "--json", "--type", "u4_align16",           "--dims",
                                          "128,8",   "--box",  "128,8",  "--compute-capability", "10"};
  const tool_result first = run_tmap(legal);
  EXPECT_EQ(first.exit_code, 0) << first.out;
  const tool_result again = run_tmap({"explain", "--json", "-"}, first.out);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  auto expected = nlohmann::json::parse(first.out);
  expected["assumed"] = nlohmann::json::array();
  EXPECT_EQ(nlohmann::json::parse(again.out), expected);
  const tool_result inspected = run_tmap({"inspect", "--json", "-"}, first.out);
  EXPECT_EQ(nlohmann::json::parse(inspected.out)["words"], expected["words"]);
  EXPECT_EQ(run_tmap({"inspect", "--json", "-"}, inspected.out).out, inspected.out);
  const tool_result broken = run_tmap({"explain", "--json", "--type", "f16", "--dims", "65,2", "--box", "64,2"});
  EXPECT_EQ(run_tmap({"explain", "-"}, broken.out).exit_code, 1);
  expect_trouble(run_tmap({"inspect", "-"}, broken.out), "T13");
}

void expect_refusal(const std::vector<std::string>& arguments, const std::string& what, const std::string& in = {}) {
  std::vector<std::string> all{"explain"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  expect_trouble(run_tmap(all, in), what);
}

TEST(tool_explain, says_in_one_sentence_which_flag_is_wrong) {
  expect_refusal({}, "--type: must be given");
  expect_refusal({"--type", "f17", "--dims", "8", "--box", "8"}, "--type: 'f17' is not one of u8,");
  expect_refusal({"--type", "f16", "--box", "8"}, "--dims: must be given");
  expect_refusal({"--type", "f16", "--dims", "8"}, "--box: must be given");
  expect_refusal({"--type", "f16", "--dims", "8,8", "--box", "8"}, "--box: 1 given, but rank 2 needs 2");
  expect_refusal({"--type", "f16", "--dims", "8,8", "--box", "8,8", "--strides", "1,2"}, "--strides: 2 given");
  expect_refusal({"--type", "f16", "--dims", "8,-8", "--box", "8,8"}, "--dims: '-8' is not a whole number");
  expect_refusal({"--type", "f16", "--dims", "8", "--box", "4294967296"}, "--box: '4294967296' is not a whole number");
  expect_refusal({"--type", "f16", "--dims", "8", "--box", "8", "--swizzle", "96"}, "--swizzle: '96' is not one of");
  expect_refusal({"--type", "f16", "--dims", "8", "--box", "8", "--address", "0xzz"}, "--address: '0xzz'");
  expect_refusal({"--type", "f16", "--dims", "8", "--box", "8", "--compute-capability", "8.6"}, "no tensor maps");
  expect_refusal({"--type", "f16", "--frobnicate"}, "--frobnicate");
}

TEST(tool_explain, says_in_one_sentence_what_is_wrong_with_a_file) {
  expect_refusal({"absent.json"}, "absent.json: No such file");
  expect_refusal({"-"}, "standard input: is not valid JSON", "{\"element_type\": ");
  expect_refusal({"-"}, "is not valid JSON (line 2, column 16)", "{\n\"box_dim\": [64,],\n}");
  expect_refusal({"-"}, "\"colour\" is not a field of a spec (line 3, column 1)",
                 "{\"element_type\": \"f16\",\n\n\"colour\": 1}");
  expect_refusal({"-"}, "standard input: \"box_dim\": must be given", R"({"element_type":"f16","global_dim":[64]})");
  expect_refusal({"-"}, "standard input: must hold one JSON object", "[1]");
  expect_refusal({"-"}, "standard input: \"global_dim\" -1 is not a whole number", R"({"global_dim": [-1]})");
  expect_refusal({"-"}, "standard input: \"colour\" is not a field", R"({"colour": 1})");
  expect_refusal({"-"}, "standard input: \"swizzle\" must be a string", R"({"swizzle": 128})");
  expect_refusal({"-"}, "standard input: \"element_type\": must be given", "{}");
  expect_refusal({"-", "--type", "f16"}, "--type: cannot be combined with a spec file", "{}");
}

}  // namespace
}  // namespace tmap
