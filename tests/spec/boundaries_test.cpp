// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/rule_cases.hpp"

namespace tmap::testing {
namespace {

template <class Change>
std::string verdict(Change change, tensor_spec spec = plain_spec(), const device_limits& limits = hopper_limits()) {
  change(spec);
  const violations found = validate(spec, limits);
  return found.empty() ? "legal" : info(found[0].id).name;
}

std::string with_last_dim(std::uint64_t dim) {
  return verdict([&](auto& s) { s.global_dim[2] = dim; });
}

std::string with_last_stride(std::uint64_t stride) {
  return verdict([&](auto& s) { s.global_stride_bytes[1] = stride; });
}

TEST(Boundaries, GlobalDim) {
  EXPECT_EQ(with_last_dim(0), "T09");
  EXPECT_EQ(with_last_dim(1), "legal");
  EXPECT_EQ(with_last_dim(1ull << 31), "legal");
  EXPECT_EQ(with_last_dim((1ull << 31) + 1), "T36");
  EXPECT_EQ(with_last_dim(1ull << 32), "T36");
  EXPECT_EQ(with_last_dim((1ull << 32) + 1), "T09");
  EXPECT_EQ(with_last_dim(~0ull), "T09");
}

TEST(Boundaries, GlobalStride) {
  EXPECT_EQ(with_last_stride((1ull << 40) - 16), "legal");
  EXPECT_EQ(with_last_stride(1ull << 40), "T14");
  EXPECT_EQ(with_last_stride(8192), "legal");
  EXPECT_EQ(with_last_stride(8176), "T16");
  EXPECT_EQ(with_last_stride(0), "T16");
  EXPECT_EQ(with_last_stride(8208), "legal");
  EXPECT_EQ(with_last_stride(8207), "T13");
}

TEST(Boundaries, StrideOfASizeOneDimensionIsNeverAnOverlap) {
  EXPECT_EQ(verdict([](auto& s) {
              s.global_dim[2] = 1;
              s.global_stride_bytes[1] = 0;
            }),
            "legal");
}

TEST(Boundaries, StridesBeyondTheRankAreIgnored) {
  EXPECT_EQ(verdict([](auto& s) {
              s.rank = 2;
              s.global_stride_bytes[1] = 7;
              s.global_dim[2] = 0;
              s.box_dim[2] = 0;
              s.element_stride[2] = 0;
            }),
            "legal");
}

TEST(Boundaries, Box) {
  const auto box = [](std::uint32_t extent) { return verdict([&](auto& s) { s.box_dim[1] = extent; }); };
  EXPECT_EQ(box(0), "T17");
  EXPECT_EQ(box(1), "legal");
  EXPECT_EQ(box(256), "legal");
  EXPECT_EQ(box(257), "T17");
}

TEST(Boundaries, InnerBoxIsAMultipleOf16BytesOfEveryType) {
  for (std::uint32_t type = 0; type < hopper_element_type_count; ++type) {
    const auto id = static_cast<element_type>(type);
    const auto unit = static_cast<std::uint32_t>(16 / element_bytes(id));
    const auto inner = [&](std::uint32_t extent) {
      return verdict([&](auto& s) {
        s.type = id;
        s.global_stride_bytes[0] = 1024;
        s.global_stride_bytes[1] = 65536;
        s.box_dim[0] = extent;
      });
    };
    EXPECT_EQ(inner(unit), "legal") << name(id);
    EXPECT_EQ(inner(unit + 1), "T18") << name(id);
    EXPECT_EQ(inner(unit - 1), "T18") << name(id);
  }
}

TEST(Boundaries, InnerBoxFitsTheSwizzle) {
  const auto inner = [](swizzle mode, std::uint32_t bytes) {
    return verdict([&](auto& s) {
      s.swizzle = mode;
      s.box_dim[0] = bytes / 4;
    });
  };
  EXPECT_EQ(inner(swizzle::bytes_32, 32), "legal");
  EXPECT_EQ(inner(swizzle::bytes_32, 48), "T22");
  EXPECT_EQ(inner(swizzle::bytes_64, 64), "legal");
  EXPECT_EQ(inner(swizzle::bytes_64, 80), "T23");
  EXPECT_EQ(inner(swizzle::bytes_128, 128), "legal");
  EXPECT_EQ(inner(swizzle::bytes_128, 144), "T24");
}

TEST(Boundaries, ElementStride) {
  const auto step = [](std::uint32_t axis, std::uint32_t value) {
    return verdict([&](auto& s) { s.element_stride[axis] = value; });
  };
  EXPECT_EQ(step(1, 1), "legal");
  EXPECT_EQ(step(1, 8), "legal");
  EXPECT_EQ(step(1, 9), "T20");
  EXPECT_EQ(step(0, 8), "legal");
  EXPECT_EQ(step(0, 0), "T20") << "of no effect without an interleave, but the driver refuses it";
}

TEST(Boundaries, ColumnBytes) {
  const auto column = [](std::uint32_t channels, std::uint32_t pixels) {
    im2col_spec spec = testing::plain_im2col_spec();
    spec.channels_per_pixel = channels;
    spec.pixels_per_column = pixels;
    return broken_rules(spec).contains(rule::t37_box_bytes);
  };
  EXPECT_FALSE(column(64, 912)) << "233,472 bytes of f32";
  EXPECT_TRUE(column(64, 913));
}

/// What the driver answered (docs/measurements/copy_engine_semantics.md, section 9).
TEST(Boundaries, BoundingBoxOfIm2col) {
  const auto empty = [](std::uint64_t w, std::int32_t lower, std::int32_t upper) {
    im2col_spec spec = testing::plain_im2col_spec();
    spec.tensor.rank = 3;
    spec.tensor.global_dim[1] = w;
    spec.lower_corner[0] = lower;
    spec.upper_corner[0] = upper;
    return broken_rules(spec).contains(rule::i04_box_area);
  };
  constexpr std::uint64_t two_31 = std::uint64_t{1} << 31;
  EXPECT_FALSE(empty(64, 0, -63));
  EXPECT_TRUE(empty(64, 0, -64));
  EXPECT_TRUE(empty(64, 64, 0));
  EXPECT_FALSE(empty(two_31 - 1, 100, -100));
  EXPECT_TRUE(empty(two_31 - 1, -100, 100));
  EXPECT_TRUE(empty(two_31, 0, 0));
  EXPECT_FALSE(empty(two_31, 100, -100));
  EXPECT_TRUE(empty(2 * two_31, 0, 0));
  EXPECT_FALSE(empty(2 * two_31, -100, 100));
}

TEST(Boundaries, LastByteAndLastAddress) {
  constexpr std::uint64_t end = std::uint64_t{1} << 57;
  constexpr std::uint64_t bytes = 64 * 32 * 16 * 4;
  const auto at = [](std::uint64_t address) { return verdict([&](auto& s) { s.global_address = address; }); };
  EXPECT_EQ(at(end - bytes), "legal");
  EXPECT_EQ(at(end - bytes + 16), "T34");
  EXPECT_EQ(at(end - 16), "T34");
  EXPECT_EQ(at(end), "T33");
}

TEST(Boundaries, ExtentsBeyond64BitsAreSeen) {
  EXPECT_EQ(verdict([](auto& s) {
              s.rank = 5;
              for (std::uint32_t axis = 1; axis < max_rank; ++axis) {
                s.global_dim[axis] = 1ull << 31;
                s.box_dim[axis] = 1;
                s.global_stride_bytes[axis - 1] = (1ull << 40) - 16;
              }
              s.global_dim[2] = s.global_dim[3] = s.global_dim[4] = 1;
            }),
            "T34");
}

TEST(Boundaries, BoxBytesAsTheDriverCounts) {
  const auto bytes = [](std::uint32_t rows, std::uint32_t step) {
    const device_limits roomy{90, 1u << 30};
    return verdict(
        [&](auto& s) {
          s.box_dim[0] = 256;
          s.box_dim[1] = rows;
          s.element_stride[1] = step;
          s.box_dim[2] = 4;
        },
        plain_spec(), roomy);
  };
  EXPECT_EQ(bytes(57, 1), "legal") << "233,472 bytes";
  EXPECT_EQ(bytes(58, 1), "T37") << "237,568 bytes";
  EXPECT_EQ(bytes(115, 2), "legal") << "115 / 2 counts as 57";
  EXPECT_EQ(bytes(116, 2), "T37");
}

TEST(Boundaries, SharedMemoryOfTheBlock) {
  tensor_spec spec = plain_spec();
  const std::uint64_t bytes = tile_footprint_bytes(spec);
  EXPECT_TRUE(validate(spec, {90, static_cast<std::uint32_t>(bytes)}).empty());
  const violations found = validate(spec, {90, static_cast<std::uint32_t>(bytes - 1)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].id, rule::t35_tile_fits_shared_memory);
  EXPECT_EQ(found[0].found, bytes);
  EXPECT_EQ(found[0].allowed, bytes - 1);
}

TEST(Boundaries, Im2colCornersByRank) {
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

TEST(Boundaries, WideModeW128IgnoresPixels) {
  im2col_wide_spec spec = plain_im2col_wide_spec();
  spec.pixels_per_column = 0;
  EXPECT_TRUE(broken_rules(spec, blackwell_limits).contains(rule::i06_pixels_range));
  spec.mode = im2col_wide_mode::w128;
  EXPECT_TRUE(broken_rules(spec, blackwell_limits).empty());
}

}  // namespace
}  // namespace tmap::testing
