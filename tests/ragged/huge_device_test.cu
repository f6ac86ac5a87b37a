// SPDX-License-Identifier: Apache-2.0
// Runs operations on huge tensors by every route: of 2^31 - 1 elements and more, of more than 2^32
// bytes, and batches with tensors across 2^31 and 2^32. The tests check every element of both
// sides, including those between tensors. They use at most 24 GiB of device memory.
#include "ragged/huge_fixture.cuh"

namespace tmap::ragged::testing {
namespace {

class ragged_huge_values : public ragged_huge {
 protected:
  static void expect_reduced(row_reduction reduction);
};

/// The check of the tests detects one wrong byte past 2^32.
TEST_F(gpu_test, one_wrong_byte_behind_2_32) {
  constexpr std::uint64_t place = (std::uint64_t{1} << 32) + 7;
  if (!has_room(place + 100)) GTEST_SKIP() << no_room;
  const device_array<std::uint8_t> memory(place + 100);
  huge_side side{};
  side.elements = memory.size();
  expect_values(memory, side, nothing_yet<std::uint8_t>{});
  TMAP_ASSERT_CUDA(cudaMemset(memory.data() + place, 0, 1));
  const wrong_elements wrong = find_wrong(memory, side, nothing_yet<std::uint8_t>{});
  EXPECT_EQ(wrong.count, 1u);
  EXPECT_EQ(wrong.first, place);
}

TEST_P(ragged_huge_values, copy) {
  const huge_sides both = sides(1);
  if (!fits(both, 1, 1)) GTEST_SKIP() << no_room;
  expect_way(both, 1);
  expect_result<std::uint8_t, std::uint8_t>(both, noise_bytes{}, nothing_yet<std::uint8_t>{}, copied_bytes{both.source},
                                            [](const huge_call& c) { return copy(c.source, c.destination, c.with); });
}

TEST_P(ragged_huge_values, cast) {
  const huge_sides both = sides(1);
  if (!fits(both, 1, 4)) GTEST_SKIP() << no_room;
  const cast_values values{value_type::u8, value_type::f32, 0.5f, 3, nullptr, nullptr};
  expect_result<std::uint8_t, std::uint32_t>(
      both, noise_bytes{}, nothing_yet<std::uint32_t>{}, bytes_as_floats{both.source, values.scale, values.shift},
      [&](const huge_call& c) { return cast(c.source, c.destination, values, c.with); });
}

TEST_P(ragged_huge_values, saxpy) {
  const huge_sides both = sides(4);
  if (!fits(both, 4, 4)) GTEST_SKIP() << no_room;
  constexpr float a = 1.7f;
  expect_result<std::uint32_t, std::uint32_t>(
      both, noise_floats{}, first_summands{}, float_sums{both.source, a},
      [&](const huge_call& c) { return saxpy(a, c.source, c.destination, c.with); });
}

TEST_P(ragged_huge_values, max_pool_1d) {
  const huge_sides both = sides(4);
  if (!fits(both, 4, 4)) GTEST_SKIP() << no_room;
  constexpr std::uint32_t radius = 15;
  expect_result<std::uint32_t, std::uint32_t>(
      both, noise_floats{}, nothing_yet<std::uint32_t>{}, window_maxima{both.source, radius},
      [&](const huge_call& c) { return max_pool_1d(c.source, c.destination, radius, c.with); });
}

/// Windows longer than a piece.
TEST_P(ragged_huge_values, max_pool_1d_far) {
  const huge_sides both = sides(4);
  if (!fits(both, 4, 4)) GTEST_SKIP() << no_room;
  constexpr std::uint32_t radius = 1000;
  expect_result<std::uint32_t, std::uint32_t>(
      both, single_peaks{}, nothing_yet<std::uint32_t>{}, peaks_in_windows{both.source, radius},
      [&](const huge_call& c) { return max_pool_1d(c.source, c.destination, radius, c.with); });
}

void ragged_huge_values::expect_reduced(row_reduction reduction) {
  std::vector<matrix_shape> rows = shapes(2);
  huge_sides both{lay_out_huge(rows, setting().odd[0]), {}};
  for (matrix_shape& shape : rows) shape.columns = 1;
  both.destination = lay_out_huge(rows, setting().odd[1]);
  if (!fits(both, 2, 4)) GTEST_SKIP() << no_room;
  row_sums sums{};
  std::uint64_t all = 0;
  for (std::uint32_t i = 0; i < both.source.count; ++i) {
    sums.first[i] = all;
    all += both.source.tensors[i].rows;
  }
  const device_array<std::uint32_t> memory(std::vector<std::uint32_t>(all, 0));
  sums.sums = memory.data();
  sum_kernel<<<huge_blocks, huge_threads>>>(both.source, sums);
  TMAP_ASSERT_CUDA(cudaGetLastError());
  expect_result<std::uint16_t, std::uint32_t>(
      both, sparse_halves{}, nothing_yet<std::uint32_t>{}, reduced_rows{sums, reduction == row_reduction::sum},
      [&](const huge_call& c) { return reduce_rows(c.source, value_type::bf16, reduction, c.destination, c.with); });
}

TEST_P(ragged_huge_values, row_sums) {
  expect_reduced(row_reduction::sum);
}

TEST_P(ragged_huge_values, row_maxima) {
  expect_reduced(row_reduction::max);
}

INSTANTIATE_TEST_SUITE_P(
    routes, ragged_huge_values,
    ::testing::ValuesIn(huge_params({huge_kind::one, huge_kind::batch, huge_kind::large, huge_kind::wide})), name_huge);

}  // namespace
}  // namespace tmap::ragged::testing
