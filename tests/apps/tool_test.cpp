// SPDX-License-Identifier: Apache-2.0
// The tool as a whole, and doctor.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tmap/encode.hpp>

#include <nlohmann/json.hpp>

#include "apps/run_tool.hpp"
#include "apps/sample_maps.hpp"

namespace tmap {
namespace {

using ::testing::HasSubstr;
using namespace testing;

TEST(tool, help_and_version_go_to_standard_output) {
  const tool_result help = run_tmap({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* command : {"inspect", "explain", "diff", "doctor", "pad", "bench"})
    EXPECT_THAT(help.out, HasSubstr(command));
  const tool_result version = run_tmap({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  std::ifstream file{TMAP_TEST_DATA "/../../VERSION"};
  std::string number;
  std::getline(file, number);
  EXPECT_EQ(version.out, "tmap " + number + "\n");
}

TEST(tool, a_question_it_does_not_know_is_one_sentence_and_exit_code_2) {
  for (const auto& [arguments, what] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "say what to do"}, {{"bogus"}, "bogus"}, {{"--bogus"}, "--bogus"}, {{"doctor", "-x"}, "-x"}}) {
    const tool_result run = run_tmap(arguments);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(run.out, "");
    EXPECT_TRUE(is_one_sentence_about(run.err, what)) << run.err;
  }
}

TEST(tool, says_when_its_output_cannot_be_written) {
  const tool_result run =
      run_program({"/bin/sh", "-c", "'" TMAP_TOOL "' inspect " + hex_of(sample_map()) + " > /dev/full"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(is_one_sentence_about(run.err, "standard output")) << run.err;
}

TEST(tool_doctor, says_what_works_here) {
  const bool has_gpu = query_device_limits().has_value();
  const tool_result run = run_tmap({"doctor"});
  EXPECT_EQ(run.exit_code, has_gpu ? 0 : 1);
  for (const char* item : {"CUDA runtime", "CUDA driver", "GPU", "cuTensorMapEncodeTiled", "encode kernel",
                           "moving kernel", "rules, codec, simulator"}) {
    EXPECT_THAT(run.out, HasSubstr(item));
  }
  EXPECT_THAT(run.out, HasSubstr(has_gpu ? "Everything works here." : "inspect, explain, diff"));
}

TEST(tool_doctor, json_gives_each_item_a_verdict) {
  const tool_result run = run_tmap({"doctor", "--json"});
  const auto answer = nlohmann::json::parse(run.out, nullptr, false);
  ASSERT_TRUE(answer.is_object());
  EXPECT_EQ(answer["everything_works"], run.exit_code == 0);
  ASSERT_EQ(answer["items"].size(), 9u);
  for (const auto& item : answer["items"]) {
    EXPECT_EQ(item["works"].get<bool>(), !item.contains("why")) << item;
  }
}

TEST(tool_bench, gemm_is_the_benchmark_and_its_options) {
  const tool_result run = run_tmap({"bench", "gemm", "--shapes"});
  if (!TMAP_HAS_BENCHMARKS) {
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_TRUE(is_one_sentence_about(run.err, "TMAP_BUILD_BENCHMARKS")) << run.err;
    return;
  }
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_TRUE(nlohmann::json::parse(run.out, nullptr, false).is_structured()) << run.out;
  EXPECT_THAT(run_tmap({"bench", "gemm", "--help"}).out, HasSubstr("--no-plans"));
  EXPECT_EQ(run_tmap({"bench", "gemm", "--no-such-option"}).exit_code, 2);
  EXPECT_EQ(run_tmap({"bench"}).exit_code, 2);
}

}  // namespace
}  // namespace tmap
