// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <iterator>
#include <string>

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

TEST(boundaries, global_dim) {
  EXPECT_EQ(with_last_dim(0), "T09");
  EXPECT_EQ(with_last_dim(1), "legal");
  EXPECT_EQ(with_last_dim(1ull << 31), "legal");
  EXPECT_EQ(with_last_dim((1ull << 31) + 1), "T36");
  EXPECT_EQ(with_last_dim(1ull << 32), "T36");
  EXPECT_EQ(with_last_dim((1ull << 32) + 1), "T09");
  EXPECT_EQ(with_last_dim(~0ull), "T09");
}

TEST(boundaries, global_stride) {
  EXPECT_EQ(with_last_stride((1ull << 40) - 16), "legal");
  EXPECT_EQ(with_last_stride(1ull << 40), "T14");
  EXPECT_EQ(with_last_stride(8192), "legal");
  EXPECT_EQ(with_last_stride(8176), "T16");
  EXPECT_EQ(with_last_stride(0), "T16");
  EXPECT_EQ(with_last_stride(8208), "legal");
  EXPECT_EQ(with_last_stride(8207), "T13");
}

TEST(boundaries, stride_of_a_size_one_dimension_is_never_an_overlap) {
  EXPECT_EQ(verdict([](auto& s) {
              s.global_dim[2] = 1;
              s.global_stride_bytes[1] = 0;
            }),
            "legal");
}

TEST(boundaries, two_of_a_dimension_may_overlap) {
  const auto pair = [](std::uint64_t stride) {
    return verdict([&](auto& s) {
      s.global_dim[2] = 2;
      s.global_stride_bytes[1] = stride;
    });
  };
  EXPECT_EQ(pair(8192), "legal");
  EXPECT_EQ(pair(8176), "T16");
  EXPECT_EQ(pair(0), "T16");
}

TEST(boundaries, strides_beyond_the_rank_are_ignored) {
  EXPECT_EQ(verdict([](auto& s) {
              s.rank = 2;
              s.global_stride_bytes[1] = 7;
              s.global_dim[2] = 0;
              s.box_dim[2] = 0;
              s.element_stride[2] = 0;
            }),
            "legal");
}

TEST(boundaries, box) {
  const auto box = [](std::uint32_t extent) { return verdict([&](auto& s) { s.box_dim[1] = extent; }); };
  EXPECT_EQ(box(0), "T17");
  EXPECT_EQ(box(1), "legal");
  EXPECT_EQ(box(256), "legal");
  EXPECT_EQ(box(257), "T17");
}

