// SPDX-License-Identifier: Apache-2.0
// Reproduces triton-lang/triton #4332 and #4342: a "flush" in another block or kernel cannot reach
// every multiprocessor. An acquire only counts for the multiprocessor that runs it.
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/patch_source.cuh>

#include "defects/defect_fixture.hpp"
#include "defects/handshake.cuh"
#include "defects/tagged_lines.hpp"
#include "defects/tagged_tile.cuh"

namespace tmap::testing::acquire_elsewhere_cases {
namespace {

// Each block uses more than half of a multiprocessor's shared memory, so that each multiprocessor
// runs one block.
constexpr std::uint32_t lonely_block_bytes = 120 * 1024;
constexpr std::uint32_t rounds = 8;

/// Three blocks share a slot and take turns. One writes it, one flushes for the others, and one
/// consumes.
enum role : std::uint32_t { writer, flusher, consumer, role_count };

__device__ device::guard_page safe_page;

struct counts {
  device_count flusher_foreign;
  device_count consumer_foreign;
  device_count gave_up;
};

__global__ void write_flush_consume(const __grid_constant__ map_template base, const map_patch* patches,
                                    tensor_map* slots, std::uint32_t* turns, bool consumer_acquires, counts* found) {
  __shared__ device::warp_stage stage;
  __shared__ tagged_tile<line_elements> tile;
  const std::uint32_t group = blockIdx.x / role_count;
  const std::uint32_t role = blockIdx.x % role_count;
  const device::patch_array_reader source({patches}, base.fields);
  tile_reader<line_elements> reader(tile);
  const std::int32_t at[] = {0};
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const bool came = await_count(&turns[group], round * role_count + role);
    if (!__all_sync(~0u, came)) {
      if (reader.lane() == 0) atomicAdd(&found->gave_up, 1);
      return;
    }
    if (role == writer) {
      device::encode_warp(
          base, [&](std::uint64_t) { return source(round); }, &slots[group], 0, 1, stage,
          device::map_guard{&safe_page});
    } else {
      reader.load_slot(&slots[group], at, role == flusher || consumer_acquires || round == 0);
      const std::uint32_t count = reader.foreign([&](std::uint32_t) { return round + 1; });
      device_count* const total = role == flusher ? &found->flusher_foreign : &found->consumer_foreign;
      if (reader.lane() == 0 && count != 0) atomicAdd(total, count);
    }
    __syncwarp();
    if (reader.lane() == 0) add_to_count(&turns[group]);
  }
}

class acquire_elsewhere : public defect_test {
 protected:
  counts run(bool consumer_acquires) {
    const std::uint32_t groups = multiprocessors() / role_count;
    const tagged_lines lines(rounds);
    const device_array<map_patch> patches(lines.patches(0, rounds));
    const device_array<tensor_map> slots(groups);
    const device_array<std::uint32_t> turns(std::vector<std::uint32_t>(groups, 0));
    const device_array<counts> found(std::vector<counts>(1));
    const result<map_template> base = line_template();
    EXPECT_TRUE(base.has_value());
    if (!base) return {};
    EXPECT_EQ(
        cudaFuncSetAttribute(write_flush_consume, cudaFuncAttributeMaxDynamicSharedMemorySize, lonely_block_bytes),
        cudaSuccess);
    write_flush_consume<<<groups * role_count, 32, lonely_block_bytes>>>(*base, patches.data(), slots.data(),
                                                                         turns.data(), consumer_acquires, found.data());
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    return found.download()[0];
  }
};

TEST_F(acquire_elsewhere, triton_4332_4342_no_block_can_flush_for_another) {
  const counts real = run(true);
  const counts seeded = run(false);
  EXPECT_EQ(real.gave_up + seeded.gave_up, 0u);
  EXPECT_EQ(real.flusher_foreign + seeded.flusher_foreign, 0u);
  expect_foreign_only_when_seeded(real.consumer_foreign, seeded.consumer_foreign);
}

}  // namespace
}  // namespace tmap::testing::acquire_elsewhere_cases
