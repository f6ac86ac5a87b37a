// SPDX-License-Identifier: Apache-2.0
// Tests that the encoder makes maps for every matrix of a pointer_problem that is judged good.
// Otherwise the matrix would read as zeros.
#include <gtest/gtest.h>

#include <tmap/patch_rules.hpp>

#include <cstdint>
#include <random>

#include "kernels/gemm/judge_matrix.hpp"

namespace tmap::gemm::testing {
namespace {

constexpr std::uint64_t limit = std::uint64_t{1} << 57;
constexpr auto address_fault = static_cast<std::uint32_t>(fault::address);
constexpr auto pitch_fault = static_cast<std::uint32_t>(fault::pitch);

/// Returns whether the encoder makes a map of the matrix.
bool has_map(std::uint64_t address, std::uint64_t pitch, std::uint64_t rows, std::uint64_t columns) {
  tensor_spec spec;
  spec.type = element_type::bf16;
  spec.rank = 2;
  spec.global_address = address;
  spec.global_dim[0] = columns;
  spec.global_dim[1] = rows;
  spec.global_stride_bytes[0] = pitch;
  spec.box_dim[0] = spec.box_dim[1] = 64;
  return judge_patched(spec, patch_extents(2), nullptr, 0).is_good();
}

std::uint32_t judge(std::uint64_t address, std::uint64_t pitch, std::uint64_t rows, std::uint64_t columns) {
  return kernels::judge_matrix(address, pitch, rows, 2 * columns);
}

TEST(judge_matrix, the_end_of_all_addresses) {
  EXPECT_EQ(judge(limit, 64, 1, 32), address_fault);
  EXPECT_EQ(judge(limit + 16, 64, 1, 32), address_fault);
  EXPECT_EQ(judge(~std::uint64_t{15}, 64, 2, 32), address_fault) << "the sum wraps";
  EXPECT_EQ(judge(limit - 64, 64, 1, 32), 0u);
  EXPECT_EQ(judge(limit - 64, 64, 2, 32), address_fault);
  EXPECT_EQ(judge(limit - 128, 64, 2, 32), 0u);
  EXPECT_EQ(judge(limit - 112, 64, 2, 32), address_fault);
  EXPECT_EQ(judge(16, (std::uint64_t{1} << 40) - 16, std::uint64_t{1} << 31, 32), address_fault);
  EXPECT_EQ(judge(limit - 16, 64, 0, 0), 0u) << "of unknown extents";
}

TEST(judge_matrix, one_fault_each) {
  EXPECT_EQ(judge(0, 64, 1, 32), address_fault);
  EXPECT_EQ(judge(4096 + 8, 64, 1, 32), address_fault);
  EXPECT_EQ(judge(4096, 72, 1, 32), pitch_fault);
  EXPECT_EQ(judge(4096, 48, 1, 32), pitch_fault);
  EXPECT_EQ(judge(4096, std::uint64_t{1} << 40, 1, 32), pitch_fault);
  EXPECT_EQ(judge(8, 8, 1, 32), address_fault | pitch_fault);
}

TEST(judge_matrix, good_ones_have_maps) {
  std::mt19937_64 random{7};
  const auto up_to = [&](int bits) { return random() >> (63 - random() % static_cast<unsigned>(bits)); };
  std::uint64_t good = 0;
  for (int i = 0; i < 300000; ++i) {
    const std::uint64_t columns = 8 * (1 + up_to(20));
    const std::uint64_t rows = 1 + up_to(31);
    const std::uint64_t pitch = i % 3 == 0 ? 2 * columns : 16 * up_to(37);
    std::uint64_t address = 16 * up_to(55);
    if (i % 2 == 0) address = limit - 16 * up_to(40);
    const bool is_good = judge(address, pitch, rows, columns) == 0;
    good += is_good ? 1 : 0;
    ASSERT_EQ(is_good, has_map(address, pitch, rows, columns) && pitch >= 2 * columns)
        << address << " " << pitch << " " << rows << " " << columns;
  }
  EXPECT_GT(good, 10000u);
}

}  // namespace
}  // namespace tmap::gemm::testing
