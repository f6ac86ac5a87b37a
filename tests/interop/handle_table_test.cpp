// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/handle_table.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace tmap::testing {
namespace {

using interop::handle_kind;
using table = interop::handle_table<const int>;

std::shared_ptr<const int> number(int n) {
  return std::make_shared<const int>(n);
}

TEST(handle_table, finds_what_was_put_in) {
  table t{handle_kind::service};
  const std::uint64_t one = t.insert(number(1));
  const std::uint64_t two = t.insert(number(2));
  EXPECT_NE(one, 0u);
  EXPECT_NE(one, two);
  EXPECT_EQ(*t.find(one), 1);
  EXPECT_EQ(*t.find(two), 2);
  EXPECT_EQ(*t.remove(one), 1);
  EXPECT_EQ(t.find(one), nullptr);
  EXPECT_EQ(t.remove(one), nullptr);
  EXPECT_EQ(*t.find(two), 2);
}

TEST(handle_table, a_handle_never_names_a_second_object) {
  table t{handle_kind::service};
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t handle = t.insert(number(i));
    EXPECT_TRUE(seen.insert(handle).second);
    t.remove(handle);
  }
  for (const std::uint64_t handle : seen) ASSERT_EQ(t.find(handle), nullptr);
}

TEST(handle_table, a_place_whose_generations_are_used_up_is_given_up) {
  table t{handle_kind::service, ~std::uint32_t{0}};
  const std::uint64_t last = t.insert(number(1));
  t.remove(last);
  const std::uint64_t next = t.insert(number(2));
  EXPECT_NE(next >> 32, last >> 32);
  EXPECT_EQ(t.find(last), nullptr);
  EXPECT_EQ(t.find(last & ~std::uint64_t{0xffffffff}), nullptr);  // generation 0, to which the count wraps
  EXPECT_EQ(*t.find(next), 2);
}

TEST(handle_table, handles_of_other_kinds_and_wild_ones_name_nothing) {
  table services{handle_kind::service};
  table batches{handle_kind::batch};
  const std::uint64_t service = services.insert(number(1));
  const std::uint64_t batch = batches.insert(number(2));
  ASSERT_EQ(services.find(batch), nullptr);
  ASSERT_EQ(batches.find(service), nullptr);
  ASSERT_EQ(services.remove(batch), nullptr);
  EXPECT_EQ(services.find(0), nullptr);
  EXPECT_EQ(services.find(~std::uint64_t{0}), nullptr);
  for (int bit = 0; bit < 64; ++bit) EXPECT_EQ(services.find(service ^ std::uint64_t{1} << bit), nullptr) << bit;
  EXPECT_EQ(*services.find(service), 1);
}

TEST(handle_table, a_reserved_place_names_nothing_until_it_is_filled) {
  table t{handle_kind::service};
  const std::uint64_t handle = t.reserve();
  EXPECT_NE(handle, 0u);
  EXPECT_EQ(t.find(handle), nullptr);
  EXPECT_EQ(t.remove(handle), nullptr);
  t.fill(handle, number(7));
  EXPECT_EQ(*t.find(handle), 7);
  EXPECT_EQ(*t.remove(handle), 7);
}

TEST(handle_table, a_reserved_place_that_is_given_back_is_used_again) {
  table t{handle_kind::service};
  const std::uint64_t handle = t.reserve();
  t.fill(handle, nullptr);
  const std::uint64_t next = t.insert(number(8));
  EXPECT_NE(next, handle);
  EXPECT_EQ(next >> 32, handle >> 32);
  EXPECT_EQ(t.find(handle), nullptr);
  EXPECT_EQ(*t.find(next), 8);
}

TEST(handle_table, what_was_found_outlives_its_handle) {
  table t{handle_kind::service};
  const std::uint64_t handle = t.insert(number(7));
  const auto found = t.find(handle);
  t.remove(handle);
  EXPECT_EQ(*found, 7);
}

TEST(handle_table, each_of_eight_threads_meets_its_own_objects) {
  table t{handle_kind::batch};
  std::atomic<int> wrong{};
  std::vector<std::thread> threads;
  for (int n = 0; n < 8; ++n) {
    threads.emplace_back([&, n] {
      for (int round = 0; round < 2000; ++round) {
        const std::uint64_t handle = t.insert(number(n));
        const auto found = t.find(handle);
        const auto removed = t.remove(handle);
        wrong += found != nullptr && *found == n && removed == found && t.find(handle) == nullptr ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(handle_table, of_eight_threads_one_removes) {
  table t{handle_kind::batch};
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t handle = t.insert(number(round));
    std::atomic<int> removals{};
    std::vector<std::thread> threads;
    for (int n = 0; n < 8; ++n) threads.emplace_back([&] { removals += t.remove(handle) != nullptr ? 1 : 0; });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(removals, 1);
  }
}

}  // namespace
}  // namespace tmap::testing
