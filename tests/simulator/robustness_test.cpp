// SPDX-License-Identifier: Apache-2.0
#include "simulator/small_tensor.hpp"
#include "support/random_spec.hpp"

#include <map>

// A copy returns bytes or an error, and never crashes, for all 128 bytes and coordinates.

namespace tmap::testing {
namespace {

constexpr int rounds = 200'000;

/// Returns a legal map with a few flipped bits, or sometimes random bits.
tensor_map disturbed_map(random_spec_source& specs) {
  random_source& random = specs.random();
  tensor_spec spec = specs.legal();
  if (!random.one_in(4)) spec.global_address = small_base;
  tensor_map map = encode_bits(spec).value_or(tensor_map{});
  if (random.one_in(50)) {
    for (std::uint64_t& word : map.words) word = random.bits();
  }
  for (std::uint32_t flips = random.below32(4); flips > 0; --flips) {
    map.words[random.below(8)] ^= std::uint64_t{1} << random.below(64);
  }
  return map;
}

TEST(robustness, every_map_and_corner_gets_an_answer) {
  random_spec_source specs{31};
  random_source& random = specs.random();
  std::vector<std::byte> memory(64 << 10);
  std::vector<std::byte> tile(32 << 10);
  const simulator::memory_window window{small_base, memory};
  const simulator::copy_engine engine{{&window, 1}};
  std::map<int, int> answers;
  for (int round = 0; round < rounds; ++round) {
    const tensor_map map = disturbed_map(specs);
    std::int32_t corner[max_rank];
    for (std::int32_t& coordinate : corner) {
      coordinate = static_cast<std::int32_t>(random.one_in(8) ? random.bits() : random.below(8) * 16);
    }
    const cuda::std::span<const std::int32_t> at{corner, random.one_in(16) ? random.below(6) : specs.legal().rank};
    const std::uint32_t shared = 128 * random.below32(9);
    const auto loaded = engine.load(map, at, tile, shared);
    const auto stored = engine.store(map, at, tile, shared);
    const auto reduced = engine.reduce(static_cast<reduction>(random.below32(9)), map, at, tile, shared);
    for (const auto* done : {&stored, &reduced}) ++answers[*done ? -1 : static_cast<int>(done->error().code)];
    ++answers[loaded ? -1 : static_cast<int>(loaded.error().code)];
  }
  for (const auto code : {status::illegal_instruction, status::illegal_memory_access, status::misaligned_address}) {
    EXPECT_GT(answers[static_cast<int>(code)], 100) << name(code);
  }
  EXPECT_GT(answers[-1], 1000) << "copies that succeeded";
}

}  // namespace
}  // namespace tmap::testing
