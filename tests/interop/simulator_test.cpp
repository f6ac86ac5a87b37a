// SPDX-License-Identifier: Apache-2.0
// Tests the simulator of C: the same tiles as in C++, and what it refuses.
#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <numeric>

#include "interop/refuses_bad_structs.hpp"

namespace tmap::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

/// Holds eight columns per row, of which a map shows six. The box is 4 by 2.
class c_simulator : public ::testing::Test {
 protected:
  void SetUp() override {
    std::iota(memory_.begin(), memory_.end(), 0u);
    const std::uint64_t dims[] = {6, 3};
    const std::uint32_t box[] = {4, 2};
    ASSERT_EQ(tmap_packed_spec(TMAP_U32, window_.base, 2, dims, box, &spec_), TMAP_OK);
    spec_.global_stride_bytes[0] = 32;
    ASSERT_EQ(tmap_encode_bits(&spec_, &map_), TMAP_OK);
    tile_.struct_size = sizeof tile_;
    tile_.rank = 2;
    tile_.data = shared_.data();
    tile_.bytes = sizeof shared_;
  }

  std::array<std::uint32_t, 24> memory_{};
  alignas(128) std::array<std::uint32_t, 8> shared_{};
  tmap_memory_window window_{std::uint64_t{1} << 30, memory_.data(), sizeof memory_};
  tmap_tensor_spec spec_{};
  tmap_tensor_map map_{};
  tmap_tile tile_{};
};

TEST_F(c_simulator, tells_the_sizes_of_a_tile) {
  std::uint64_t bytes = 77;
  std::uint64_t footprint = 77;
  refuses_bad_structs<tmap_tensor_spec>(spec_, [&](auto* s) { return tmap_tile_sizes(s, &bytes, &footprint); });
  EXPECT_EQ(refused(tmap_tile_sizes(&spec_, nullptr, &footprint)), "bytes");
  EXPECT_EQ(refused(tmap_tile_sizes(&spec_, &bytes, nullptr)), "footprint");
  EXPECT_EQ(bytes + footprint, 154u);
  spec_.swizzle = TMAP_SWIZZLE_128B;
  EXPECT_EQ(tmap_tile_sizes(&spec_, &bytes, &footprint), TMAP_OK);
  EXPECT_EQ(bytes, 32u);
  EXPECT_EQ(footprint, 256u);
}

TEST_F(c_simulator, loads_and_fills) {
  std::uint64_t received = 0;
  tile_.coordinates[0] = 4;
  tile_.coordinates[1] = 1;
  ASSERT_EQ(tmap_simulate_load(&map_, &window_, 1, &tile_, &received), TMAP_OK);
  EXPECT_EQ(received, 32u);
  EXPECT_THAT(shared_, ElementsAre(12, 13, 0, 0, 20, 21, 0, 0));
  EXPECT_EQ(tmap_simulate_load(&map_, &window_, 1, &tile_, nullptr), TMAP_OK);
}

TEST_F(c_simulator, windows_have_sizes_of_their_own) {
  std::array<std::uint32_t, 2> before{};
  const tmap_memory_window two[] = {{window_.base - 4096, before.data(), sizeof before}, window_};
  tile_.coordinates[1] = 1;
  ASSERT_EQ(tmap_simulate_load(&map_, two, 2, &tile_, nullptr), TMAP_OK);
  EXPECT_THAT(shared_, ElementsAre(8, 9, 10, 11, 16, 17, 18, 19));
}

TEST_F(c_simulator, stores_and_reduces) {
  shared_.fill(100);
  ASSERT_EQ(tmap_simulate_store(&map_, &window_, 1, &tile_), TMAP_OK);
  EXPECT_EQ(memory_[3], 100u);
  EXPECT_EQ(memory_[4], 4u);
  EXPECT_EQ(memory_[8], 100u);
  ASSERT_EQ(tmap_simulate_reduce(TMAP_REDUCE_ADD, &map_, &window_, 1, &tile_), TMAP_OK);
  EXPECT_EQ(memory_[3], 200u);
  ASSERT_EQ(tmap_simulate_reduce(TMAP_REDUCE_XOR, &map_, &window_, 1, &tile_), TMAP_OK);
  EXPECT_EQ(memory_[3], 200u ^ 100u);
  EXPECT_EQ(memory_[16], 16u);
}

