// SPDX-License-Identifier: Apache-2.0
#include "lib/pool/slab_layout.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tmap::testing {
namespace {

TEST(slab_layout, arrays_are_aligned_apart_and_inside) {
  for (const std::uint64_t slots : {1u, 2u, 31u, 32u, 33u, 16384u, 16777216u}) {
    const std::uint64_t statuses = pool::statuses_offset(slots);
    const std::uint64_t records = pool::records_offset(slots);
    EXPECT_GE(statuses, slots * sizeof(tensor_map));
    EXPECT_GE(records, statuses + slots * sizeof(map_status));
    EXPECT_GE(pool::slab_bytes(slots), records + slots * pool::record_bytes);
    EXPECT_LT(pool::slab_bytes(slots), slots * (128 + 8 + pool::record_bytes) + 3 * 256);
    EXPECT_EQ(statuses % 256 + records % 256 + pool::slab_bytes(slots) % 256, 0u);
  }
}

TEST(slab_layout, pointers_point_where_the_offsets_say) {
  std::vector<unsigned char> slab(pool::slab_bytes(33));
  EXPECT_EQ(static_cast<void*>(pool::slots_of(slab.data())), slab.data());
  EXPECT_EQ(static_cast<void*>(pool::statuses_of(slab.data(), 33)), slab.data() + 4352);
#ifdef TMAP_CHECK_HAZARDS
  EXPECT_EQ(static_cast<void*>(pool::records_of(slab.data(), 33)), slab.data() + 4352 + 512);
#else
  EXPECT_EQ(pool::records_of(slab.data(), 33), nullptr);
#endif
}

}  // namespace
}  // namespace tmap::testing
