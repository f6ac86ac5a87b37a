// SPDX-License-Identifier: Apache-2.0
// Reproduces NVIDIA/cudnn-frontend #898, which assumed that one acquire of 128 bytes covers an
// array of maps.
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/patch_source.cuh>

#include "defects/defect_fixture.hpp"
#include "defects/tagged_lines.hpp"
#include "defects/tagged_tile.cuh"

namespace tmap::testing::acquire_per_map_cases {
namespace {

constexpr std::uint32_t maps = 4;

__device__ device::guard_page safe_page;

enum class acquires : std::uint32_t { every_map, first_map };

/// Encodes four maps per block and uses them, first from patches 0 to 3, then from 4 to 7. Each
/// block is one warp.
__global__ void use_array_twice(const __grid_constant__ map_template base, const map_patch* patches,
                                tensor_map* all_slots, acquires which, device_count* foreign) {
  __shared__ device::warp_stage stage;
  __shared__ tagged_tile<line_elements> tile;
  tensor_map* const slots = all_slots + blockIdx.x * maps;
  const device::patch_array_reader source({patches}, base.fields);
  tile_reader<line_elements> reader(tile);
  const std::int32_t at[] = {0};
  for (std::uint32_t turn = 0; turn < 2; ++turn) {
    const auto of_this_turn = [&](std::uint64_t i) { return source(turn * maps + i); };
    device::encode_warp(base, of_this_turn, slots, 0, maps, stage, device::map_guard{&safe_page});
    for (std::uint32_t i = 0; i < maps; ++i) {
      reader.load_slot(&slots[i], at, turn == 0 || i == 0 || which == acquires::every_map);
      const tag expected = turn * maps + i + 1;
      const std::uint32_t count = reader.foreign([&](std::uint32_t) { return expected; });
      if (reader.lane() == 0 && count != 0) atomicAdd(foreign, count);
    }
  }
}

class acquire_per_map : public defect_test {
 protected:
  static std::uint64_t run(acquires which) {
    const std::uint32_t blocks = 4 * multiprocessors();
    const tagged_lines lines(2 * maps);
    const device_array<map_patch> patches(lines.patches(0, 2 * maps));
    const device_array<tensor_map> slots(std::uint64_t{blocks} * maps);
    const device_array<device_count> foreign(std::vector<device_count>(1));
    const result<map_template> base = line_template();
    EXPECT_TRUE(base.has_value());
    if (!base) return 0;
    use_array_twice<<<blocks, 32>>>(*base, patches.data(), slots.data(), which, foreign.data());
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    return foreign.download()[0];
  }
};

TEST_F(acquire_per_map, cudnn_frontend_898_one_acquire_for_an_array) {
  expect_foreign_only_when_seeded(run(acquires::every_map), run(acquires::first_map));
}

}  // namespace
}  // namespace tmap::testing::acquire_per_map_cases
