// SPDX-License-Identifier: Apache-2.0
// What single operations refuse beside their sides, on both engines in the same words, and what they do without
// tensors.
#include <tmap/ragged.hpp>
#include <tmap/ragged_host.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "ragged/api_arguments.hpp"

namespace tmap::ragged::testing {
namespace {

TEST(ragged_arguments, rows_by_index) {
  const row_matrix good{0x20000, 100, 64, 64};
  const row_index index{somewhere<void>(), 50, 4};
  const auto gathers = [](const std::string& name, const row_matrix& source, const row_index& rows,
                          const row_matrix& destination) {
    expect_both_refuse(gather_rows_async(source, rows, destination, no_stream),
                       on_host::gather_rows(source, rows, destination), name, "gather");
  };
  const auto scatters = [](const std::string& name, const row_matrix& source, const row_index& rows,
                           const row_matrix& destination) {
    expect_both_refuse(scatter_rows_async(source, rows, destination, no_stream),
                       on_host::scatter_rows(source, rows, destination), name, "scatter");
  };
  const auto refused = [&](const std::string& name, const row_matrix& source, const row_index& rows,
                           const row_matrix& destination) {
    gathers(name, source, rows, destination);
    scatters(name, source, rows, destination);
  };
  constexpr std::uint64_t far = std::uint64_t{1} << 60;
  refused("source.address", {0, 100, 64, 64}, index, good);
  refused("destination.address", good, index, {0, 100, 64, 64});
  refused("destination.row_bytes", {0x20000, 100, 32, 64}, index, good);
  refused("source.row_bytes", {0x20000, 100, far, far}, index, {0x20000, 100, far, far});
  refused("destination.pitch_bytes", good, index, {0x20000, 100, 64, 63});
  refused("source.pitch_bytes", {0x20000, 100, 64, far}, index, good);
  refused("destination.pitch_bytes", good, index, {0x20000, 100, 64, far});
  refused("source.pitch_bytes", {0x20000, far, 64, 64}, index, good);
  refused("index.bytes", good, {somewhere<void>(), 50, 2}, good);
  refused("index.rows", good, {nullptr, 50, 4}, good);
  refused("index.rows", good, {somewhere<void>(4), 50, 8}, good);
  gathers("destination.rows", good, {somewhere<void>(), 101, 4}, good);
  scatters("source.rows", good, {somewhere<void>(), 101, 4}, good);
}

TEST(ragged_arguments, values_of_a_cast) {
  const tensor_batch four = columns_batch(2, 4);
  const tensor_batch two = columns_batch(2, 2);
  const auto refused = [](const std::string& name, const tensor_batch& source, const tensor_batch& destination,
                          const cast_values& values) {
    expect_both_refuse(cast_async(source, destination, values, enough(), no_stream),
                       on_host::cast(source, destination, values), name);
  };
  const auto unknown = static_cast<value_type>(6);
  refused("destination.element_bytes", four, four, {value_type::f32, value_type::f16});
  refused("source.element_bytes", two, two, {value_type::f32, value_type::f16});
  refused("values.to", four, four, {value_type::f32, unknown});
  refused("values.from", four, four, {unknown, value_type::f32});
  refused("values.scales", four, two, {.from = value_type::f32, .to = value_type::f16, .scales = somewhere<float>(2)});
  refused("values.shifts", four, two, {.from = value_type::f32, .to = value_type::f16, .shifts = somewhere<float>(2)});
}

TEST(ragged_arguments, values_of_other_operations) {
  const tensor_batch one = columns_batch(2, 1);
  const tensor_batch two = columns_batch(2, 2);
  const tensor_batch four = columns_batch(2, 4);
  const tensor_batch row = columns_batch(1);
  expect_both_refuse(transpose_async(row, row, enough(1), no_stream), on_host::transpose(row, row), "source.rank");
  expect_both_refuse(saxpy_async(1, two, four, enough(), no_stream), on_host::saxpy(1, two, four), "x.element_bytes");
  expect_both_refuse(saxpy_async(1, four, two, enough(), no_stream), on_host::saxpy(1, four, two), "y.element_bytes");
  expect_both_refuse(max_pool_1d_async(two, two, 1, enough(), no_stream), on_host::max_pool_1d(two, two, 1),
                     "source.element_bytes");
  const auto reduced = [&](const std::string& name, value_type type, row_reduction how, const tensor_batch& source,
                           const tensor_batch& to) {
    expect_both_refuse(reduce_rows_async(source, type, how, to, enough(), no_stream),
                       on_host::reduce_rows(source, type, how, to), name);
  };
  reduced("type", value_type::u8, row_reduction::sum, one, four);
  reduced("type", value_type::f8_e4m3, row_reduction::sum, one, four);
  reduced("type", static_cast<value_type>(6), row_reduction::sum, one, four);
  reduced("source.element_bytes", value_type::f16, row_reduction::sum, four, four);
  reduced("destination.element_bytes", value_type::f16, row_reduction::sum, two, two);
  reduced("reduction", value_type::f16, static_cast<row_reduction>(2), two, four);
}

TEST(ragged_arguments, nothing_to_do_needs_nothing) {
  tensor_batch none = columns_batch();
  none.count = 0;
  none.tensors = patch_array{nullptr};
  EXPECT_TRUE(copy_async(none, none, {}, no_stream).has_value());
  EXPECT_TRUE(pack_async(none, some_packed(), {}, no_stream).has_value());
  EXPECT_TRUE(unpack_async(some_packed(), none, {}, no_stream).has_value());
  EXPECT_TRUE(pad_async(none, some_dense(), {}, {}, no_stream).has_value());
  EXPECT_TRUE(unpad_async(some_dense(), none, {}, no_stream).has_value());
  EXPECT_TRUE(transpose_async(none, none, {}, no_stream).has_value());
  EXPECT_TRUE(saxpy_async(1, none, none, {}, no_stream).has_value());
  EXPECT_TRUE(max_pool_1d_async(none, none, 15, {}, no_stream).has_value());
  EXPECT_TRUE(cast_async(none, none, {value_type::f32, value_type::f32}, {}, no_stream).has_value());
  EXPECT_TRUE(reduce_rows_async(none, value_type::f32, row_reduction::sum, none, {}, no_stream).has_value());
  EXPECT_TRUE(gather_rows_async({0, 0, 64, 64}, {nullptr, 0, 4}, {0, 0, 64, 64}, no_stream).has_value());
}

}  // namespace
}  // namespace tmap::ragged::testing
