// SPDX-License-Identifier: Apache-2.0
// Tests products that have matrices of their own on the GPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <tuple>
#include <vector>

#include "gemm/on_device.hpp"
#include "support/run_seed.hpp"

namespace tmap::gemm::testing {
namespace {

class grouped_pointers : public gemm_test,
                         public ::testing::WithParamInterface<
                             std::tuple<operand_type, a_layout, b_layout, result_type, bool, input_kind>> {
 protected:
  static pointer_settings settings() {
    pointer_settings with;
    std::tie(with.type, with.a_layout, with.b_layout, with.c_type, with.accumulate, with.kind) = GetParam();
    return with;
  }
};

TEST_P(grouped_pointers, sizes_around_tiles) {
  pointer_settings with = settings();
  with.sizes = {{1, 8, 8},       {63, 256, 64},  {64, 128, 72},  {65, 264, 200}, {127, 40, 1032},
                {128, 256, 128}, {129, 520, 64}, {1000, 64, 96}, {3, 1024, 8}};
  pointers_on_device device(with);
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect_all();
}

TEST_P(grouped_pointers, every_plan) {
  pointer_settings with = settings();
  with.sizes = {{1, 8, 8}, {400, 520, 0}, {300, 1000, 200}, {129, 264, 72}, {520, 776, 328}, {448, 512, 64}};
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    pointers_on_device device(with);
    TMAP_ASSERT_OK(device.enqueue(nullptr, plan));
    device.expect_all();
  }
}

TEST_P(grouped_pointers, empty_ones) {
  pointer_settings with = settings();
  with.sizes = {{0, 64, 64}, {40, 64, 64}, {40, 0, 64}, {40, 64, 0}, {5, 8, 8}};
  pointers_on_device device(with);
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect_all();
}

INSTANTIATE_TEST_SUITE_P(all, grouped_pointers,
                         ::testing::Combine(::testing::Values(operand_type::bf16, operand_type::f16),
                                            ::testing::Values(a_layout::m_by_k, a_layout::k_by_m),
                                            ::testing::Values(b_layout::n_by_k, b_layout::k_by_n),
                                            ::testing::Values(result_type::like_operands, result_type::f32),
                                            ::testing::Bool(),
                                            ::testing::Values(input_kind::normal, input_kind::integers)));

class pointer_faults : public gemm_test {
 protected:
  static pointer_settings settings() {
    pointer_settings with;
    with.kind = input_kind::integers;
    for (int g = 0; g < 16; ++g) with.sizes.push_back({65, 72, 40});
    return with;
  }
  static group_status bad(fault f) { return {static_cast<std::uint32_t>(f)}; }
};

TEST_F(pointer_faults, each_is_named_and_touches_nothing) {
  pointers_on_device device(settings());
  pointer_columns& columns = device.columns();
  std::vector<group_status> want(16);
  columns.m[1] = -1;
  want[1] = bad(fault::rows);
  columns.m[2] = std::int64_t{1} << 40;
  want[2] = bad(fault::rows);
  columns.n[3] = 71;
  want[3] = bad(fault::extent);
  columns.k[4] = -8;
  want[4] = bad(fault::extent);
  columns.a[5] += 8;
  want[5] = bad(fault::address);
  columns.b[6] = 0;
  want[6] = bad(fault::address);
  columns.c[7] = 0;
  want[7] = bad(fault::address);
  columns.a_pitch[8] = 64;
  want[8] = bad(fault::pitch);
  columns.b_pitch[9] += 8;
  want[9] = bad(fault::pitch);
  columns.c_pitch[10] = -160;
  want[10] = bad(fault::pitch);
  columns.c_pitch[11] = std::int64_t{1} << 40;
  want[11] = bad(fault::pitch);
  // No GPU has addresses from 2^57 on. The encoder refuses such maps, which read as zeros.
  columns.a[12] = std::uint64_t{1} << 57;
  want[12] = bad(fault::address);
  columns.b[13] = (std::uint64_t{1} << 57) - 16;
  want[13] = bad(fault::address);
  columns.c[14] = ~std::uint64_t{15};
  want[14] = bad(fault::address);
  device.upload();
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect(want);
}

// Set-up works in rounds, and its blocks share the products.
TEST_F(pointer_faults, far_behind_the_first) {
  pointer_settings with = settings();
  with.sizes.clear();
  for (std::int64_t g = 0; g < 600; ++g) with.sizes.push_back({1 + g % 9, 8 + g % 3 * 8, 8 + g % 4 * 8});
  pointers_on_device device(with);
  std::vector<group_status> want(600);
  device.columns().m[300] = -1;
  want[300] = bad(fault::rows);
  device.columns().b[599] = 0;
  want[599] = bad(fault::address);
  device.upload();
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect(want);
}

TEST_F(pointer_faults, random_numbers_hurt_nobody) {
  std::mt19937_64 random = tmap::testing::run_random(11);
  for (int round = 0; round < 50; ++round) {
    pointers_on_device device(settings());
    pointer_columns& columns = device.columns();
    std::vector<group_status> want(16);
    for (std::size_t g = 0; g < 16; g += 2) {
      // Odd addresses are bad, no matter what the other numbers are.
      columns.a[g] = random() | 1;
      columns.b[g] = random() | 1;
      columns.c[g] = random() | 1;
      want[g] = bad(fault::address);
    }
    device.upload();
    TMAP_ASSERT_OK(device.enqueue(nullptr));
    device.expect(want);
  }
}

}  // namespace
}  // namespace tmap::gemm::testing
