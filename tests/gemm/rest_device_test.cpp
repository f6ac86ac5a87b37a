// SPDX-License-Identifier: Apache-2.0
// Tests on the GPU that what no good group writes becomes zero when a product is asked for it.
// Compares every byte of the output, so that nothing else is written.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "gemm/row_runs.hpp"

namespace tmap::gemm::testing {
namespace {

row_settings clearing(std::vector<std::int64_t> sizes) {
  row_settings with;
  with.kind = input_kind::integers;
  with.zero_rest = true;
  with.sizes = std::move(sizes);
  return with;
}

void run_with_offsets(const row_settings& with, std::vector<std::int64_t> offsets, const char* what) {
  row_case made(with);
  made.set_offsets(std::move(offsets));
  const rows_on_device device(made);
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect(made, what);
}

TEST_F(grouped_rows, rows_of_no_group_become_zero_in_every_format) {
  for (const auto format : every_format) {
    for (const std::uint64_t spare_rows : {0u, 1u, 70u, 3000u}) {
      row_settings with = clearing({0, 1, 63, 0, 129, 300, 0});
      with.format = format;
      with.spare_rows = spare_rows;
      run(with);
    }
  }
}

TEST_F(grouped_rows, rows_of_no_group_become_zero_in_every_width) {
  for (const auto c_type : {result_type::like_operands, result_type::f32}) {
    for (const std::uint64_t n : {8, 72, 520}) {
      for (const std::uint64_t gap : {0, 16}) {
        row_settings with = clearing({5, 130});
        with.c_type = c_type;
        with.n = n;
        with.gap = gap;
        run_every_plan(with);
      }
    }
  }
}

TEST_F(grouped_rows, rows_of_no_group_become_zero_with_gates) {
  for (const bool is_backward : {false, true}) {
    for (const auto columns : {gate_columns::halves, gate_columns::interleaved}) {
      row_settings with = clearing({5, 0, 130});
      with.kind = input_kind::normal;
      with.gates.function = gate_function::silu;
      with.gates.columns = columns;
      with.gates.backward = is_backward;
      const row_case made(with);
      const rows_on_device device(made);
      TMAP_ASSERT_OK(device.enqueue(nullptr));
      device.expect(made, text_of(with));
      // The poison is so near to zero that results that are not exact may be either.
      EXPECT_EQ(device.output().at(made.rows() - 1, with.c_columns() - 1), 0.0F);
    }
  }
}

TEST_F(grouped_rows, rows_before_the_first_group_become_zero) {
  row_settings with = clearing({40, 30});
  with.fills_gaps = true;
  with.format = offset_format::prefix;
  run_with_offsets(with, {25, 40, 70}, "prefix begins at 25");
  with.format = offset_format::begins_and_counts;
  run_with_offsets(with, {30, 50, 20, 10}, "groups at 30 and 50 without a gap");
}

TEST_F(grouped_rows, rows_of_bad_groups_become_zero) {
  row_settings with = clearing(std::vector<std::int64_t>(600, 3));
  with.n = 64;
  with.k = 32;
  std::vector<std::int64_t> ends = row_case(with).offsets();
  ends[300] = ends[299] - 1;
  ends[500] = std::int64_t{1} << 30;
  run_with_offsets(with, ends, "ends 300 and 500 are wrong");
  with.format = offset_format::sizes;
  std::vector<std::int64_t> sizes(600, 3);
  sizes[400] = 100000;
  run_with_offsets(with, sizes, "size 400 is too large");
  sizes.assign(600, 3);
  sizes[0] = -1;
  run_with_offsets(with, sizes, "size 0 is negative");
}

TEST_F(grouped_rows, all_rows_become_zero_without_a_good_group) {
  run(clearing({0, 0, 0}));
  row_settings with = clearing({20, 20});
  run_with_offsets(with, {-5, -9}, "both ends are negative");
}

TEST_F(grouped_rows, rows_of_no_group_become_zero_after_thousands_of_groups) {
  for (const auto format : {offset_format::ends, offset_format::begins_and_counts}) {
    row_settings with = clearing(std::vector<std::int64_t>(5000, 2));
    with.format = format;
    with.n = 64;
    with.k = 32;
    run(with);
  }
}

TEST_F(grouped_rows, sums_of_bad_groups_become_zero) {
  for (const auto c_type : {result_type::like_operands, result_type::f32}) {
    weight_settings with;
    with.kind = input_kind::integers;
    with.zero_rest = true;
    with.c_type = c_type;
    with.sizes = {100, 0, 30, 70, 5};
    weight_case made(with);
    made.set_offsets({100, 90, 130, 1 << 30, 200});
    const weights_on_device device(made);
    TMAP_ASSERT_OK(device.enqueue(nullptr));
    device.expect(made, "ends 1 and 3 are wrong");
  }
}

}  // namespace
}  // namespace tmap::gemm::testing
