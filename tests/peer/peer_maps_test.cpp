// SPDX-License-Identifier: Apache-2.0
// Tests maps whose last coordinate is the rank.
#include <tmap/peer_group.hpp>
#include <tmap/peer_maps.hpp>
#include <tmap/validate.hpp>

#include <gtest/gtest.h>

#include "support/refusal.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t user_room = 1 << 20;
constexpr std::uint64_t stride_of_windows = std::uint64_t{1} << 37;
constexpr std::uint64_t first_window = 0x10020400000;

peer_memory window_of(std::uint32_t rank, const std::vector<device_address>& windows) {
  return peer_group::from_addresses(rank, windows, user_room + peer_header_bytes)->allocate(user_room).value();
}
peer_memory four_windows(std::uint32_t rank) {
  return window_of(rank, {first_window, first_window + stride_of_windows, first_window + 2 * stride_of_windows,
                          first_window + 3 * stride_of_windows});
}

/// Returns a matrix of 64 columns whose rows are 512 bytes apart.
tensor_spec matrix_at(std::uint64_t address) {
  tensor_spec spec;
  spec.global_address = address;
  spec.type = element_type::f32;
  spec.rank = 2;
  spec.global_dim[0] = 64;
  spec.global_dim[1] = 100;
  spec.global_stride_bytes[0] = 512;
  spec.box_dim[0] = 32;
  spec.box_dim[1] = 16;
  return spec;
}

TEST(all_ranks_spec, is_the_same_on_every_rank_and_a_legal_map) {
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const peer_memory window = four_windows(rank);
    const auto all = all_ranks_spec(matrix_at(window.ref().address(rank, 4096)), window);
    ASSERT_TRUE(all.has_value()) << to_string(all.error());
    EXPECT_EQ(all->rank, 3u);
    EXPECT_EQ(all->global_address, window.ref().address(0, 4096)) << rank;
    EXPECT_EQ(all->global_dim[2], 4u);
    EXPECT_EQ(all->global_stride_bytes[0], 512u);
    EXPECT_EQ(all->global_stride_bytes[1], stride_of_windows);
    EXPECT_EQ(all->box_dim[1], 16u);
    EXPECT_EQ(all->box_dim[2], 1u);
    EXPECT_TRUE(validate(*all).empty());
  }
}

TEST(all_ranks_spec, serves_a_group_of_one) {
  const peer_memory window = window_of(0, {first_window});
  const auto all = all_ranks_spec(matrix_at(window.ref().address(0)), window);
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->global_dim[2], 1u);
  EXPECT_TRUE(validate(*all).empty());
}

TEST(all_ranks_spec, needs_windows_at_one_distance_in_the_order_of_ranks) {
  const std::vector<std::vector<device_address>> wrong{
      {first_window, first_window + stride_of_windows, first_window + 3 * stride_of_windows},
      {first_window + stride_of_windows, first_window},
      {first_window, first_window + (std::uint64_t{1} << 40)},
  };
  for (const auto& windows : wrong) {
    const peer_memory window = window_of(0, windows);
    expect_refused(all_ranks_spec(matrix_at(window.ref().address(0)), window), "window");
  }
  expect_refused(all_ranks_spec(matrix_at(first_window), {}), "window");
}

TEST(all_ranks_spec, needs_a_tensor_that_lies_in_this_window_and_has_a_dim_left) {
  const peer_memory window = four_windows(1);
  const std::uint64_t begin = window.ref().address(1);
  tensor_spec full = matrix_at(begin);
  full.rank = 5;
  expect_refused(all_ranks_spec(full, window), "local.rank");
  full.rank = 0;
  expect_refused(all_ranks_spec(full, window), "local.rank");
  const std::uint64_t reach = 99 * 512 + 256;
  EXPECT_TRUE(all_ranks_spec(matrix_at(begin + user_room - reach), window).has_value());
  expect_refused(all_ranks_spec(matrix_at(begin + user_room - reach + 16), window), "local");
  expect_refused(all_ranks_spec(matrix_at(begin - 16), window), "local");
  expect_refused(all_ranks_spec(matrix_at(window.ref().address(0)), window), "local");
}

}  // namespace
}  // namespace tmap::testing
