// SPDX-License-Identifier: Apache-2.0
// Tests groups over addresses that the caller knows.
#include <tmap/peer_group.hpp>

#include <gtest/gtest.h>

#include <utility>

#include "support/refusal.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t mega = 1 << 20;

result<peer_group> two_ranks(std::uint64_t bytes = mega) {
  return peer_group::from_addresses(1, {0x10000000, 0x70000000}, bytes);
}

TEST(group_of_addresses, knows_its_rank_and_where_each_window_lies) {
  result<peer_group> group = two_ranks();
  ASSERT_TRUE(group.has_value());
  EXPECT_EQ(group->rank(), 1u);
  EXPECT_EQ(group->ranks(), 2u);
  const result<peer_memory> memory = group->allocate(5000);
  ASSERT_TRUE(memory.has_value());
  const peer_memory_ref& ref = memory->ref();
  EXPECT_EQ(ref.rank, 1u);
  EXPECT_EQ(ref.ranks, 2u);
  EXPECT_EQ(ref.bytes, 5000u);
  EXPECT_EQ(ref.windows[0], 0x10000000u);
  EXPECT_EQ(ref.address(0), 0x10000000u + peer_header_bytes);
  EXPECT_EQ(ref.address(1, 48), 0x70000000u + peer_header_bytes + 48);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()), ref.address(1));
  for (std::uint32_t i = 2; i < max_group_ranks; ++i) EXPECT_EQ(ref.windows[i], 0u);
}

TEST(group_of_addresses, windows_follow_one_another_and_never_overlap) {
  result<peer_group> group = two_ranks();
  const peer_memory first = group->allocate(5000).value();
  const peer_memory second = group->allocate(1).value();
  const peer_memory third = group->allocate(1).value();
  const std::uint64_t end = first.ref().address(0, first.bytes());
  EXPECT_GE(second.ref().windows[0], end);
  EXPECT_LT(second.ref().windows[0], end + 256);
  EXPECT_EQ(second.ref().windows[0] % 256, 0u);
  EXPECT_EQ(third.ref().windows[0], second.ref().windows[0] + peer_header_bytes + 256);
  EXPECT_EQ(second.ref().windows[1] - second.ref().windows[0], 0x60000000u);
}

TEST(group_of_addresses, takes_all_of_the_memory_and_no_more) {
  result<peer_group> group = two_ranks();
  expect_refused(group->allocate(mega - peer_header_bytes + 1), "bytes", mega - peer_header_bytes + 1,
                 mega - peer_header_bytes, "one byte too many");
  EXPECT_TRUE(group->allocate(mega - peer_header_bytes).has_value());
  expect_refused(group->allocate(1), "bytes", 1, 0, "nothing is left");
  expect_refused(two_ranks()->allocate(0), "bytes");
  expect_refused(two_ranks()->allocate(~std::uint64_t{0}), "bytes");
}

TEST(group_of_addresses, takes_all_of_memory_whose_size_is_no_multiple) {
  result<peer_group> group = two_ranks(peer_header_bytes + 100);
  EXPECT_TRUE(group->allocate(100).has_value());
  expect_refused(group->allocate(1), "bytes", 1, 0, "nothing is left");
}

TEST(group_of_addresses, refuses_what_cannot_be) {
  const auto make = [](std::uint32_t rank, const std::vector<device_address>& windows, std::uint64_t bytes) {
    return peer_group::from_addresses(rank, windows, bytes);
  };
  expect_refused(make(0, {}, mega), "windows.size()");
  expect_refused(make(0, std::vector<device_address>(max_group_ranks + 1, 4096), mega), "windows.size()");
  expect_refused(make(2, {0x10000000, 0x70000000}, mega), "rank", 2, 1, "two ranks");
  expect_refused(make(0, {0x10000000, std::uint64_t{0}}, mega), "windows[1]");
  expect_refused(make(0, {0x10000000, 0x70000080}, mega), "windows[1]");
  expect_refused(make(0, {0x10000000, 0x10000000}, mega), "windows[1]");
  expect_refused(make(0, {0x10000000, 0x70000000, 0x10000000 - mega + 256}, mega), "windows[2]");
  expect_refused(make(0, {~std::uint64_t{0} - 255}, mega), "windows[0]");
  expect_refused(make(0, {0x10000000}, peer_header_bytes), "window_bytes", peer_header_bytes, peer_header_bytes + 1,
                 "no byte of the user");
  EXPECT_TRUE(make(0, {0x10000000, 0x10000000 + mega}, mega).has_value()) << "side by side";
  EXPECT_TRUE(make(0, {0x10000000}, peer_header_bytes + 1).has_value()) << "a group of one";
  EXPECT_TRUE(make(0, {~std::uint64_t{0} - mega + 1}, mega).has_value()) << "up to the last address";
}

TEST(group_of_addresses, a_moved_group_and_window_are_whole) {
  result<peer_group> group = two_ranks();
  peer_group moved{std::move(*group)};
  expect_refused(group->allocate(100), "peer_group");
  EXPECT_FALSE(group->check().has_value());
  result<peer_memory> memory = moved.allocate(100);
  ASSERT_TRUE(memory.has_value() && *memory);
  peer_memory taken{std::move(*memory)};
  EXPECT_FALSE(*memory);
  EXPECT_EQ(memory->data(), nullptr);
  EXPECT_EQ(memory->ref().ranks, 0u);
  EXPECT_EQ(taken.ref().address(1), 0x70000000u + peer_header_bytes);
  taken = peer_memory{};
  EXPECT_FALSE(taken);
}

TEST(group_of_addresses, an_address_of_the_own_window_moves_to_its_owner) {
  const peer_memory memory = two_ranks()->allocate(5000).value();
  const peer_memory_ref& ref = memory.ref();
  const std::uint64_t own = ref.address(1);
  EXPECT_EQ(ref.at_owner(0, own), ref.address(0));
  EXPECT_EQ(ref.at_owner(0, own + 4999), ref.address(0, 4999));
  EXPECT_EQ(ref.at_owner(1, own + 48), own + 48);
  EXPECT_EQ(ref.at_owner(0, own + 5000), 0u) << "after the last byte";
  EXPECT_EQ(ref.at_owner(0, own - 1), 0u) << "in the header";
  EXPECT_EQ(ref.at_owner(0, ref.address(0)), 0u) << "in the owner's window already";
  EXPECT_EQ(ref.at_owner(2, own), 0u);
  EXPECT_EQ(ref.at_owner(~0u, own), 0u);
  EXPECT_EQ(ref.at_owner(0, 0), 0u) << "as rows that do not exist";
  EXPECT_EQ(ref.at_owner(0, ~std::uint64_t{0}), 0u);
  EXPECT_EQ(peer_memory_ref{}.at_owner(0, peer_header_bytes), 0u) << "an empty window";
}

TEST(group_of_addresses, a_window_outlives_its_group) {
  peer_memory memory;
  {
    result<peer_group> group = two_ranks();
    memory = group->allocate(100).value();
  }
  EXPECT_EQ(memory.ref().address(0), 0x10000000u + peer_header_bytes);
}

}  // namespace
}  // namespace tmap::testing
