// SPDX-License-Identifier: Apache-2.0
#include "simulator/small_tensor.hpp"

namespace tmap::testing {
namespace {

/// A 4 x 8 matrix of 16-byte rows in windows that the test chooses.
class windows : public ::testing::Test {
 protected:
  windows() {
    const std::uint64_t dims[] = {4, 8};
    const std::uint32_t box[] = {4, 4};
    map_ = encode_bits(packed_spec(element_type::u32, small_base, dims, box)).value_or(tensor_map{});
    for (std::size_t i = 0; i < sizeof bytes_; ++i) bytes_[i] = static_cast<std::byte>(i);
  }

  simulator::memory_window window(std::uint64_t from, std::uint64_t to) {
    return {small_base + from, cuda::std::span<std::byte>{bytes_}.subspan(from, to - from)};
  }

  result<std::uint64_t> load(std::initializer_list<simulator::memory_window> memory, std::int32_t y) {
    const std::int32_t corner[] = {0, y};
    return simulator::copy_engine{{memory.begin(), memory.size()}}.load(map_, corner, tile_);
  }

  tensor_map map_;
  std::byte bytes_[128];
  std::byte tile_[64];
};

TEST_F(windows, that_touch_are_one_memory) {
  ASSERT_TRUE(load({window(40, 128), window(0, 40)}, 0).has_value());
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(tile_[i], bytes_[i]);
}

TEST_F(windows, that_end_early_raise_illegal_memory_access) {
  const auto received = load({window(0, 40)}, 0);
  ASSERT_FALSE(received.has_value());
  EXPECT_EQ(received.error().code, status::illegal_memory_access);
  EXPECT_EQ(received.error().found, small_base + 40) << "the first address missing";
  EXPECT_EQ(received.error().argument, "memory");
}

TEST_F(windows, need_only_hold_what_is_read) {
  EXPECT_TRUE(load({window(32, 96)}, 2).has_value());
}

TEST_F(windows, need_the_base_when_something_lies_outside) {
  EXPECT_FALSE(load({window(32, 128)}, 6).has_value());
  EXPECT_TRUE(load({window(0, 16), window(32, 128)}, 6).has_value());
  EXPECT_FALSE(load({}, 100).has_value());
  EXPECT_TRUE(load({window(0, 16)}, 100).has_value());
}

TEST_F(windows, need_the_base_when_something_lies_before_the_first_row) {
  const std::uint64_t dims[] = {8, 4};
  const std::uint32_t box[] = {4, 4};
  map_ = encode_bits(packed_spec(element_type::u32, small_base, dims, box)).value_or(tensor_map{});
  const std::int32_t corner[] = {4, -1};  // the right halves of rows 0 to 2
  const simulator::memory_window without_base = window(16, 128);
  EXPECT_FALSE((simulator::copy_engine{{&without_base, 1}}.load(map_, corner, tile_).has_value()));
  const simulator::memory_window whole = window(0, 128);
  EXPECT_TRUE((simulator::copy_engine{{&whole, 1}}.load(map_, corner, tile_).has_value()));
}

TEST_F(windows, need_the_base_also_beside_the_tensor) {
  const std::int32_t corner[] = {4, 1};
  const auto load_beside = [&](const simulator::memory_window& memory) {
    return simulator::copy_engine{{&memory, 1}}.load(map_, corner, tile_);
  };
  EXPECT_FALSE(load_beside(window(16, 128)).has_value());
  EXPECT_TRUE(load_beside(window(0, 16)).has_value()) << "nothing else is read";
}

TEST_F(windows, may_be_absent_for_a_store_outside) {
  const std::int32_t corner[] = {0, 8};
  EXPECT_TRUE(simulator::copy_engine{{}}.store(map_, corner, tile_).has_value());
  EXPECT_TRUE(simulator::copy_engine{{}}.reduce(reduction::add, map_, corner, tile_).has_value());
}

TEST_F(windows, that_end_early_stop_stores_and_reductions) {
  const std::int32_t corner[] = {0, 4};
  const simulator::memory_window memory = window(64, 96);
  const simulator::copy_engine engine{{&memory, 1}};
  const auto stored = engine.store(map_, corner, tile_);
  ASSERT_FALSE(stored.has_value());
  EXPECT_EQ(stored.error().found, small_base + 96);
  const auto reduced = engine.reduce(reduction::add, map_, corner, tile_);
  ASSERT_FALSE(reduced.has_value());
  EXPECT_EQ(reduced.error().code, status::illegal_memory_access);
}

TEST_F(windows, the_last_address_is_followed_by_none) {
  tensor_spec spec = packed_spec(element_type::u32, small_base, std::initializer_list<std::uint64_t>{4, 2},
                                 std::initializer_list<std::uint32_t>{4, 2});
  spec.global_stride_bytes[0] = 32;
  map_ = encode_bits(spec).value_or(tensor_map{});
  map_.words[0] = ~std::uint64_t{31};  // the second row is at 2^64, which is no address, and not at 0
  const cuda::std::span<std::byte> row{bytes_, 16};
  const auto received = load({{map_.words[0], row}, {0, row}}, 0);
  ASSERT_FALSE(received.has_value());
  EXPECT_EQ(received.error().code, status::illegal_memory_access);
}

TEST_F(windows, extents_beyond_all_addresses_are_no_memory) {
  const std::uint64_t most = std::uint64_t{1} << 31;
  tensor_spec spec = packed_spec(element_type::u32, small_base, std::initializer_list<std::uint64_t>{4, 8},
                                 std::initializer_list<std::uint32_t>{4, 4});
  map_ = encode_bits(spec).value_or(tensor_map{});
  map_.words[4] |= (most - 1) << 32;                         // 2^31 rows
  map_.words[1] |= 0xffffffffull << 32;                      // 2^36 bytes from row to row
  const auto received = load({window(0, 128)}, 0x7ffffff0);  // address 2^67
  ASSERT_FALSE(received.has_value());
  EXPECT_EQ(received.error().code, status::illegal_memory_access);
}

}  // namespace
}  // namespace tmap::testing
