// SPDX-License-Identifier: Apache-2.0
// Tests the seed of a run. Cases draw from it, the environment can set it, and a failure prints it.
// TMAP_SEEDED_CASES is the program that the test runs.
#include "support/run_seed.hpp"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/apps/run_tool.hpp"

namespace tmap::testing {
namespace {

/// `seed` holds arguments of env that set the seed in the environment.
tool_result run_of(const std::vector<std::string>& seed, const std::string& test) {
  std::vector<std::string> command{"/usr/bin/env"};
  command.insert(command.end(), seed.begin(), seed.end());
  command.insert(command.end(), {TMAP_SEEDED_CASES, "--gtest_filter=seeded_cases." + test});
  return run_program(command);
}
tool_result run_of(const std::string& seed, const std::string& test) {
  return run_of(std::vector{"TMAP_TEST_SEED=" + seed}, test);
}
tool_result fresh_run() {
  return run_of(std::vector<std::string>{"-u", "TMAP_TEST_SEED"}, "tell_what_they_draw");
}

/// Returns the rest of each line that begins with `start`.
std::vector<std::string> lines_behind(const std::string& start, const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) {
    if (line.rfind(start, 0) == 0) lines.push_back(line.substr(start.size()));
  }
  return lines;
}
std::vector<std::string> drawn(const tool_result& run) {
  return lines_behind("drawn: ", run.out);
}

TEST(run_seed, is_a_decimal_number_of32_bits_and_nothing_else) {
  EXPECT_EQ(seed_of("0"), 0u);
  EXPECT_EQ(seed_of("4294967295"), 4294967295u);
  for (const char* const text : {"", " 7", "7 ", "+7", "-1", "7a", "0x7", "seed", "4294967296", "7\n"}) {
    EXPECT_EQ(seed_of(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(run_seed, the_same_draws_the_same) {
  const std::vector<std::string> first = drawn(run_of("7", "tell_what_they_draw"));
  EXPECT_EQ(first.size(), 6u);
  EXPECT_EQ(drawn(run_of("7", "tell_what_they_draw")), first);
}

TEST(run_seed, every_case_draws_other_values_from_other_seeds) {
  std::set<std::string> all;
  for (const char* const seed : {"7", "8", "4294967295"}) {
    for (const std::string& line : drawn(run_of(seed, "tell_what_they_draw"))) all.insert(line);
  }
  EXPECT_EQ(all.size(), 18u);
}

/// Two runs draw the same seed once in 2^32 times.
TEST(run_seed, untold_it_is_fresh_and_what_a_run_tells_repeats_it) {
  const tool_result first = fresh_run();
  EXPECT_NE(drawn(first), drawn(fresh_run()));
  const std::vector<std::string> told = lines_behind("TMAP_TEST_SEED=", first.out);
  ASSERT_EQ(told.size(), 1u) << first.out;
  EXPECT_EQ(drawn(run_of(told[0], "tell_what_they_draw")), drawn(first));
}

TEST(run_seed, a_malformed_one_is_refused_before_any_test) {
  for (const char* const text : {"", "seed", "7a", "-1", "4294967296"}) {
    const tool_result run = run_of(text, "tell_what_they_draw");
    EXPECT_EQ(run.exit_code, 1) << '"' << text << '"';
    EXPECT_EQ(run.err, "TMAP_TEST_SEED is no decimal number of 32 bits: \"" + std::string{text} + "\"\n");
    EXPECT_EQ(run.out.find("[ RUN"), std::string::npos) << run.out;
  }
}

TEST(run_seed, a_failure_tells_it_last) {
  const tool_result run = run_of("7", "fail");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(lines_behind("TMAP_TEST_SEED=", run.out), (std::vector<std::string>{"7", "7"}));
  EXPECT_EQ(lines_behind("TMAP_TEST_SEED=", run_of("7", "tell_what_they_draw").out), std::vector<std::string>{"7"});
}

}  // namespace
}  // namespace tmap::testing
