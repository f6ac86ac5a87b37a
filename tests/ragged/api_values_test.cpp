// SPDX-License-Identifier: Apache-2.0
// Tests the arguments that single operations refuse in addition to their sides, with the same
// message on both engines, and operations without tensors.
#include <tmap/ragged.hpp>

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
    expect_both_refuse([&](auto& with) { return gather_rows(source, rows, destination, with); }, name, "gather");
  };
  const auto scatters = [](const std::string& name, const row_matrix& source, const row_index& rows,
                           const row_matrix& destination) {
    expect_both_refuse([&](auto& with) { return scatter_rows(source, rows, destination, with); }, name, "scatter");
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
    expect_both_refuse([&](auto& with) { return cast(source, destination, values, with); }, name);
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
  expect_both_refuse([&](auto& with) { return transpose(row, row, with); }, "source.rank");
  expect_both_refuse([&](auto& with) { return saxpy(1, two, four, with); }, "x.element_bytes");
  expect_both_refuse([&](auto& with) { return saxpy(1, four, two, with); }, "y.element_bytes");
  expect_both_refuse([&](auto& with) { return max_pool_1d(two, two, 1, with); }, "source.element_bytes");
  const auto reduced = [&](const std::string& name, value_type type, row_reduction how, const tensor_batch& source,
                           const tensor_batch& to) {
    expect_both_refuse([&](auto& with) { return reduce_rows(source, type, how, to, with); }, name);
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
  EXPECT_TRUE(copy(none, none, on_a_stream()).has_value());
  EXPECT_TRUE(pack(none, some_packed(), on_a_stream()).has_value());
  EXPECT_TRUE(unpack(some_packed(), none, on_a_stream()).has_value());
  EXPECT_TRUE(pad(none, some_dense(), {}, on_a_stream()).has_value());
  EXPECT_TRUE(unpad(some_dense(), none, on_a_stream()).has_value());
  EXPECT_TRUE(transpose(none, none, on_a_stream()).has_value());
  EXPECT_TRUE(saxpy(1, none, none, on_a_stream()).has_value());
  EXPECT_TRUE(max_pool_1d(none, none, 15, on_a_stream()).has_value());
  EXPECT_TRUE(cast(none, none, {value_type::f32, value_type::f32}, on_a_stream()).has_value());
  EXPECT_TRUE(reduce_rows(none, value_type::f32, row_reduction::sum, none, on_a_stream()).has_value());
  EXPECT_TRUE(gather_rows({0, 0, 64, 64}, {nullptr, 0, 4}, {0, 0, 64, 64}, on_a_stream()).has_value());
}

}  // namespace
}  // namespace tmap::ragged::testing
