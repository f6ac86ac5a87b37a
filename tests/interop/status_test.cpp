// SPDX-License-Identifier: Apache-2.0
#include <tmap/tmap.h>
#include <tmap/error.hpp>
#include <tmap/rule_info.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "lib/interop/call.hpp"
#include "lib/support/log.hpp"

namespace tmap::testing {
namespace {

using ::testing::HasSubstr;

std::string last_message() {
  char text[1024] = {};
  EXPECT_EQ(tmap_last_message(text, sizeof text, nullptr), TMAP_OK);
  return text;
}

TEST(c_status, has_the_names_of_every_status) {
  for (tmap_status code = 1; code < 256; ++code) {
    EXPECT_STREQ(tmap_status_name(code), name(static_cast<status>(code)));
  }
  EXPECT_STREQ(tmap_status_name(TMAP_OK), "ok");
  EXPECT_STREQ(tmap_status_name(TMAP_BATCH_BUSY), "batch_busy");
  EXPECT_STREQ(tmap_status_name(TMAP_GROUP_BUSY), "group_busy");
  for (const tmap_status code : {-1, 261, 511, 65536 + 1}) EXPECT_STREQ(tmap_status_name(code), "unknown");
}

/// A status that C does not know yet would have a name.
TEST(c_status, knows_the_last_status) {
  EXPECT_STREQ(tmap_status_name(TMAP_PEER_OVERFLOW), "peer_overflow");
  EXPECT_STREQ(tmap_status_name(TMAP_PEER_OVERFLOW + 1), "unknown");
}

TEST(c_status, the_version_is_the_projects) {
  const std::string version = std::to_string(TMAP_VERSION_MAJOR) + "." + std::to_string(TMAP_VERSION_MINOR) + "." +
                              std::to_string(TMAP_VERSION_PATCH);
  EXPECT_EQ(version, TMAP_PROJECT_VERSION);
  EXPECT_EQ(tmap_version(), static_cast<std::uint32_t>(TMAP_VERSION));
}

TEST(c_status, rules_have_names_and_sentences) {
  ASSERT_EQ(tmap_rule_count(), rule_count);
  for (std::uint32_t i = 0; i < rule_count; ++i) {
    EXPECT_STREQ(tmap_rule_name(i), info(static_cast<rule>(i)).name);
    EXPECT_STREQ(tmap_rule_sentence(i), info(static_cast<rule>(i)).sentence);
  }
  EXPECT_EQ(tmap_rule_name(rule_count), nullptr);
  EXPECT_EQ(tmap_rule_sentence(~0u), nullptr);
}

TEST(c_message, names_function_argument_and_reason) {
  tmap_tensor_map map{};
  EXPECT_EQ(tmap_encode(nullptr, &map), TMAP_INVALID_ARGUMENT);
  EXPECT_EQ(last_message(), "tmap_encode: `spec` is null; it must be an address that is a multiple of 8");
  tmap_tensor_spec spec{};
  spec.struct_size = 12;
  EXPECT_EQ(tmap_encode(&spec, &map), TMAP_INVALID_ARGUMENT);
  EXPECT_EQ(last_message(), "tmap_encode: `spec.struct_size` is 12; it must be 152, the struct's size in this library");
}

TEST(c_message, the_last_error_names_the_argument) {
  EXPECT_EQ(tmap_encode(nullptr, nullptr), TMAP_INVALID_ARGUMENT);
  tmap_error last{};
  last.struct_size = sizeof last;
  ASSERT_EQ(tmap_last_error(&last), TMAP_OK);
  EXPECT_STREQ(last.argument, "spec");
  EXPECT_EQ(tmap_template_destroy({0}), TMAP_INVALID_HANDLE);
  ASSERT_EQ(tmap_last_error(&last), TMAP_OK);
  EXPECT_STREQ(last.argument, "base");
}

TEST(c_message, tells_the_rule) {
  tmap_tensor_spec spec{};
  spec.struct_size = sizeof spec;
  tmap_tensor_map map{};
  ASSERT_EQ(tmap_encode_bits(&spec, &map), TMAP_RULE_BROKEN);
  EXPECT_THAT(last_message(), HasSubstr("tmap_encode_bits: the spec breaks a rule: T"));
  tmap_error last{};
  last.struct_size = sizeof last;
  ASSERT_EQ(tmap_last_error(&last), TMAP_OK);
  EXPECT_EQ(last.code, TMAP_RULE_BROKEN);
  EXPECT_NE(last.rules >> last.first_rule & 1, 0u);
}

TEST(c_message, is_of_its_thread) {
  EXPECT_EQ(tmap_template_destroy({0}), TMAP_INVALID_HANDLE);
  const std::string here = last_message();
  std::string there = "?";
  tmap_status code = -1;
  std::thread{[&] {
    there = last_message();
    tmap_error last{};
    last.struct_size = sizeof last;
    tmap_last_error(&last);
    code = last.code;
  }}.join();
  EXPECT_EQ(there, "");
  EXPECT_EQ(code, TMAP_OK);
  EXPECT_EQ(last_message(), here);
}

TEST(c_message, is_cut_to_its_buffer_and_asking_changes_nothing) {
  EXPECT_EQ(tmap_template_destroy({0}), TMAP_INVALID_HANDLE);
  const std::string whole = last_message();
  for (std::size_t capacity = 1; capacity <= whole.size() + 2; ++capacity) {
    std::vector<char> buffer(capacity + 8, 'x');
    std::size_t length = 0;
    const bool fits = capacity > whole.size();
    EXPECT_EQ(tmap_last_message(buffer.data(), capacity, &length), fits ? TMAP_OK : TMAP_BUFFER_TOO_SMALL);
    EXPECT_EQ(length, whole.size());
    EXPECT_EQ(std::string{buffer.data()}, whole.substr(0, capacity - 1));
    EXPECT_EQ(std::string(buffer.data() + capacity, 8), "xxxxxxxx");
  }
  std::size_t length = 0;
  EXPECT_EQ(tmap_last_message(nullptr, 0, &length), TMAP_OK);
  EXPECT_EQ(length, whole.size());
  EXPECT_EQ(tmap_last_message(nullptr, 8, &length), TMAP_INVALID_ARGUMENT);
  EXPECT_EQ(tmap_last_error(nullptr), TMAP_INVALID_ARGUMENT);
  EXPECT_EQ(last_message(), whole);
}

TEST(c_boundary, no_exception_gets_through) {
  EXPECT_EQ(interop::call("f", []() -> interop::answer { throw std::bad_alloc{}; }), TMAP_OUT_OF_MEMORY);
  EXPECT_THAT(last_message(), HasSubstr("an allocation failed"));
  EXPECT_EQ(interop::call("f", []() -> interop::answer { throw 5; }), TMAP_INTERNAL_ERROR);
  EXPECT_EQ(last_message(), "f: `tmap` met an exception that it does not know");
}

struct received {
  std::vector<std::pair<tmap_log_level, std::string>> lines;
};

void receive(tmap_log_level level, const char* text, void* user) {
  static_cast<received*>(user)->lines.emplace_back(level, text);
}

TEST(c_log, goes_to_the_callback_set_last) {
  received first;
  received second;
  ASSERT_EQ(tmap_set_log_callback(&receive, &first), TMAP_OK);
  support::log(log_level::debug, "one");
  ASSERT_EQ(tmap_set_log_callback(&receive, &second), TMAP_OK);
  support::log(log_level::error, "two");
  ASSERT_EQ(tmap_set_log_callback(nullptr, nullptr), TMAP_OK);
  support::log(log_level::debug, "three");
  ASSERT_EQ(first.lines.size(), 1u);
  EXPECT_EQ(first.lines[0], (std::pair<tmap_log_level, std::string>{0, "one"}));
  ASSERT_EQ(second.lines.size(), 1u);
  EXPECT_EQ(second.lines[0], (std::pair<tmap_log_level, std::string>{3, "two"}));
}

}  // namespace
}  // namespace tmap::testing
