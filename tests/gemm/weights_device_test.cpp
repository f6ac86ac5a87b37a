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

class grouped_weights : public gemm_test, public ::testing::WithParamInterface<std::tuple<operand_type, input_kind>> {
 protected:
  static weight_settings settings() {
    weight_settings with;
    std::tie(with.type, with.kind) = GetParam();
    with.sizes = {0, 1, 63, 64, 65, 0, 127, 128, 129, 1000, 0};
    return with;
  }
};

TEST_P(grouped_weights, sizes_around_tiles) {
  run(settings());
}

TEST_P(grouped_weights, every_plan) {
  weight_settings with = settings();
  with.sizes = {3, 0, 130, 700};
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
  with.epilogue = epilogue_kind::accumulate;
  run(with);
}

TEST_P(grouped_weights, tails_of_both_sides) {
  for (const std::uint64_t m : {8, 72, 128, 136, 264}) {
    for (const std::uint64_t n : {8, 120, 256, 328}) {
      weight_settings with = settings();
      with.sizes = {3, 0, 130};
      with.m = m;
      with.n = n;
      with.number = m + n;
      run(with);
    }
  }
}

TEST_P(grouped_weights, every_format_of_offsets) {
  for (const auto format : {offset_format::ends, offset_format::prefix, offset_format::sizes}) {
    for (const std::uint32_t bytes : {4u, 8u}) {
      weight_settings with = settings();
      with.sizes = {3, 0, 130};
      with.format = format;
      with.offset_bytes = bytes;
      run(with);
    }
  }
}

TEST_P(grouped_weights, empty_groups_are_zero) {
  for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{0, 0, 5}, {5, 0, 0}, {0, 0, 0}, {0}}) {
    weight_settings with = settings();
    with.sizes = sizes;
    run(with);
  }
}

// Set-up works in rounds, and its blocks share the groups.
TEST_P(grouped_weights, many_small_groups) {
  weight_settings with = settings();
  with.sizes.clear();
  for (std::int64_t g = 0; g < 600; ++g) with.sizes.push_back(g % 7);
  with.m = 64;
  with.n = 72;
  run(with);
}

TEST_P(grouped_weights, hostile_offsets_touch_nothing) {
  weight_settings with = settings();
  with.sizes = {40, 40, 40, 40};
  weight_case made(with);
  const weights_on_device device(made);
  for (const std::vector<std::int64_t>& values :
       {std::vector<std::int64_t>{40, 20, 120, 160}, {-5, 10, 20, 30}, {10, 1 << 30, 20, 40}, {10, 20, 20, 1000}}) {
    made.set_offsets(values);
    device.upload_offsets(values);
    device.reset_output();
    TMAP_ASSERT_OK(device.enqueue(nullptr));
    device.expect(made, "first value " + std::to_string(values[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(types, grouped_weights,
                         ::testing::Combine(::testing::Values(operand_type::bf16, operand_type::f16),
                                            ::testing::Values(input_kind::normal, input_kind::integers)));

}  // namespace
}  // namespace tmap::gemm::testing