TEST_F(c_simulator, says_what_would_end_a_context) {
  window_.bytes = 64;
  tile_.coordinates[1] = 1;
  EXPECT_EQ(tmap_simulate_load(&map_, &window_, 1, &tile_, nullptr), TMAP_ILLEGAL_MEMORY_ACCESS);
  tmap_error last{};
  last.struct_size = sizeof last;
  ASSERT_EQ(tmap_last_error(&last), TMAP_OK);
  EXPECT_EQ(last.found, window_.base + 64);
  tile_.coordinates[0] = 3;
  EXPECT_EQ(tmap_simulate_load(&map_, &window_, 1, &tile_, nullptr), TMAP_ILLEGAL_INSTRUCTION);
}

TEST_F(c_simulator, stores_and_reductions_refuse_bad_arguments) {
  const auto memory = memory_;
  const auto store = [&](auto* tile) { return tmap_simulate_store(&map_, &window_, 1, tile); };
  const auto reduce = [&](auto* tile) { return tmap_simulate_reduce(TMAP_REDUCE_ADD, &map_, &window_, 1, tile); };
  shared_.fill(100);
  refuses_bad_structs<tmap_tile>(tile_, store);
  refuses_bad_structs<tmap_tile>(tile_, reduce);
  tmap_tile other = tile_;
  for (const std::uint32_t rank : {6u, 256u, ~0u}) {
    other.rank = rank;
    EXPECT_EQ(refused(store(&other)), "tile.rank");
    EXPECT_EQ(refused(reduce(&other)), "tile.rank");
  }
  other = tile_;
  other.bytes = 31;
  EXPECT_EQ(refused(store(&other)), "tile");
  EXPECT_EQ(refused(reduce(&other)), "tile");
  for (const std::uint32_t operation : {8u, 256u, ~0u}) {
    EXPECT_EQ(refused(tmap_simulate_reduce(operation, &map_, &window_, 1, &tile_)), "operation");
  }
  EXPECT_EQ(refused(tmap_simulate_store(nullptr, &window_, 1, &tile_)), "map");
  EXPECT_EQ(refused(tmap_simulate_store(&map_, nullptr, 1, &tile_)), "memory");
  EXPECT_EQ(refused(tmap_simulate_store(&map_, misaligned(&window_), 1, &tile_)), "memory");
  EXPECT_EQ(refused(tmap_simulate_reduce(TMAP_REDUCE_ADD, misaligned(&map_), &window_, 1, &tile_)), "map");
  EXPECT_EQ(memory_, memory);
}

TEST_F(c_simulator, refuses_bad_arguments) {
  const auto load = [&](auto* tile) { return tmap_simulate_load(&map_, &window_, 1, tile, nullptr); };
  refuses_bad_structs<tmap_tile>(tile_, load);
  EXPECT_EQ(refused(tmap_simulate_load(nullptr, &window_, 1, &tile_, nullptr)), "map");
  EXPECT_EQ(refused(tmap_simulate_load(misaligned(&map_), &window_, 1, &tile_, nullptr)), "map");
  EXPECT_EQ(refused(tmap_simulate_load(&map_, nullptr, 1, &tile_, nullptr)), "memory");
  EXPECT_EQ(refused(tmap_simulate_reduce(8, &map_, &window_, 1, &tile_)), "operation");
  tmap_tile other = tile_;
  other.rank = 6;
  EXPECT_EQ(refused(load(&other)), "tile.rank");
  other.rank = 1;
  EXPECT_EQ(load(&other), TMAP_ILLEGAL_INSTRUCTION);
  other = tile_;
  other.data = nullptr;
  EXPECT_EQ(refused(load(&other)), "tile.data");
  other = tile_;
  other.bytes = 31;
  EXPECT_EQ(refused(load(&other)), "tile");
  window_.data = nullptr;
  EXPECT_EQ(refused(load(&tile_)), "memory[0].data");
  EXPECT_THAT(shared_, Each(0u));
}

}  // namespace
}  // namespace tmap::testing
