// SPDX-License-Identifier: Apache-2.0
// Tests the three ways to have a group's map on a GPU, with small tensors. Each case compares every
// sum that a warp computes over a part of a tile.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "apps/samples/group_maps/ways.hpp"
#include "apps/samples/group_maps/workload.hpp"
#include "device/gpu_fixture.hpp"

namespace group_maps {
namespace {

class group_maps_test : public tmap::testing::gpu_test, public ::testing::WithParamInterface<map_way> {
 protected:
  void expect_right(const grouped_tensor& tensor, const std::string& what) const {
    EXPECT_EQ(count_wrong(tensor.sums(), expected_sums(tensor.groups(), GetParam())), 0u) << what;
  }

  /// Walks over poisoned sums and maps.
  void run(const std::vector<std::uint32_t>& rows, std::uint32_t columns, std::uint32_t blocks) const {
    const grouped_tensor tensor(rows, columns, blocks);
    tensor.make_maps(nullptr);
    tensor.walk(GetParam(), nullptr);
    expect_right(tensor, std::to_string(columns) + " columns, " + std::to_string(blocks) + " blocks");
  }
};

TEST_P(group_maps_test, groups_of_all_kinds) {
  const std::vector<std::uint32_t> rows{0, 1, 1, 0, 0, 0, 128, 127, 129, 1000, 0, 5, 300, 256, 31, 33, 64, 0};
  for (const std::uint32_t columns : {64u, 128u, 512u, 2048u}) {
    for (const std::uint32_t blocks : {1u, 2u, 5u, 22u, 200u}) run(rows, columns, blocks);
  }
}

TEST_P(group_maps_test, one_group) {
  for (const std::uint32_t rows : {1u, 127u, 128u, 129u, 5000u}) {
    run({rows}, 64, 1);
    run({rows}, 512, 3);
  }
}

/// Makes one load per group. Each load uses another map than the one before, and slots are
/// rewritten as soon as possible.
TEST_P(group_maps_test, every_load_through_another_map) {
  const grouped_tensor tensor(nearly_full_groups(132 * 64, 1), 64, 132);
  EXPECT_EQ(tensor.most_groups_of_a_block(), 64u);
  for (int i = 0; i < 20; ++i) {
    tensor.poison();
    tensor.make_maps(nullptr);
    tensor.walk(GetParam(), nullptr);
    expect_right(tensor, "walk " + std::to_string(i));
    if (HasFailure()) return;
  }
}

TEST_P(group_maps_test, walks_in_a_row) {
  const grouped_tensor tensor(nearly_full_groups(132 * 16, 2), 128, 132);
  tensor.make_maps(nullptr);
  for (int i = 0; i < 200; ++i) tensor.walk(GetParam(), nullptr);
  expect_right(tensor, "200 walks");
}

INSTANTIATE_TEST_SUITE_P(ways, group_maps_test, ::testing::ValuesIn(all_ways));

}  // namespace
}  // namespace group_maps
