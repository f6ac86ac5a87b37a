// SPDX-License-Identifier: Apache-2.0
// Reproduces deepseek-ai/DeepGEMM #343 and #430: a kernel rewrote a map while earlier loads still
// read it. A kernel must drain the loads or take a fresh slot. Also reproduces
// facebookexperimental/triton #680, in which the next iteration's update raced the load. Each load
// in flight needs a slot of its own.
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/patch_source.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/encode.hpp>

#include <memory>

#include "defects/defect_fixture.hpp"
#include "defects/tagged_tile.cuh"

namespace tmap::testing::in_flight_rewrite_cases {
namespace {

constexpr std::uint32_t turns = 16;
constexpr std::uint32_t most_in_flight = 4;
constexpr std::uint32_t tile_width = 4;
constexpr std::uint32_t tile_height = 256;
constexpr std::uint32_t tile_elements = tile_width * tile_height;

// Loads the other operand of each turn, through a map that is a parameter. Its rows of 16 bytes
// keep the copy engine busy for thousands of cycles, so that the next tile has not read its map
// when the slot is rewritten. Many turns are needed, because the copy engine fetches some maps
// early (docs/measurements/using_maps.md, section 5).
constexpr std::uint32_t slow_depth = 16;
constexpr std::uint32_t slow_elements = tile_elements * slow_depth;
constexpr std::uint32_t slow_loads = 12;
constexpr std::uint32_t turn_bytes = (slow_loads * slow_elements + tile_elements) * sizeof(tag);

__device__ device::guard_page safe_page;

struct pipeline_memory {
  alignas(128) tag slow[slow_elements];
  alignas(128) tag tiles[most_in_flight][tile_elements];
  device::warp_stage stage;
  device::tile_barrier barriers[most_in_flight];
};

/// Each turn waits for the load that was issued `in_flight` turns before. Turn t has its map in
/// slot t modulo `ring`, so a slot is rewritten in flight if `ring` is less than `in_flight`.
struct pipeline_shape {
  std::uint32_t in_flight;
  std::uint32_t ring;
};

__device__ void issue_turn(pipeline_memory& memory, const tensor_map& slow, const tensor_map* slot,
                           std::uint32_t place) {
  const std::int32_t slow_at[] = {0, 0, 0};
  const std::int32_t at[] = {0, 0};
  const device::acquired_map map = device::acquire(slot);
  memory.barriers[place].arrive_expect(turn_bytes);
  for (std::uint32_t i = 0; i < slow_loads; ++i) {
    device::load_tile<3>(memory.slow, device::parameter_map(slow), slow_at, memory.barriers[place]);
  }
  device::load_tile<2>(memory.tiles[place], map, at, memory.barriers[place]);
}

/// Waits for the load of a turn and counts its foreign elements.
__device__ void finish_turn(pipeline_memory& memory, std::uint32_t turn, std::uint32_t in_flight,
                            device_count* foreign) {
  const std::uint32_t place = turn % in_flight;
  const bool came = wait_a_second(memory.barriers[place], turn / in_flight % 2);
  std::uint32_t count = 0;
  for (std::uint32_t i = threadIdx.x; i < tile_elements; i += warpSize) {
    count += !came || memory.tiles[place][i] != turn + 1 ? 1 : 0;
  }
  count = __reduce_add_sync(~0u, count);
  if (threadIdx.x == 0 && count != 0) atomicAdd(foreign, count);
}

/// Loads the tensor of tag t + 1 in turn t, with blocks of one warp.
__global__ void run_pipeline(const __grid_constant__ map_template base, const __grid_constant__ tensor_map slow,
                             const map_patch* patches, tensor_map* all_slots, pipeline_shape shape,
                             device_count* foreign) {
  extern __shared__ __align__(1024) unsigned char bytes[];
  pipeline_memory& memory = *reinterpret_cast<pipeline_memory*>(bytes);
  tensor_map* const slots = all_slots + blockIdx.x * turns;
  if (threadIdx.x == 0) {
    for (device::tile_barrier& each : memory.barriers) each.init(1);
    device::fence_barrier_init();
  }
  __syncwarp();
  const device::patch_array_reader source({patches}, base.fields);
  for (std::uint32_t turn = 0; turn < turns + shape.in_flight; ++turn) {
    if (turn >= shape.in_flight) finish_turn(memory, turn - shape.in_flight, shape.in_flight, foreign);
    if (turn >= turns) continue;
    tensor_map* const slot = slots + turn % shape.ring;
    device::encode_warp(
        base, [&](std::uint64_t) { return source(turn); }, slot, 0, 1, memory.stage, device::map_guard{&safe_page});
    __syncwarp();
    if (threadIdx.x == 0) issue_turn(memory, slow, slot, turn % shape.in_flight);
    __syncwarp();
  }
}

class in_flight_rewrite : public defect_test {
 protected:
  static constexpr int trials = 100;

