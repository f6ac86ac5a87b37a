// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tmap/error.hpp>

#include <set>

#include "lib/spec/rule_error.hpp"
#include "support/rule_cases.hpp"

namespace tmap::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(text, says_where_what_and_how_much) {
  tensor_spec spec = plain_spec();
  spec.global_stride_bytes[1] = 9000;
  spec.box_dim[2] = 0;
  EXPECT_EQ(to_string(validate(spec)),
            "T13 global_stride_bytes[1] is 9000, must be a multiple of 16\n"
            "T17 box_dim[2] is 0, must be from 1 to 256");
}

TEST(text, addresses_are_hexadecimal_and_corners_signed) {
  EXPECT_EQ(to_string(violation{rule::t06_address_multiple_of_16, -1, 0x10008, 16}),
            "T06 global_address is 0x10008, must be a multiple of 16");
  EXPECT_EQ(to_string(violation{rule::i02_lower_corner_range, 1, static_cast<std::uint64_t>(-129), 128}),
            "I02 lower_corner[1] is -129, must be at least -128 and below 128");
}

TEST(text, every_message_formats) {
  for (std::uint32_t i = 0; i < rule_count; ++i) {
    const auto id = static_cast<rule>(i);
    const std::string text = to_string(violation{id, 3, 77, 88});
    EXPECT_THAT(text, StartsWith(std::string{info(id).name} + " "));
    EXPECT_THAT(text, Not(HasSubstr("{"))) << "a placeholder was not replaced";
    const std::string advice = remedy(violation{id, 3, 77, 88}, element_type::f16);
    EXPECT_FALSE(advice.empty()) << text;
    EXPECT_THAT(advice, Not(HasSubstr("{"))) << "a placeholder was not replaced";
  }
}

TEST(text, a_remedy_gives_the_number_to_use) {
  const auto advice = [](rule id, std::uint64_t found, std::uint64_t allowed) {
    return remedy(violation{id, 0, found, allowed}, element_type::f16);
  };
  EXPECT_EQ(advice(rule::t13_stride_multiple_of_16, 8200, 16), "use a pitch of 8208 bytes (4104 elements)");
  EXPECT_EQ(remedy(violation{rule::t13_stride_multiple_of_16, 0, 25, 16}, element_type::u4_align8),
            "use a pitch of 32 bytes");
  EXPECT_EQ(advice(rule::t06_address_multiple_of_16, 0x1008, 16), "use the address 0x1000 or 0x1010");
  EXPECT_EQ(advice(rule::t17_box_dim_range, 257, 256), "use 256 for box_dim[0]");
  EXPECT_EQ(advice(rule::t17_box_dim_range, 0, 256), "use 1 for box_dim[0]");
  EXPECT_EQ(advice(rule::t18_inner_box_multiple_of_16, 3, 8), "use an inner box of 8 elements");
  EXPECT_EQ(advice(rule::t18_inner_box_multiple_of_16, 12, 8), "use an inner box of 8 or 16 elements");
  EXPECT_EQ(advice(rule::u09_innermost_coordinate, static_cast<std::uint64_t>(-3), 8), "use the coordinate -8 or 0");
  EXPECT_EQ(advice(rule::i02_lower_corner_range, static_cast<std::uint64_t>(-129), 128), "use the corner -128");
  EXPECT_EQ(remedy(violation{rule{255}, -9, ~0ull, ~0ull}, element_type{99}), "no remedy");
}

TEST(text, modes_and_types_have_their_names) {
  EXPECT_EQ(to_string(violation{rule::t30_oob_fill, -1, 1, 0}),
            "T30 oob_fill is nan, must be zero for this element type");
  EXPECT_EQ(to_string(violation{rule::t02_element_type, -1, 14, 12}),
            "T02 type is u4_align16, must be from u8 to tf32_ftz on this GPU");
  EXPECT_EQ(to_string(violation{rule::t28_swizzle_value, -1, 99, 3}),
            "T28 swizzle is 99, must be none, 32B, 64B or 128B on this GPU");
}

TEST(text, nothing_broken) {
  EXPECT_EQ(to_string(violations{}), "no rule broken");
}

TEST(text, an_error_leads_with_the_first_error_and_names_the_others) {
  tensor_spec spec = plain_spec();
  spec.global_stride_bytes[0] = 0;
  spec.box_dim[0] = 3;
  spec.box_dim[1] = 0;
  const error e = detail::error_of(status::rule_broken, validate(spec));
  EXPECT_EQ(to_string(e),
            "the spec breaks a rule: T18 the inner box is 3 elements, must be a multiple of 4 (16 bytes) (also broken: "
            "T16, T17)");
}

TEST(text, every_status_has_its_own_name_and_sentence) {
  std::set<std::string> names;
  std::set<std::string> sentences;
  std::size_t last = 0;
  for (int code = 1; code < 256; ++code) {
    if (name(static_cast<status>(code)) == std::string{"unknown"}) continue;
    last = static_cast<std::size_t>(code);
    names.insert(name(static_cast<status>(code)));
    sentences.insert(to_string(error{.code = static_cast<status>(code)}));
  }
  EXPECT_GE(last, static_cast<std::size_t>(status::pageable_memory_in_capture));
  EXPECT_EQ(names.size(), last);
  EXPECT_EQ(sentences.size(), last);
}

TEST(text, an_error_leads_with_its_argument) {
  const error e{.code = status::pageable_memory_in_capture, .found = 0x7f10, .argument = "destination"};
  EXPECT_EQ(to_string(e),
            "`destination`: an array lies in pageable host memory, which a graph would read again at each replay: use "
            "pinned memory that outlives the graph, or device memory (the array at 0x7f10)");
}

TEST(text, a_reason_is_all_that_is_said_of_an_argument) {
  const error e{.code = status::invalid_argument,
                .found = 7,
                .allowed = 16,
                .argument = "boxes[2].columns",
                .reason = "is {found}; it must be a multiple of {allowed}"};
  EXPECT_EQ(to_string(e), "`boxes[2].columns` is 7; it must be a multiple of 16");
}

TEST(text, a_reason_without_an_argument_stands_alone) {
  const error e{.code = status::no_kernel_image, .found = 100, .allowed = 90, .reason = "has {found}, needs {allowed}"};
  EXPECT_EQ(to_string(e), "has 100, needs 90");
}

TEST(text, an_error_tells_its_numbers_also_where_one_is0) {
  EXPECT_THAT(to_string(error{.code = status::invalid_argument, .found = 0, .allowed = 7}),
              HasSubstr("found 0, allowed 7"));
  EXPECT_THAT(to_string(error{.code = status::invalid_argument, .found = 7, .allowed = 0}),
              HasSubstr("found 7, allowed 0"));
}

TEST(text, an_exhausted_pool_tells_where_its_slots_are) {
  const error e{.code = status::pool_exhausted,
                .found = 9,
                .slots = {.capacity = 15, .free = 1, .leased = 2, .pending = 4, .captured = 8}};
  EXPECT_THAT(to_string(e), HasSubstr("9 asked for; of 15 slots 1 are free, 2 leased, 4 pending, 8 captured"));
}

TEST(text, any_bits_make_text) {
  EXPECT_THAT(to_string(violation{rule{255}, -9, ~0ull, ~0ull}), StartsWith("? "));
  EXPECT_STREQ(name(status{200}), "unknown");
  EXPECT_THAT(to_string(error{.code = status{200}, .rules = {~0ull}, .first = rule{255}}), HasSubstr("unknown"));
}

}  // namespace
}  // namespace tmap::testing
