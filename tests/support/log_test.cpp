// SPDX-License-Identifier: Apache-2.0
#include "lib/support/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tmap::testing {
namespace {

using lines = std::vector<std::pair<log_level, std::string>>;

void keep_line(log_level level, const char* text, void* user) {
  static_cast<lines*>(user)->emplace_back(level, text);
}

class log_test : public ::testing::Test {
 protected:
  void TearDown() override { set_log_callback(nullptr, nullptr); }
};

TEST_F(log_test, the_callback_gets_every_level) {
  lines kept;
  set_log_callback(keep_line, &kept);
  support::log(log_level::debug, "one");
  support::log(log_level::error, "two {not a format}");
  EXPECT_EQ(kept, (lines{{log_level::debug, "one"}, {log_level::error, "two {not a format}"}}));
}

TEST_F(log_test, no_line_reaches_a_callback_that_was_replaced) {
  lines first;
  lines second;
  set_log_callback(keep_line, &first);
  set_log_callback(keep_line, &second);
  support::log(log_level::info, "text");
  EXPECT_TRUE(first.empty());
  EXPECT_EQ(second.size(), 1u);
}

/// An empty line stands for one that memory ran out for.
TEST_F(log_test, an_empty_line_is_left_out) {
  lines kept;
  set_log_callback(keep_line, &kept);
  support::log(log_level::error, "");
  EXPECT_TRUE(kept.empty());
}

TEST_F(log_test, the_default_is_standard_error_from_warning_on) {
  ::testing::internal::CaptureStderr();
  support::log(log_level::info, "quiet {}");
  support::log(log_level::warning, "loud {}");
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, ::testing::HasSubstr("loud {}"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("quiet")));
}

TEST_F(log_test, no_logger_is_registered) {
  support::log(log_level::debug, "anything");
  EXPECT_EQ(spdlog::get("tmap"), nullptr);
}

TEST_F(log_test, threshold) {
  EXPECT_EQ(support::log_threshold(nullptr), log_level::warning);
  EXPECT_EQ(support::log_threshold("debug"), log_level::debug);
  EXPECT_EQ(support::log_threshold("info"), log_level::info);
  EXPECT_EQ(support::log_threshold("error"), log_level::error);
  EXPECT_EQ(support::log_threshold("nonsense"), log_level::warning);
  EXPECT_GT(support::log_threshold("off"), log_level::error);
}

TEST_F(log_test, lines_of_different_threads_come_one_at_a_time) {
  lines kept;
  set_log_callback(keep_line, &kept);
  std::vector<std::thread> pool;
  for (int thread = 0; thread < 4; ++thread) {
    pool.emplace_back([] {
      for (int i = 0; i < 1000; ++i) support::log(log_level::info, "line");
    });
  }
  for (std::thread& thread : pool) thread.join();
  EXPECT_EQ(kept.size(), 4000u);
}

}  // namespace
}  // namespace tmap::testing