  void SetUp() override {
    defect_test::SetUp();
    if (IsSkipped()) return;
    TMAP_ASSERT_CUDA(cudaFuncSetAttribute(run_pipeline, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          static_cast<int>(sizeof(pipeline_memory))));
  }

  static std::vector<tag> contents() {
    std::vector<tag> tags(turns * tile_elements);
    for (std::uint32_t i = 0; i < tags.size(); ++i) tags[i] = i / tile_elements + 1;
    return tags;
  }

  std::vector<map_patch> patches() const {
    std::vector<map_patch> made(turns);
    for (std::uint32_t i = 0; i < turns; ++i) {
      made[i].global_address = tensors_->address() + i * tile_elements * sizeof(tag);
    }
    return made;
  }

  static tensor_spec tile_spec() {
    const std::uint64_t dims[] = {tile_width, tile_height};
    const std::uint32_t box[] = {tile_width, tile_height};
    return packed_spec(element_type::u32, 1 << 20, dims, box);
  }

  static tensor_spec slow_spec(std::uint64_t address) {
    const std::uint64_t dims[] = {tile_width, tile_height, slow_depth};
    const std::uint32_t box[] = {tile_width, tile_height, slow_depth};
    return packed_spec(element_type::u32, address, dims, box);
  }

  /// Returns the number of foreign elements of all trials.
  std::uint64_t run(pipeline_shape shape) {
    const result<map_template> base = make_template(tile_spec(), patch_address);
    const device_array<tag> slow_tensor(slow_elements);
    const result<tensor_map> slow = encode(slow_spec(slow_tensor.address()));
    EXPECT_TRUE(base.has_value() && slow.has_value());
    if (!base || !slow) return 0;
    const std::uint32_t blocks = multiprocessors();
    const device_array<map_patch> array(patches());
    const device_array<tensor_map> slots(std::uint64_t{blocks} * turns);
    const device_array<device_count> foreign(std::vector<device_count>(1));
    for (std::uint64_t trial = 0; trial < scaled(trials); ++trial) {
      run_pipeline<<<blocks, 32, sizeof(pipeline_memory)>>>(*base, *slow, array.data(), slots.data(), shape,
                                                            foreign.data());
    }
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    return foreign.download()[0];
  }

  std::unique_ptr<device_array<tag>> tensors_;
};

TEST_F(in_flight_rewrite, deepgemm_343_430_drain_or_take_a_fresh_slot) {
  tensors_ = std::make_unique<device_array<tag>>(contents());
  const std::uint64_t drained = run({.in_flight = 1, .ring = 1});
  const std::uint64_t fresh = run({.in_flight = most_in_flight, .ring = turns});
  expect_foreign_only_when_seeded(drained + fresh, run({.in_flight = 2, .ring = 1}));
}

TEST_F(in_flight_rewrite, meta_triton_680_one_slot_for_each_load_in_flight) {
  tensors_ = std::make_unique<device_array<tag>>(contents());
  const std::uint64_t two = run({.in_flight = 2, .ring = 2});
  const std::uint64_t four = run({.in_flight = most_in_flight, .ring = most_in_flight});
  expect_foreign_only_when_seeded(two + four, run({.in_flight = most_in_flight, .ring = 1}));
}

// The count is 0 on an H200.
TEST_F(in_flight_rewrite, observed_meta_triton_680_one_slot_short) {
  tensors_ = std::make_unique<device_array<tag>>(contents());
  note("foreign_when_seeded", run({.in_flight = most_in_flight, .ring = most_in_flight - 1}));
}

}  // namespace
}  // namespace tmap::testing::in_flight_rewrite_cases
