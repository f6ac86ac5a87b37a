// SPDX-License-Identifier: Apache-2.0
// Padding of rows on the host, and what it refuses. pad_rows_device_test.cpp tests the kernels.
#include <tmap/padded_rows.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/support/refusal.hpp"

namespace tmap::ragged::testing {
namespace {

constexpr std::uint64_t width = 3;
constexpr std::uint16_t filled = 0x1234;

/// Rows of numbers above 0, and a dense array for `count` tensors that nobody has written.
struct row_memory {
  row_memory(std::uint64_t rows, std::uint64_t count, std::uint64_t longest)
      : values(rows * width), dense(count * longest * width, 0xdead) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(i + 1);
    about = {values.data(), rows, dense.data(), count, longest, width * 2, 2, {}};
  }
  template <class Integer>
  const padded_rows& cut_by(const std::vector<Integer>& offsets, offset_format format) {
    about.offsets = {offsets.data(), format, sizeof(Integer)};
    return about;
  }

  std::vector<std::uint16_t> values;
  std::vector<std::uint16_t> dense;
  padded_rows about{};
};

fill_value fill() {
  return {{0x34, 0x12}};
}
run host() {
  return {on_host{}};
}

/// Returns the place of a row's first element in the values, or 0 for one that is filled.
std::vector<std::uint64_t> rows_of(const std::vector<std::uint16_t>& dense) {
  std::vector<std::uint64_t> rows;
  for (std::size_t i = 0; i < dense.size(); i += width) {
    rows.push_back(dense[i] == filled ? 0 : (dense[i] - 1) / width + 1);
  }
  return rows;
}

TEST(pad_rows, copies_what_fits_and_fills_the_rest) {
  row_memory memory{9, 3, 4};
  const std::vector<std::int32_t> ends{2, 2, 8};
  ASSERT_TRUE(pad_rows(memory.cut_by(ends, offset_format::ends), fill(), host()));
  EXPECT_EQ(rows_of(memory.dense), (std::vector<std::uint64_t>{1, 2, 0, 0, 0, 0, 0, 0, 3, 4, 5, 6}));
}

TEST(pad_rows, cuts_wild_offsets_to_the_rows_that_exist) {
  row_memory memory{4, 3, 3};
  const std::vector<std::int64_t> prefix{-7, 2, 1, std::numeric_limits<std::int64_t>::max()};
  ASSERT_TRUE(pad_rows(memory.cut_by(prefix, offset_format::prefix), fill(), host()));
  EXPECT_EQ(rows_of(memory.dense), (std::vector<std::uint64_t>{1, 2, 0, 0, 0, 0, 2, 3, 4}));
}

TEST(unpad_rows, undoes_it_and_zeroes_rows_of_no_tensor) {
  row_memory memory{9, 3, 4};
  const std::vector<std::int32_t> prefix{1, 3, 3, 8};
  const padded_rows& about = memory.cut_by(prefix, offset_format::prefix);
  ASSERT_TRUE(pad_rows(about, fill(), host()));
  std::vector<std::uint16_t> expected = memory.values;
  for (const std::uint64_t row : {0, 7, 8}) std::fill_n(expected.begin() + row * width, width, std::uint16_t{0});
  std::fill(memory.values.begin(), memory.values.end(), std::uint16_t{0xdead});
  ASSERT_TRUE(unpad_rows(about, host()));
  EXPECT_EQ(memory.values, expected);
}

TEST(pad_rows, refuses_bad_arguments_by_name) {
  row_memory memory{9, 3, 4};
  const std::vector<std::int32_t> ends{2, 2, 8};
  const padded_rows good = memory.cut_by(ends, offset_format::ends);
  const auto refused = [&](const char* argument, auto change) {
    padded_rows bad = good;
    change(bad);
    tmap::testing::expect_refused(pad_rows(bad, fill(), host()), argument);
    tmap::testing::expect_refused(unpad_rows(bad, host()), argument);
  };
  refused("rows.element_bytes", [](padded_rows& rows) { rows.element_bytes = 3; });
  refused("rows.row_bytes", [](padded_rows& rows) { rows.row_bytes = 5; });
  refused("rows.values", [](padded_rows& rows) { rows.values += 1; });
  refused("rows.dense", [](padded_rows& rows) { rows.dense = device_address{std::uint64_t{0}}; });
  refused("rows.dense", [](padded_rows& rows) { rows.longest = std::uint64_t{1} << 40; });
  refused("rows.offsets.format", [](padded_rows& rows) { rows.offsets.format = offset_format::sizes; });
  refused("rows.offsets.bytes", [](padded_rows& rows) { rows.offsets.bytes = 2; });
  refused("rows.offsets.values", [](padded_rows& rows) { rows.offsets.values = nullptr; });
  run with = host();
  tensor_status status{};
  with.statuses = &status;
  tmap::testing::expect_refused(pad_rows(good, fill(), with), "statuses");
}

}  // namespace
}  // namespace tmap::ragged::testing
