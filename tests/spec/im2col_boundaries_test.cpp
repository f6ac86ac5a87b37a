// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "support/rule_cases.hpp"

namespace tmap::testing {
namespace {

TEST(im2col_boundaries, im2col_corners_by_rank) {
  const std::int32_t limits[] = {32768, 128, 16};
  for (std::uint32_t rank = 3; rank <= 5; ++rank) {
    im2col_spec spec = plain_im2col_spec();
    spec.tensor.rank = rank;
    for (auto& dim : spec.tensor.global_dim) dim = 1ull << 17;
    for (std::uint32_t index = 0; index < 4; ++index) spec.tensor.global_stride_bytes[index] = 0;
    const std::int32_t limit = limits[rank - 3];
    spec.lower_corner[0] = -limit;
    spec.upper_corner[0] = limit - 1;
    EXPECT_TRUE(broken_rules(spec).empty()) << rank;
    spec.lower_corner[0] = -limit - 1;
    EXPECT_TRUE(broken_rules(spec).contains(rule::i02_lower_corner_range)) << rank;
    spec.lower_corner[0] = 0;
    spec.upper_corner[0] = limit;
    EXPECT_TRUE(broken_rules(spec).contains(rule::i03_upper_corner_range)) << rank;
  }
}

TEST(im2col_boundaries, channels_and_pixels_of_im2col) {
  const auto column = [](std::uint32_t channels, std::uint32_t pixels) {
    im2col_spec spec = plain_im2col_spec();
    spec.tensor.type = element_type::u8;
    spec.channels_per_pixel = channels;
    spec.pixels_per_column = pixels;
    const violations found = validate(spec);
    return std::string(found.empty() ? "legal" : info(found[0].id).name);
  };
  EXPECT_EQ(column(16, 1), "legal");
  EXPECT_EQ(column(256, 64), "legal");
  EXPECT_EQ(column(272, 64), "I05");
  EXPECT_EQ(column(16, 1024), "legal");
  EXPECT_EQ(column(16, 1025), "I06");
}

/// Returns the first error of a wide map.
std::string wide_verdict(const im2col_wide_spec& spec, const device_limits& limits = blackwell_limits()) {
  const violations found = validate(spec, limits);
  return found.empty() ? "legal" : info(found[0].id).name;
}

TEST(im2col_boundaries, wide_maps_are_of_blackwell) {
  const auto on = [](std::uint32_t compute_capability) {
    return wide_verdict(plain_im2col_wide_spec(), {compute_capability, blackwell_limits().shared_memory_bytes});
  };
  EXPECT_EQ(on(detail::packed_type_compute_capability), "legal");
  EXPECT_EQ(on(detail::packed_type_compute_capability - 1), "W01");
}

TEST(im2col_boundaries, wide_swizzles) {
  std::string legal;
  for (std::uint32_t mode = 0; mode <= 6; ++mode) {
    im2col_wide_spec spec = plain_im2col_wide_spec();
    spec.channels_per_pixel = 8;  // 32 bytes, which every swizzle holds
    spec.tensor.swizzle = swizzle{mode};
    const std::string found = wide_verdict(spec);
    EXPECT_TRUE(found == "legal" || found == "W03") << mode << ": " << found;
    if (found == "legal") legal += std::to_string(mode);
  }
  EXPECT_EQ(legal, "234");
}

TEST(im2col_boundaries, wide_corners) {
  const auto corners = [](std::int32_t lower, std::int32_t upper, std::uint32_t rank = 4) {
    im2col_wide_spec spec = plain_im2col_wide_spec();
    spec.tensor.rank = rank;
    spec.lower_corner_w = lower;
    spec.upper_corner_w = upper;
    return wide_verdict(spec);
  };
  EXPECT_EQ(corners(-32768, 32767), "legal");
  EXPECT_EQ(corners(-32769, 0), "W02");
  EXPECT_EQ(corners(0, 32768), "W02");
  EXPECT_EQ(corners(0, -31), "legal") << "32 pixels along W, one of them between the corners";
  EXPECT_EQ(corners(0, -32), "I04");
  EXPECT_EQ(corners(31, 0), "legal");
  EXPECT_EQ(corners(32, 0), "I04");
  EXPECT_EQ(corners(31, 0, 3), "legal") << "the smallest rank";
  EXPECT_EQ(corners(32, 0, 3), "I04");
}

TEST(im2col_boundaries, wide_columns_are_as_long_as_their_mode_says) {
  im2col_wide_spec spec = plain_im2col_wide_spec();
  const std::uint32_t pixel_bytes = spec.channels_per_pixel * 4;
  spec.pixels_per_column = 1024;
  EXPECT_EQ(wide_verdict(spec, {100, 1024 * pixel_bytes}), "legal");
  EXPECT_EQ(wide_verdict(spec, {100, 1024 * pixel_bytes - 1}), "T35");
  spec.mode = im2col_wide_mode::w128;
  EXPECT_EQ(wide_verdict(spec, {100, 128 * pixel_bytes}), "legal") << "128 pixels, independent of the count";
  EXPECT_EQ(wide_verdict(spec, {100, 128 * pixel_bytes - 1}), "T35");
}

TEST(im2col_boundaries, wide_mode_w128_ignores_pixels) {
  im2col_wide_spec spec = plain_im2col_wide_spec();
  spec.pixels_per_column = 0;
  EXPECT_TRUE(broken_rules(spec, blackwell_limits()).contains(rule::i06_pixels_range));
  spec.mode = im2col_wide_mode::w128;
  EXPECT_TRUE(broken_rules(spec, blackwell_limits()).empty());
}

}  // namespace
}  // namespace tmap::testing