TEST(boundaries, inner_box_is_a_multiple_of16_bytes_of_every_type) {
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

TEST(boundaries, inner_box_fits_the_swizzle) {
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

TEST(boundaries, no_swizzle_spans_the_box_of_an_interleaved_map) {
  tensor_spec spec = interleaved_spec(interleave::bytes_16);
  for (const swizzle mode : {swizzle::bytes_32, swizzle::bytes_64, swizzle::bytes_128}) {
    spec.swizzle = mode;
    spec.box_dim[0] = 64;
    EXPECT_EQ(verdict([](auto&) {}, spec), "legal") << name(mode);
  }
}

TEST(boundaries, types_and_swizzles_of_each_generation) {
  const auto type = [](std::uint32_t value, const device_limits& limits) {
    tensor_spec spec = plain_spec();
    spec.type = element_type{value};
    return broken_rules(spec, limits).contains(rule::t02_element_type);
  };
  EXPECT_FALSE(type(hopper_element_type_count - 1, hopper_limits()));
  EXPECT_TRUE(type(hopper_element_type_count, hopper_limits()));
  EXPECT_FALSE(type(element_type_count - 1, blackwell_limits()));
  EXPECT_TRUE(type(element_type_count, blackwell_limits()));
  const auto mode = [](std::uint32_t value, const device_limits& limits) {
    return verdict([&](auto& s) { s.swizzle = swizzle{value}; }, plain_spec(), limits);
  };
  EXPECT_EQ(mode(3, hopper_limits()), "legal");
  EXPECT_EQ(mode(4, hopper_limits()), "T28");
  EXPECT_EQ(mode(6, blackwell_limits()), "legal");
  EXPECT_EQ(mode(7, blackwell_limits()), "T28");
  const device_limits between{detail::packed_type_compute_capability - 1, blackwell_limits().shared_memory_bytes};
  EXPECT_TRUE(type(hopper_element_type_count, between));
  EXPECT_EQ(mode(4, between), "T28");
}

TEST(boundaries, modes_without_a_layout) {
  const auto fill = [](element_type type, std::uint32_t value) {
    return verdict([&](auto& s) {
      s.type = type;
      s.oob_fill = oob_fill{value};
    });
  };
  EXPECT_EQ(fill(element_type::f32, 1), "legal");
  EXPECT_EQ(fill(element_type::f32, 2), "T30");
  EXPECT_EQ(fill(element_type::u32, 0), "legal");
  EXPECT_EQ(fill(element_type::u32, 1), "T30");
  tensor_spec unknown = plain_spec();
  unknown.type = element_type{element_type_count};
  unknown.oob_fill = oob_fill::nan;
  EXPECT_FALSE(broken_rules(unknown).contains(rule::t30_oob_fill)) << "whether it has a NaN is unknown";
  unknown.oob_fill = oob_fill{2};
  EXPECT_TRUE(broken_rules(unknown).contains(rule::t30_oob_fill));
  const auto promotion = [](std::uint32_t value) {
    return verdict([&](auto& s) { s.l2_promotion = l2_promotion{value}; });
  };
  EXPECT_EQ(promotion(3), "legal");
  EXPECT_EQ(promotion(4), "T29");
}

/// The smallest rank has one axis and no stride.
TEST(boundaries, one_dimension) {
  tensor_spec line = plain_spec();
  line.rank = 1;
  const auto with = [&](auto change) { return verdict(change, line); };
  EXPECT_EQ(with([](auto& s) { s.global_stride_bytes[0] = 7; }), "legal") << "strides are not checked";
  EXPECT_EQ(with([](auto& s) { s.global_dim[1] = s.box_dim[1] = s.element_stride[1] = 0; }), "legal");
  EXPECT_EQ(with([](auto& s) { s.global_dim[0] = 0; }), "T09");
  EXPECT_EQ(with([](auto& s) { s.global_dim[0] = detail::max_copied_dim + 1; }), "T36");
  EXPECT_EQ(with([](auto& s) { s.box_dim[0] = 0; }), "T17");
  EXPECT_EQ(with([](auto& s) { s.element_stride[0] = 9; }), "T20");
  EXPECT_EQ(with([](auto& s) { s.global_address = detail::address_limit - 64 * 4; }), "legal");
  EXPECT_EQ(with([](auto& s) { s.global_address = detail::address_limit - 64 * 4 + 16; }), "T34");
}

TEST(boundaries, axis_zero_is_listed_as_one) {
  tensor_spec spec = plain_spec();
  spec.global_dim[0] = spec.box_dim[0] = spec.element_stride[0] = 0;
  const rule expected[] = {rule::t09_global_dim_range, rule::t20_element_stride_range, rule::t17_box_dim_range};
  const violations found = validate(spec);
  ASSERT_EQ(found.size(), std::size(expected));
  for (std::uint32_t i = 0; i < std::size(expected); ++i) {
    EXPECT_EQ(found[i].id, expected[i]);
    EXPECT_EQ(found[i].axis, 0) << info(found[i].id).name;
  }
}

/// The message gives the limit in the unit of the value.
TEST(boundaries, inner_boxes_are_told_in_elements) {
  const auto allowed = [](element_type type, swizzle mode, std::uint32_t inner) {
    tensor_spec spec = testing::plain_spec();
    spec.type = type;
    spec.swizzle = mode;
    spec.box_dim[0] = inner;
    for (const violation& found : validate(spec)) {
      if (info(found.id).level == severity::error) return found.allowed;
    }
    return std::uint64_t{0};
  };
  EXPECT_EQ(allowed(element_type::f32, swizzle::bytes_32, 16), 8u);
  EXPECT_EQ(allowed(element_type::f32, swizzle::bytes_64, 32), 16u);
  EXPECT_EQ(allowed(element_type::f32, swizzle::bytes_128, 64), 32u);
  EXPECT_EQ(allowed(element_type::f64, swizzle::bytes_128, 32), 16u);
  EXPECT_EQ(allowed(element_type::f64, swizzle::none, 3), 2u);
}

/// Dimension 0 of an interleaved tensor counts units of 16 or 32 bytes.
TEST(boundaries, last_byte_of_interleaved_tensors) {
  constexpr std::uint64_t limit = std::uint64_t{1} << 57;
  for (const auto layout : {interleave::bytes_16, interleave::bytes_32}) {
    const std::uint64_t unit = layout == interleave::bytes_16 ? 16 : 32;
    tensor_spec spec = testing::interleaved_spec(layout);
    const std::uint64_t reach = 64 * unit + 31 * spec.global_stride_bytes[0] + 15 * spec.global_stride_bytes[1];
    spec.global_address = limit - reach;
    EXPECT_TRUE(validate(spec).empty()) << to_string(validate(spec));
    spec.global_address += 32;
    EXPECT_TRUE(broken_rules(spec).contains(rule::t34_extent_range));
  }
}

/// The spatial dimensions of interleaved maps begin with dimension 0.
TEST(boundaries, bounding_box_of_interleaved_im2col) {
  for (const auto layout : {interleave::bytes_16, interleave::bytes_32}) {
    im2col_spec spec = testing::plain_im2col_spec();
    spec.tensor.interleave = layout;
    spec.tensor.global_dim[0] = 2;
    spec.upper_corner[0] = -3;
    EXPECT_TRUE(broken_rules(spec).contains(rule::i04_box_area));
    spec.tensor.global_dim[0] = 64;
    spec.tensor.global_dim[1] = 3;
    spec.tensor.global_dim[2] = 1;
    EXPECT_FALSE(broken_rules(spec).contains(rule::i04_box_area)) << "the third is ignored";
  }
}

TEST(boundaries, interleaved_tiles_end_with_a_swizzle_span) {
  tensor_spec spec = testing::interleaved_spec(interleave::bytes_16);
  spec.swizzle = swizzle::bytes_128;
  spec.box_dim[0] = 4;
  spec.box_dim[2] = 3;
  EXPECT_EQ(tile_bytes(spec), 3u * 64);
  EXPECT_EQ(tile_footprint_bytes(spec), 2u * 128);
}

TEST(boundaries, element_stride) {
  const auto step = [](std::uint32_t axis, std::uint32_t value) {
    return verdict([&](auto& s) { s.element_stride[axis] = value; });
  };
  EXPECT_EQ(step(1, 1), "legal");
  EXPECT_EQ(step(1, 8), "legal");
  EXPECT_EQ(step(1, 9), "T20");
  EXPECT_EQ(step(0, 8), "legal");
  EXPECT_EQ(step(0, 0), "T20") << "it has no effect without an interleave, but the driver refuses it";
}

TEST(boundaries, column_bytes) {
  const auto column = [](std::uint32_t channels, std::uint32_t pixels) {
    im2col_spec spec = testing::plain_im2col_spec();
    spec.channels_per_pixel = channels;
    spec.pixels_per_column = pixels;
    return broken_rules(spec).contains(rule::t37_box_bytes);
  };
  EXPECT_FALSE(column(64, 912)) << "233,472 bytes of f32";
  EXPECT_TRUE(column(64, 913));
}

/// The driver gave these results (docs/measurements/copy_engine_semantics.md, section 9).
TEST(boundaries, bounding_box_of_im2col) {
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

TEST(boundaries, last_byte_and_last_address) {
  constexpr std::uint64_t end = std::uint64_t{1} << 57;
  constexpr std::uint64_t bytes = 64 * 32 * 16 * 4;
  const auto at = [](std::uint64_t address) { return verdict([&](auto& s) { s.global_address = address; }); };
  EXPECT_EQ(at(end - bytes), "legal");
  EXPECT_EQ(at(end - bytes + 16), "T34");
  EXPECT_EQ(at(end - 16), "T34");
  EXPECT_EQ(at(end), "T33");
}

TEST(boundaries, extents_beyond64_bits_are_seen) {
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

TEST(boundaries, box_bytes_as_the_driver_counts) {
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

TEST(boundaries, shared_memory_of_the_block) {
  tensor_spec spec = plain_spec();
  const std::uint64_t bytes = tile_footprint_bytes(spec);
  EXPECT_TRUE(validate(spec, {90, static_cast<std::uint32_t>(bytes)}).empty());
  const violations found = validate(spec, {90, static_cast<std::uint32_t>(bytes - 1)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].id, rule::t35_tile_fits_shared_memory);
  EXPECT_EQ(found[0].found, bytes);
  EXPECT_EQ(found[0].allowed, bytes - 1);
}

}  // namespace
}  // namespace tmap::testing
