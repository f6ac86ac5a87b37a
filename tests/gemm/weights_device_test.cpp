// SPDX-License-Identifier: Apache-2.0
// Tests products that sum over groups of rows on the GPU. Rows after the last group are NaN, so
// that a read of one shows.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "gemm/on_device.hpp"

namespace tmap::gemm::testing {
namespace {

void run(const weight_settings& with) {
  const weight_case made(with);
  const weights_on_device device(made);
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect(made, "m " + std::to_string(with.m) + ", n " + std::to_string(with.n));
}

class grouped_weights : public gemm_test,
                        public ::testing::WithParamInterface<std::tuple<operand_type, input_kind, a_layout, b_layout>> {
 protected:
  static weight_settings settings() {
    weight_settings with;
    std::tie(with.type, with.kind, with.a_layout, with.b_layout) = GetParam();
    with.sizes = of_layout(with, {0, 1, 63, 64, 65, 0, 127, 128, 129, 1000, 0, 3});
    return with;
  }
  /// Rounds sizes up if lines run along the rows: groups then begin at multiples of 8.
  static std::vector<std::int64_t> of_layout(const weight_settings& with, const std::vector<std::int64_t>& sizes) {
    const bool runs_along = with.a_layout == a_layout::m_by_k || with.b_layout == b_layout::n_by_k;
    if (!runs_along) return sizes;
    std::vector<std::int64_t> aligned = aligned_sizes(sizes);
    aligned.back() = sizes.back();
    return aligned;
  }
};

TEST_P(grouped_weights, sizes_around_tiles) {
  run(settings());
}

TEST_P(grouped_weights, every_plan) {
  weight_settings with = settings();
  with.sizes = of_layout(with, {3, 0, 130, 700});
  with.m = 392;
  with.n = 776;
  const weight_case made(with);
  const weights_on_device device(made);
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    device.reset_output();
    TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
    device.expect(made, plan_name(plan));
  }
}

TEST_P(grouped_weights, accumulate) {
  weight_settings with = settings();
  with.accumulate = true;
  run(with);
}

TEST_P(grouped_weights, tails_of_both_sides) {
  for (const std::uint64_t m : {8, 72, 128, 136, 264}) {
    for (const std::uint64_t n : {8, 120, 256, 328}) {
      weight_settings with = settings();
      with.sizes = of_layout(with, {3, 0, 130});
      with.m = m;
      with.n = n;
      with.number = m + n;
      run(with);
    }
  }
}

TEST_P(grouped_weights, every_format_of_offsets) {
  for (const auto format : every_format) {
    for (const std::uint32_t bytes : {4u, 8u}) {
      weight_settings with = settings();
      with.sizes = of_layout(with, {3, 0, 130});
      with.format = format;
      with.offset_bytes = bytes;
      run(with);
    }
  }
}

TEST_P(grouped_weights, outputs_by_a_list_of_addresses) {
  weight_settings with = settings();
  with.lists_c = true;
  run(with);
}

TEST_P(grouped_weights, groups_may_share_rows) {
  weight_settings with = settings();
  with.format = offset_format::begins_and_counts;
  with.sizes = {104, 104, 104};
  weight_case made(with);
  const std::int64_t first = made.offsets()[1];
  const std::vector<std::int64_t> values{first, first + 8, first + 96, 60, 90, 1};
  made.set_offsets(values);
  const weights_on_device device(made);
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect(made, "three groups of the same rows");
}

TEST_P(grouped_weights, empty_groups_are_zero) {
  for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{0, 0, 5}, {5, 0, 0}, {0, 0, 0}, {0}}) {
    weight_settings with = settings();
    with.sizes = of_layout(with, sizes);
    run(with);
  }
}

// Set-up works in rounds, and its blocks share the groups.
TEST_P(grouped_weights, many_small_groups) {
  weight_settings with = settings();
  with.sizes.clear();
  for (std::int64_t g = 0; g < 600; ++g) with.sizes.push_back(g % 7);
  with.sizes = of_layout(with, with.sizes);
  with.m = 64;
  with.n = 72;
  run(with);
}

TEST_P(grouped_weights, hostile_offsets_touch_nothing) {
  weight_settings with = settings();
  with.sizes = {40, 40, 40, 40};
  weight_case made(with);
  const weights_on_device device(made);
  for (const std::vector<std::int64_t>& values : {std::vector<std::int64_t>{40, 20, 120, 160},
                                                  {-5, 10, 20, 30},
                                                  {10, 1 << 30, 20, 40},
                                                  {10, 20, 20, 1000},
                                                  {8, 20, 32, 37},
                                                  {3, 5, 7, 160}}) {
    device.set_offsets(made, values);
    TMAP_ASSERT_OK(device.enqueue(nullptr));
    device.expect(made, "first value " + std::to_string(values[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(types, grouped_weights,
                         ::testing::Combine(::testing::Values(operand_type::bf16, operand_type::f16),
                                            ::testing::Values(input_kind::normal, input_kind::integers),
                                            ::testing::Values(a_layout::k_by_m, a_layout::m_by_k),
                                            ::testing::Values(b_layout::k_by_n, b_layout::n_by_k)));

}  // namespace
}  // namespace tmap::gemm::testing
