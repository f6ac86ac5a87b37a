// SPDX-License-Identifier: Apache-2.0
// Tests products with groups of columns on the GPU. Columns of B that belong to no group are NaN,
// so that a read of one shows.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "gemm/on_device.hpp"

namespace tmap::gemm::testing {
namespace {

class grouped_columns : public gemm_test,
                        public ::testing::WithParamInterface<std::tuple<operand_type, input_kind, a_layout, b_layout>> {
 protected:
  static column_settings settings() {
    column_settings with;
    std::tie(with.type, with.kind, with.a_layout, with.b_layout) = GetParam();
    with.sizes = of_layout(with, {0, 1, 63, 64, 65, 0, 127, 128, 129, 700, 0, 3});
    return with;
  }
  /// Rounds sizes up if lines of B run along the columns: groups then begin at multiples of 8.
  static std::vector<std::int64_t> of_layout(const column_settings& with, const std::vector<std::int64_t>& sizes) {
    if (with.b_layout == b_layout::n_by_k) return sizes;
    std::vector<std::int64_t> aligned = aligned_sizes(sizes);
    aligned.back() = sizes.back();
    return aligned;
  }
  static void run(const column_settings& with, std::optional<std::uint32_t> plan = {}) {
    const column_case made(with);
    const columns_on_device device(made);
    TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
    device.expect(made, "m " + std::to_string(with.m) + ", k " + std::to_string(with.k));
  }
};

TEST_P(grouped_columns, sizes_around_tiles) {
  run(settings());
}

TEST_P(grouped_columns, every_plan) {
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    column_settings with = settings();
    with.m = 392;
    run(with, plan);
  }
}

TEST_P(grouped_columns, every_format_of_offsets) {
  for (const auto format : every_format) {
    for (const std::uint32_t bytes : {4u, 8u}) {
      column_settings with = settings();
      with.sizes = of_layout(with, {3, 0, 130, 17});
      with.format = format;
      with.offset_bytes = bytes;
      run(with);
    }
  }
}

TEST_P(grouped_columns, tails_of_rows_and_of_k) {
  for (const std::uint64_t m : {1, 7, 64, 129}) {
    for (const std::uint64_t k : {8, 72, 200}) {
      column_settings with = settings();
      with.sizes = of_layout(with, {3, 0, 130});
      with.m = m;
      with.k = k;
      with.number = m + k;
      run(with);
    }
  }
}

TEST_P(grouped_columns, hostile_offsets_touch_nothing) {
  column_settings with = settings();
  with.sizes = {40, 40, 40, 40};
  column_case made(with);
  const columns_on_device device(made);
  for (const std::vector<std::int64_t>& values : {std::vector<std::int64_t>{40, 24, 120, 160},
                                                  {-5, 10, 16, 32},
                                                  {16, 1 << 30, 24, 40},
                                                  {16, 24, 24, 1000},
                                                  {8, 20, 32, 36},
                                                  {3, 5, 7, 160}}) {
    device.set_offsets(made, values);
    TMAP_ASSERT_OK(device.enqueue(nullptr));
    device.expect(made, "first value " + std::to_string(values[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(types, grouped_columns,
                         ::testing::Combine(::testing::Values(operand_type::bf16, operand_type::f16),
                                            ::testing::Values(input_kind::normal, input_kind::integers),
                                            ::testing::Values(a_layout::m_by_k, a_layout::k_by_m),
                                            ::testing::Values(b_layout::n_by_k, b_layout::k_by_n)));

}  // namespace
}  // namespace tmap::gemm::testing
