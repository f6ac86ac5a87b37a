// SPDX-License-Identifier: Apache-2.0
// Tests the codec against maps that a driver wrote and record_driver_maps recorded. The record must
// exist and be complete.

#include <gtest/gtest.h>
#include <tmap/decode.hpp>

#include "support/golden_file.hpp"

namespace tmap {
namespace {

using testing::to_text;

const std::string path = TMAP_TEST_DATA "/../golden/driver_maps.txt";

void expect_same_map(const testing::golden_map& golden) {
  const bool is_tiled = golden.kind == map_kind::tiled;
  const auto ours = is_tiled ? encode_bits(golden.spec.tensor) : encode_bits(golden.spec);
  ASSERT_TRUE(ours) << to_text(golden.spec);
  std::string differences;
  const auto found = diff(*ours, golden.map);
  ASSERT_TRUE(found);
  for (const field_difference& d : *found) {
    differences += d.field + ": ours " + d.first + ", the driver's " + d.second + "\n";
  }
  ASSERT_EQ(differences, "") << to_text(golden.spec);
}

TEST(golden_maps, the_codec_writes_what_the_driver_wrote) {
  const auto maps = testing::read_golden_file(path);
  ASSERT_GE(maps.size(), 500u) << path;
  for (const auto& golden : maps) expect_same_map(golden);
}

TEST(golden_maps, decode_to_the_spec_the_driver_was_given) {
  const auto maps = testing::read_golden_file(path);
  ASSERT_GE(maps.size(), 500u) << path;
  for (const auto& golden : maps) {
    const auto decoded = decode(golden.map);
    ASSERT_TRUE(decoded) << testing::to_line(golden);
    ASSERT_EQ(decoded->kind, golden.kind);
    ASSERT_EQ(to_text(decoded->spec), to_text(testing::without_unused_axes(golden.spec.tensor)));
    ASSERT_EQ(decoded->channels_per_pixel, golden.spec.channels_per_pixel);
    ASSERT_EQ(decoded->pixels_per_column, golden.spec.pixels_per_column);
    for (int axis = 0; axis < 3; ++axis) {
      ASSERT_EQ(decoded->lower_corner[axis], golden.spec.lower_corner[axis]);
      ASSERT_EQ(decoded->upper_corner[axis], golden.spec.upper_corner[axis]);
    }
  }
}

TEST(golden_maps, lines_survive_writing_and_reading) {
  const auto maps = testing::read_golden_file(path);
  ASSERT_FALSE(maps.empty());
  for (const auto& golden : maps) {
    const auto again = testing::parse_golden_line(to_line(golden));
    ASSERT_TRUE(again);
    ASSERT_EQ(to_line(*again), to_line(golden));
  }
  EXPECT_FALSE(testing::parse_golden_line("0 7 2 4096"));
}

}  // namespace
}  // namespace tmap
