// SPDX-License-Identifier: Apache-2.0
// Tests the tool as a whole, and the command doctor.

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tmap/encode.hpp>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/run_tool.hpp"
#include "apps/sample_maps.hpp"

namespace tmap {
namespace {

using ::testing::HasSubstr;
using namespace testing;

TEST(tool, help_and_version_go_to_standard_output) {
  const tool_result help = run_tmap({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* command : {"inspect", "explain", "show", "diff", "doctor", "pad", "bench"})
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

TEST(tool, help_that_cannot_be_written_is_trouble) {
  const tool_result run = run_program({"/bin/sh", "-c", "'" TMAP_TOOL "' --help > /dev/full"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(is_one_sentence_about(run.err, "standard output")) << run.err;
}

TEST(tool, a_word_that_is_mistyped_brings_the_one_that_is_meant) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"explane"}, "tmap: tmap has no command 'explane'; did you mean 'explain'?\n"},
      {{"frobnicate"}, "tmap: tmap has no command 'frobnicate'\n"},
      {{"inspect", "--jsn"}, "tmap: inspect has no option --jsn; did you mean '--json'?\n"},
      {{"explain", "--swizle=128"}, "tmap: explain has no option --swizle; did you mean '--swizzle'?\n"},
      {{"bench"}, "tmap: bench needs a command: gemm\n"},
      {{"bench", "gem"}, "tmap: bench has no command 'gem'; did you mean 'gemm'?\n"},
  };
  for (const auto& [arguments, sentence] : cases) {
    const tool_result run = run_tmap(arguments);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(run.err, sentence);
  }
}

TEST(tool, help_is_a_command_too) {
  EXPECT_EQ(run_tmap({"help"}).out, run_tmap({"--help"}).out);
  EXPECT_EQ(run_tmap({"help", "explain"}).out, run_tmap({"explain", "--help"}).out);
  EXPECT_EQ(run_tmap({"help", "explane"}).exit_code, 2);
  EXPECT_EQ(run_tmap({"-v"}).out, run_tmap({"--version"}).out);
}

TEST(tool, every_help_has_examples_and_exit_codes) {
  for (const char* command : {"inspect", "explain", "show", "diff", "doctor", "pad", "bench", "generate"}) {
    const std::string help = run_tmap({command, "--help"}).out;
    EXPECT_THAT(help, HasSubstr("Examples:\n  # ")) << command;
    EXPECT_THAT(help, HasSubstr("Exit code")) << command;
  }
}

/// Returns the examples in a command's help that need no file.
std::vector<std::string> own_examples(const std::string& command) {
  std::istringstream help{run_tmap({command, "--help"}).out};
  std::vector<std::string> lines;
  for (std::string line; std::getline(help, line);) {
    const bool needs_more = line.find('|') != std::string::npos || line.find(".bin") != std::string::npos;
    if (line.starts_with("  tmap ") && !needs_more) lines.push_back(line.substr(7));
  }
  return lines;
}

TEST(tool, examples_of_explain_run) {
  const auto lines = own_examples("explain");
  ASSERT_GE(lines.size(), 4u);
  for (const std::string& line : lines) {
    const tool_result run = run_program({"/bin/sh", "-c", "'" TMAP_TOOL "' " + line});
    EXPECT_EQ(run.exit_code, line.ends_with("--fix") ? 1 : 0) << line << run.err;
    EXPECT_EQ(run.err, "") << line;
  }
}

TEST(tool, colours_are_for_terminals_and_those_who_ask) {
  const std::vector<std::string> spec = {"explain", "--type", "f16", "--dims", "64,8", "--box", "64,8"};
  auto coloured = spec;
  coloured.insert(coloured.end(), {"--color", "always"});
  EXPECT_THAT(run_tmap(spec).out, ::testing::Not(HasSubstr("\x1b[")));
  EXPECT_THAT(run_tmap(coloured).out, HasSubstr("\x1b[32mlegal\x1b[0m on"));
  coloured.back() = "sometimes";
  EXPECT_EQ(run_tmap(coloured).exit_code, 2);
}

TEST(tool_generate, texts_name_every_command_and_option) {
  for (const char* kind : {"man", "bash", "zsh", "fish"}) {
    const tool_result run = run_tmap({"generate", kind});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    for (const char* word : {"inspect", "explain", "diff", "doctor", "pad", "only", "keep", "simulator", "driver"}) {
      EXPECT_THAT(run.out, HasSubstr(word)) << kind;
    }
  }
  EXPECT_EQ(run_tmap({"generate", "tcsh"}).exit_code, 2);
}

TEST(tool_generate, bash_completes_commands_options_and_choices) {
  const auto completed = [](const std::string& words, int place) {
    return run_program({"/bin/bash", "-c",
                        "source <('" TMAP_TOOL "' generate bash); COMP_WORDS=(" + words +
                            "); COMP_CWORD=" + std::to_string(place) + "; _tmap; echo \"${COMPREPLY[*]}\""})
        .out;
  };
  EXPECT_EQ(completed("tmap in", 1), "inspect\n");
  EXPECT_EQ(completed("tmap inspect --on", 2), "--only-bad\n");
  EXPECT_EQ(completed("tmap explain --emit ''", 3), "c++ driver python\n");
  EXPECT_EQ(completed("tmap bench ge", 2), "gemm\n");
}

TEST(tool_generate, man_reads_the_page) {
  // Small system images have a script of that name, which prints a notice.
  if (std::system("man --version 2> /dev/null | grep -q '^man [0-9]'") != 0) GTEST_SKIP() << "there is no man";
  const tool_result run = run_program({"/bin/bash", "-c",
                                       "'" TMAP_TOOL "' generate man > /tmp/$$.1; LC_ALL=C MANWIDTH=90 man --warnings "
                                       "-E ascii -l /tmp/$$.1; code=$?; rm /tmp/$$.1; exit $code"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, HasSubstr("--only-bad"));
}

TEST(tool_doctor, says_what_works_here) {
  const bool has_gpu = query_device_limits().has_value();
  const tool_result run = run_tmap({"doctor"});
  EXPECT_EQ(run.exit_code, has_gpu ? 0 : 1);
  for (const char* item : {"CUDA runtime", "CUDA driver", "GPU", "cuTensorMapEncodeTiled", "encode kernel",
                           "moving kernel", "rules, codec, simulator"}) {
    EXPECT_THAT(run.out, HasSubstr(item));
  }
  EXPECT_THAT(run.out, HasSubstr(has_gpu ? "Everything works here." : "explain, show, inspect, diff and pad work"));
  EXPECT_THAT(run.out, HasSubstr("for drivers of CUDA " + std::to_string(CUDART_VERSION / 1000) + ".0"));
}

TEST(tool_doctor, names_a_driver_that_is_too_old) {
  const tool_result run =
      run_program({"/bin/sh", "-c", "LD_LIBRARY_PATH='" TMAP_OLD_DRIVER "' '" TMAP_TOOL "' doctor --json"});
  const auto answer = nlohmann::json::parse(run.out, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << run.err;
  const auto& driver = answer["items"][1];
  EXPECT_EQ(driver["name"], "CUDA driver");
  EXPECT_EQ(driver["detail"], "for CUDA 12.8");
  EXPECT_EQ(driver["status"], "driver_too_old") << driver;
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
