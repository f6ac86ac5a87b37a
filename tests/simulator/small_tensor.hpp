// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/decode.hpp>
#include <tmap/simulator.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <vector>

// A tensor that is small enough to compute by hand, its memory, and one tile.

namespace tmap::testing {

inline constexpr std::uint64_t small_base = 0x10000;

/// Holds memory of `T`s that count from 1 (0 is the fill), and a tile that is filled with 0xee.
template <class T>
class small_tensor {
 public:
  using dims = std::initializer_list<std::uint64_t>;
  using box = std::initializer_list<std::uint32_t>;
  using corner = std::initializer_list<std::int32_t>;

  small_tensor(element_type type, dims extents, box tile_extents)
      : spec{packed_spec(type, small_base, {extents.begin(), extents.size()},
                         {tile_extents.begin(), tile_extents.size()})},
        memory(1024),
        tile(4096 / sizeof(T)) {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<T>(i + 1);
    std::memset(tile.data(), 0xee, 4096);
  }

  /// Returns the bytes that the barrier receives; 0 for an error, which `last_error` keeps.
  std::uint64_t load(corner at, std::uint32_t shared_address = 0) {
    const auto window = memory_window();
    const auto received = simulator::copy_engine{{&window, 1}}.load(map(), span(at), as_bytes(tile), shared_address);
    last_error = received ? error{} : received.error();
    return received.value_or(0);
  }

  bool store(corner at, std::uint32_t shared_address = 0) {
    const auto window = memory_window();
    const auto done = simulator::copy_engine{{&window, 1}}.store(map(), span(at), as_bytes(tile), shared_address);
    last_error = done ? error{} : done.error();
    return done.has_value();
  }

  bool reduce(reduction operation, corner at) {
    const auto window = memory_window();
    const auto done = simulator::copy_engine{{&window, 1}}.reduce(operation, map(), span(at), as_bytes(tile));
    last_error = done ? error{} : done.error();
    return done.has_value();
  }

  tensor_map map() const {
    const auto encoded = encode_bits(spec);
    EXPECT_TRUE(encoded.has_value());
    return encoded.value_or(tensor_map{});
  }

  tensor_spec spec;
  std::vector<T> memory;
  std::vector<T> tile;
  error last_error{};

 private:
  static cuda::std::span<const std::int32_t> span(corner at) { return {at.begin(), at.size()}; }
  static cuda::std::span<std::byte> as_bytes(std::vector<T>& values) {
    return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(T)};
  }
  simulator::memory_window memory_window() { return {small_base, as_bytes(memory)}; }
};

}  // namespace tmap::testing
