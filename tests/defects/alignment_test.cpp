// SPDX-License-Identifier: Apache-2.0
// Reproduces facebookexperimental/triton #2734. CUDA 12.8 aligns CUtensorMap to 64 bytes and CUDA
// 13 to 128, which broke programs that allocated with one version and ran with the other. tmap's
// own type does not change. A slot that is only aligned to 64 bytes is refused before anything is
// enqueued.
#include <tmap/encode_batch.hpp>
#include <tmap/map_batch.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "support/refusal.hpp"

namespace tmap::testing {
namespace {

static_assert(alignof(tensor_map) == 128 && sizeof(tensor_map) == 128);
static_assert(sizeof(tensor_map[3]) == 3 * 128);
static_assert(alignof(map_template) == 128 && offsetof(map_template, map) == 0);

TEST(alignment, triton_2734_host_memory_of_maps_is_aligned) {
  std::vector<std::vector<tensor_map>> kept;
  for (std::size_t count = 1; count < 200; ++count) {
    kept.emplace_back(count);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(kept.back().data()) % 128, 0u) << count;
  }
}

TEST(alignment, triton_2734_a_slot_aligned_to_less_is_refused) {
  map_template base{};
  base.spec.rank = 1;
  base.fields = patch_address;
  const patch_array patches{reinterpret_cast<const map_patch*>(0x20000)};  // checked, never read
  for (std::uintptr_t offset = 16; offset < 512; offset += 16) {
    if (offset % 128 == 0) continue;
    auto* const slots = reinterpret_cast<tensor_map*>(0x10000 + offset);
    const result<void> answer = encode_batch(base, patches, slots, 1, {cudaStream_t{}});
    expect_refused(answer, "slots", std::to_string(offset));
  }
}

}  // namespace
}  // namespace tmap::testing
