// SPDX-License-Identifier: Apache-2.0
#include "lib/support/arguments.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "support/refusal.hpp"

namespace tmap::testing {
namespace {

using support::argument;
using support::arguments;

template <class T>
const T* at(std::uintptr_t address) {
  return reinterpret_cast<const T*>(address);
}

TEST(argument_names, are_written_as_the_caller_wrote_them) {
  const argument source{"source"};
  const argument tensors = source.member("tensors");
  EXPECT_STREQ(source.name().c_str(), "source");
  EXPECT_STREQ(tensors.member("global_dim")[3].name().c_str(), "source.tensors.global_dim[3]");
  EXPECT_STREQ(argument{"boxes"}[4294967295u].member("columns").name().c_str(), "boxes[4294967295].columns");
}

TEST(argument_names, are_cut_where_they_do_not_fit) {
  const std::string longest(argument_name::capacity, 'x');
  EXPECT_EQ(argument_name{longest}.view(), longest);
  EXPECT_EQ(argument_name{longest + "y"}.view(), longest);
  argument_name name{longest.substr(1)};
  name.append("yz");
  EXPECT_EQ(name.view(), longest.substr(1) + "y");
  EXPECT_TRUE(argument_name{}.empty());
}

/// Returns the message of one check of one argument.
std::string complaint_of(const std::function<void(arguments&)>& check) {
  arguments given;
  check(given);
  return given ? "" : to_string(given.complaint());
}

TEST(argument_checks, pointers) {
  const auto checked = [](std::uintptr_t address) {
    return complaint_of([=](arguments& given) { given.pointer(at<std::uint64_t>(address), "a"); });
  };
  EXPECT_EQ(checked(8), "");
  EXPECT_EQ(checked(0), "`a` is null; it must be an address that is a multiple of 8");
  EXPECT_EQ(checked(0x1004), "`a` is 0x1004; it must be an address that is a multiple of 8");
  EXPECT_EQ(complaint_of([](arguments& given) { given.pointer(at<char>(0), "a"); }),
            "`a` is null; it must be the address of the bytes to work on");
  EXPECT_EQ(complaint_of([](arguments& given) { given.optional_pointer(at<std::uint64_t>(0), "a"); }), "");
  EXPECT_EQ(complaint_of([](arguments& given) { given.optional_pointer(at<std::uint64_t>(4), "a"); }),
            "`a` is 0x4; it must be an address that is a multiple of 8");
}

TEST(argument_checks, numbers) {
  const auto range = [](std::uint64_t value) {
    return complaint_of([=](arguments& given) { given.range(value, 1, 5, "rank"); });
  };
  EXPECT_EQ(range(1) + range(5), "");
  EXPECT_EQ(range(0), "`rank` is 0; it must be at least 1");
  EXPECT_EQ(range(6), "`rank` is 6; it must be at most 5");
  const auto multiple = [](std::uint64_t value) {
    return complaint_of([=](arguments& given) { given.multiple(value, 16, "pitch"); });
  };
  EXPECT_EQ(multiple(0) + multiple(32), "");
  EXPECT_EQ(multiple(7), "`pitch` is 7; it must be a multiple of 16");
  const auto power = [](std::uint64_t value) {
    return complaint_of([=](arguments& given) { given.power_of_two(value, 64, "alignment"); });
  };
  EXPECT_EQ(power(1) + power(2) + power(64), "");
  for (const std::uint64_t value : {0, 3, 48, 128}) {
    EXPECT_EQ(power(value), "`alignment` is " + std::to_string(value) + "; it must be a power of two, at most 64");
  }
  const auto bytes = [](std::uint64_t value) {
    return complaint_of([=](arguments& given) { given.integer_bytes(value, "bytes"); });
  };
  EXPECT_EQ(bytes(4) + bytes(8), "");
  for (const std::uint64_t value : {0, 2, 5, 16}) {
    EXPECT_EQ(bytes(value), "`bytes` is " + std::to_string(value) + "; it must be 4 or 8");
  }
}

TEST(argument_checks, enumerators) {
  enum class color : std::uint32_t { red, green };
  const auto checked = [](color value) {
    return complaint_of([=](arguments& given) { given.enumerator(value, color::green, "color"); });
  };
  EXPECT_EQ(checked(color::red) + checked(color::green), "");
  EXPECT_EQ(checked(color{2}), "`color` is 2, which stands for nothing; it must be one of 0 to 1");
}

TEST(argument_checks, keep_the_first_complaint) {
  arguments given;
  EXPECT_TRUE(given);
  EXPECT_TRUE(given.outcome().has_value());
  given.at_most(5, 4, "first");
  given.at_most(6, 4, "second");
  given.add(result<void>{failure{error{.code = status::no_device}}});
  EXPECT_FALSE(given);
  expect_refused(given.outcome(), "first", 5, 4, "the first of three");
}

TEST(argument_checks, take_over_what_another_function_found) {
  arguments given;
  given.add(result<int>{3});
  EXPECT_TRUE(given);
  given.add(result<int>{failure{error{.code = status::no_device}}});
  ASSERT_FALSE(given);
  EXPECT_EQ(given.complaint().code, status::no_device);
}

}  // namespace
}  // namespace tmap::testing
