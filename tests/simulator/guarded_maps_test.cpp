// SPDX-License-Identifier: Apache-2.0
// Uses every map that passes device validation, and the safe map in place of the others, on the
// simulator. The simulator reports what would kill a context and any byte outside the memory.
#include <tmap/decode.hpp>
#include <tmap/patch_rules.hpp>
#include <tmap/simulator.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/random_patch.hpp"
#include "support/spec_text.hpp"
#include "support/tile_corners.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t window_base = 0x100000;
constexpr std::uint64_t window_bytes = 1 << 18;
constexpr std::uint64_t page_base = 0x7f00;
constexpr std::uint64_t tile_limit = 4096;

class guarded_maps : public ::testing::Test {
 protected:
  guarded_maps() : memory_(window_bytes), page_(128), tile_(tile_limit) {}

  map_template small_template() {
    map_template base = source_.base();
    while (tile_footprint_bytes(base.spec) > tile_limit) base = source_.base();
    base.fields |= patch_address | patch_dim(0);
    return base;
  }

  /// Returns mostly small tensors in or near the window.
  map_patch hostile_patch(const map_template& base) {
    random_source& random = source_.random();
    map_patch patch = source_.any(base);
    if (random.one_in(4)) return patch;
    patch.global_address = window_base - 512 + 16 * random.below((window_bytes + 1024) / 16);
    for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
      patch.global_dim[axis] = random.one_in(40) ? random.of_random_length(64) : 1 + random.of_random_length(6);
      if (axis + 1 < max_rank) patch.global_stride_bytes[axis] = 16 * random.below(64);
    }
    return patch;
  }

  /// Copies at every corner through the map of `spec`, whose only memory is `window`.
  void use(const tensor_spec& spec, const simulator::memory_window& window) {
    const result<tensor_map> map = encode_bits(spec);
    ASSERT_TRUE(map.has_value()) << to_text(spec);
    const simulator::copy_engine engine{{&window, 1}};
    std::int32_t at[max_rank];
    const auto corner = [&](std::uint32_t turn, std::uint32_t corners) {
      for (std::uint32_t axis = 0; axis < spec.rank; ++axis) at[axis] = corner_coordinate(spec, axis, turn, corners);
      return cuda::std::span<const std::int32_t>{at, spec.rank};
    };
    for (std::uint32_t turn = 0; turn < 2 * load_corners; ++turn) {
      const auto loaded = engine.load(*map, corner(turn, load_corners), {tile_.data(), tile_.size()});
      ASSERT_TRUE(loaded.has_value()) << to_text(spec) << to_string(loaded.error());
      ASSERT_EQ(*loaded, tile_bytes(spec));
    }
    std::fill(tile_.begin(), tile_.end(), std::byte{0x5c});
    for (std::uint32_t turn = 0; turn < 2 * store_corners; ++turn) {
      const auto stored = engine.store(*map, corner(turn, store_corners), {tile_.data(), tile_.size()});
      ASSERT_TRUE(stored.has_value()) << to_text(spec) << to_string(stored.error());
    }
  }

  void use_page(const map_template& base) {
    std::fill(page_.begin(), page_.end(), std::byte{0});
    use(empty_spec(base.spec, page_base), {page_base, {page_.data(), page_.size()}});
    ASSERT_EQ(std::count(page_.begin() + 32, page_.end(), std::byte{0}), 96);
  }

  random_patch_source source_{31};
  std::vector<std::byte> memory_;
  std::vector<std::byte> page_;
  std::vector<std::byte> tile_;
};

TEST_F(guarded_maps, no_copy_fails_or_leaves_its_memory) {
  constexpr address_window window{window_base, window_base + window_bytes};
  std::uint64_t good = 0;
  std::uint64_t too_wide = 0;
  constexpr std::uint64_t count = 100'000;
  for (std::uint64_t i = 0; i < count; ++i) {
    const map_template base = small_template();
    const tensor_spec spec = patched_spec(base, hostile_patch(base));
    if (!judge_patched(spec, base.fields, &window, 1).is_good()) {
      use_page(base);
    } else if (tile_footprint_bytes(spec) > tile_limit) {
      ++too_wide;
    } else {
      use(spec, {window_base, {memory_.data(), memory_.size()}});
      ++good;
    }
    ASSERT_FALSE(HasFatalFailure()) << i;
  }
  EXPECT_GT(good, count / 20);
  EXPECT_LT(too_wide, count / 4);
}

}  // namespace
}  // namespace tmap::testing
