// SPDX-License-Identifier: Apache-2.0
// Reduces rows on the host: exact cases by every route, and the summation order of long rows.
#include <tmap/detail/reduction_order.hpp>
#include <tmap/ragged.hpp>

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "simulator/ragged_compute_case.hpp"
#include "support/ragged_values_reference.hpp"

namespace tmap::testing {
namespace {

class ragged_reduce : public ragged_compute {};

/// Sums of small integers are exact in any order, as are maxima.
TEST_P(ragged_reduce, every_type_and_reduction) {
  for (const value_type type : {value_type::f32, value_type::f16, value_type::bf16}) {
    for (const auto reduction : {ragged::row_reduction::sum, ragged::row_reduction::max}) {
      std::vector<extents> all = shapes();
      host_batch source = laid_out(all, value_bytes(type));
      for (extents& shape : all) shape.dim[0] = 1;
      host_batch destination = laid_out(all, 4);
      for (std::uint64_t i = 0; i < all.size(); ++i) {
        for_each_element(source.tensors[i].shape, [&](const std::uint64_t* at) {
          const float value = static_cast<float>(random_.below(9)) - 4;
          reference::put_value(type, value, source.element(i, at));
        });
      }
      host_batch expected = destination;
      reference::reduce_rows(type, reduction, source, expected);
      host_side from{source, source_form::array};
      host_side to{destination, source_form::array};
      ASSERT_TRUE(ragged::reduce_rows(from.described, type, reduction, to.described, pinned()));
      expect_bytes(expected.bytes, destination.bytes);
    }
  }
}

TEST(ragged_reduce_order, long_rows_in_their_order) {
  const std::uint64_t length = 3 * tmap::detail::smallest_slice + 77;
  random_source random{11};
  host_batch source = lay_out(random, {extents{{length, 1, 1, 1, 1}}}, 1, 4, source_form::array);
  host_batch sum = lay_out(random, {extents{{1, 1, 1, 1, 1}}}, 1, 4, source_form::array);
  make_floats(random, source, 1'000'000'000);
  const auto value = [&](std::uint64_t i) { return f32_of(source, 0, std::array<std::uint64_t, 5>{i}.data()); };
  float slices[4];
  for (std::uint64_t slice = 0; slice < 4; ++slice) {
    float lanes[32];
    for (std::uint64_t lane = 0; lane < 32; ++lane) {
      lanes[lane] = -0.0f;
      const std::uint64_t begin = slice * tmap::detail::smallest_slice;
      for (std::uint64_t i = begin + lane; i < std::min(begin + tmap::detail::smallest_slice, length); i += 32) {
        lanes[lane] += value(i);
      }
    }
    for (int half = 16; half > 0; half /= 2) {
      for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    }
    slices[slice] = lanes[0];
  }
  const float expected = (slices[0] + slices[2]) + (slices[1] + slices[3]);
  host_side from{source, source_form::array};
  host_side to{sum, source_form::array};
  ASSERT_TRUE(
      ragged::reduce_rows(from.described, value_type::f32, ragged::row_reduction::sum, to.described, {on_host{}}));
  EXPECT_EQ(f32_of(sum, 0, extents{{0, 0, 0, 0, 0}}.dim), expected);
}

/// Returns the bits of the reduction of a row with these values.
std::uint32_t bits_of_reduced(ragged::row_reduction reduction, const std::vector<float>& row) {
  random_source random{12};
  host_batch source = lay_out(random, {extents{{row.size(), 1, 1, 1, 1}}}, 1, 4, source_form::array);
  host_batch reduced = lay_out(random, {extents{{1, 1, 1, 1, 1}}}, 1, 4, source_form::array);
  const std::uint64_t first[max_rank] = {};
  std::memcpy(source.element(0, first), row.data(), row.size() * sizeof(float));
  host_side from{source, source_form::array};
  host_side to{reduced, source_form::array};
  EXPECT_TRUE(ragged::reduce_rows(from.described, value_type::f32, reduction, to.described, {on_host{}}));
  return std::bit_cast<std::uint32_t>(f32_of(reduced, 0, first));
}

TEST(ragged_reduce_order, sums_begin_with_minus_zero) {
  EXPECT_EQ(bits_of_reduced(ragged::row_reduction::sum, {-0.0f, -0.0f, -0.0f}), 0x80000000u);
}

TEST(ragged_reduce_order, every_nan_has_the_pattern_of_a_gpus) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto other = std::bit_cast<float>(0xffc12345u);
  for (const auto reduction : {ragged::row_reduction::sum, ragged::row_reduction::max}) {
    EXPECT_EQ(bits_of_reduced(reduction, {1, other, 2}), 0x7fffffffu);
    EXPECT_EQ(bits_of_reduced(reduction, {other}), 0x7fffffffu);
  }
  EXPECT_EQ(bits_of_reduced(ragged::row_reduction::sum, {infinity, -infinity}), 0x7fffffffu);
}

INSTANTIATE_TEST_SUITE_P(all, ragged_reduce, every_compute_case(), compute_case_name);

}  // namespace
}  // namespace tmap::testing
