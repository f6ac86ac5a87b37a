// SPDX-License-Identifier: Apache-2.0
// Tests a dropped release: plain stores write the maps, and consumers acquire them, but no fence
// publishes them. What the copy engine reads depends on the speed of the stores, so the seeded runs
// are observations. emitted_fences_test.cpp asserts that the machine code contains the fence.
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/patch_source.cuh>

#include "defects/defect_fixture.hpp"
#include "defects/handshake.cuh"
#include "defects/tagged_lines.hpp"
#include "defects/tagged_tile.cuh"

namespace tmap::testing::dropped_release_cases {
namespace {

constexpr std::uint32_t rounds = 64;
constexpr std::uint32_t line_count = 8;
constexpr std::uint32_t flood_words = 4096;  // for each block

__device__ device::guard_page safe_page;

/// Keeps the path to memory busy, so that a store that nobody waits for takes long.
__device__ void flood(std::uint32_t* words) {
  for (std::uint32_t i = threadIdx.x; i < flood_words; i += 32) static_cast<volatile std::uint32_t*>(words)[i] = i;
}

__device__ void count_foreign(const tile_reader<line_elements>& reader, std::uint32_t round, device_count* foreign) {
  const tag expected = round % line_count + 1;
  const std::uint32_t count = reader.foreign([&](std::uint32_t) { return expected; });
  if (reader.lane() == 0 && count != 0) atomicAdd(foreign, count);
}

/// Writes a slot and uses it in one block, again and again. Each block is one warp.
__global__ void write_and_use(const __grid_constant__ map_template base, const map_patch* patches, tensor_map* slots,
                              std::uint32_t* floods, bool releases, device_count* foreign) {
  __shared__ device::warp_stage stage;
  __shared__ tagged_tile<line_elements> tile;
  const device::patch_array_reader source({patches}, base.fields);
  tile_reader<line_elements> reader(tile);
  device::warp_encoder encoder(base, stage);
  const std::int32_t at[] = {0};
  for (std::uint32_t round = 0; round < rounds; ++round) {
    encoder.compose(source, round % line_count, 1, device::map_guard{&safe_page});
    flood(floods + blockIdx.x * flood_words);
    encoder.store(slots + blockIdx.x, 1);
    if (releases) encoder.release();
    __syncwarp();
    reader.load_slot(slots + blockIdx.x, at, true);
    count_foreign(reader, round, foreign);
  }
}

/// Works with pairs of blocks. The odd block writes the slot, and the even one uses it.
__global__ void write_for_another(const __grid_constant__ map_template base, const map_patch* patches,
                                  tensor_map* slots, std::uint32_t* floods, std::uint32_t* turns, bool releases,
                                  device_count* foreign) {
  __shared__ device::warp_stage stage;
  __shared__ tagged_tile<line_elements> tile;
  const std::uint32_t pair = blockIdx.x / 2;
  const std::uint32_t uses = blockIdx.x % 2;
  const device::patch_array_reader source({patches}, base.fields);
  tile_reader<line_elements> reader(tile);
  device::warp_encoder encoder(base, stage);
  const std::int32_t at[] = {0};
  for (std::uint32_t round = 0; round < rounds; ++round) {
    if (!__all_sync(~0u, await_count(&turns[pair], 2 * round + uses))) return;
    if (uses == 0) {
      encoder.compose(source, round % line_count, 1, device::map_guard{&safe_page});
      flood(floods + blockIdx.x * flood_words);
      encoder.store(slots + pair, 1);
      if (releases) encoder.release();
    } else {
      reader.load_slot(slots + pair, at, true);
      count_foreign(reader, round, foreign);
    }
    __syncwarp();
    if (reader.lane() == 0) add_to_count(&turns[pair]);
  }
}

class dropped_release : public defect_test {
 protected:
  static constexpr std::uint32_t blocks = 64;
  enum consumer : bool { another_block, same_block };

  std::uint64_t run(consumer where, bool releases) {
    const tagged_lines lines(line_count);
    const device_array<map_patch> patches(lines.patches(0, line_count));
    const device_array<tensor_map> slots(blocks);
    const device_array<std::uint32_t> floods(std::uint64_t{blocks} * flood_words);
    const device_array<std::uint32_t> turns(std::vector<std::uint32_t>(blocks / 2));
    const device_array<device_count> foreign(std::vector<device_count>(1));
    const result<map_template> base = line_template();
    EXPECT_TRUE(base.has_value());
    if (!base) return 0;
    // The slots hold legal maps from the start, because other bytes would raise an illegal
    // instruction.
    slots.upload(std::vector<tensor_map>(blocks, lines.map(0)));
    if (where == same_block) {
      write_and_use<<<blocks, 32>>>(*base, patches.data(), slots.data(), floods.data(), releases, foreign.data());
    } else {
      write_for_another<<<blocks, 32>>>(*base, patches.data(), slots.data(), floods.data(), turns.data(), releases,
                                        foreign.data());
      EXPECT_EQ(turns.download(), std::vector<std::uint32_t>(blocks / 2, 2 * rounds)) << "a pair gave up";
    }
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    return foreign.download()[0];
  }
};

TEST_F(dropped_release, published_stores_reach_the_copy_engine) {
  EXPECT_EQ(run(same_block, true), 0u);
  EXPECT_EQ(run(another_block, true), 0u);
}

// Both counts are 0 on an H200.
TEST_F(dropped_release, observed_stores_that_nobody_publishes) {
  note("foreign_when_seeded_same_block", run(same_block, false));
  note("foreign_when_seeded_other_block", run(another_block, false));
}

}  // namespace
}  // namespace tmap::testing::dropped_release_cases
