// SPDX-License-Identifier: Apache-2.0
// Tests on the host how tiles are cut into runs.
#include <tmap/device/tile_shares.cuh>

#include <gtest/gtest.h>

#include "support/random_spec.hpp"

namespace tmap::testing {
namespace {

using device::tile_range;
using device::tile_shares;

/// Expects that the runs follow each other from tile 0 to the last, that their lengths differ by
/// one tile at most, and that empty runs come last.
void expect_fair(std::uint64_t tiles, std::uint64_t runs) {
  const tile_shares shares(tiles, runs);
  std::uint64_t next = 0;
  std::uint64_t used = 0;
  for (std::uint64_t r = 0; r < runs; ++r) {
    const tile_range run = shares.run(r);
    ASSERT_EQ(run.first, next) << tiles << " tiles, run " << r << " of " << runs;
    ASSERT_GE(run.last - run.first, tiles / runs);
    ASSERT_LE(run.last - run.first, (tiles + runs - 1) / runs);
    if (run.first != run.last) {
      ASSERT_EQ(used, r) << "a run without tiles before one with tiles";
      ++used;
    }
    next = run.last;
  }
  ASSERT_EQ(next, tiles);
  ASSERT_EQ(shares.used(), used);
}

TEST(tile_shares, cover_all_tiles_fairly) {
  for (std::uint64_t tiles = 0; tiles < 70; ++tiles) {
    for (std::uint64_t runs = 1; runs < 70; ++runs) expect_fair(tiles, runs);
  }
}

TEST(tile_shares, of_random_batches) {
  random_source random(4);
  for (int trial = 0; trial < 300; ++trial) expect_fair(random.of_random_length(56), 1 + random.below(5'000));
}

TEST(tile_shares, of_the_largest_batch) {
  constexpr std::uint64_t most = std::uint64_t{1} << 55;  // 2^24 tensors of 2^31 tiles
  const tile_shares shares(most, 132);
  EXPECT_EQ(shares.run(131).last, most);
  EXPECT_EQ(shares.used(), 132u);
}

}  // namespace
}  // namespace tmap::testing
