// SPDX-License-Identifier: Apache-2.0
// Reproduces NVIDIA/cudnn-frontend #1126: one graph contained an update kernel and its consumer and
// reused their workspace. The consumer acquired nothing, and replays were wrong. Stream order
// between two kernels does not replace an acquire, and kernels may overlap.
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/patch_source.cuh>
#include <tmap/encode_batch.hpp>

#include <memory>

#include "defects/captured_graph.hpp"
#include "defects/defect_fixture.hpp"
#include "defects/handshake.cuh"
#include "defects/tagged_lines.hpp"
#include "defects/tagged_tile.cuh"

namespace tmap::testing::replay_without_acquire_cases {
namespace {

constexpr std::uint32_t consumer_blocks = 32;
constexpr std::uint32_t line_count = 8;
constexpr long long patience = 2'000'000;  // cycles that the update waits for consumers that may never overlap it

__device__ device::guard_page safe_page;

/// Carries data from replay to replay, in device memory.
struct workspace {
  std::uint32_t replay;        ///< the update's replay; its map is that of line replay % line_count
  std::uint32_t early_loads;   ///< counts the consumers of all replays that used the old map
  device_count early_foreign;  ///< counts early loads without overlap, which did not show the previous replay's line
  device_count foreign;
};

/// Rewrites the slot. If `overlaps` is set, the consumer may start first, and the rewrite waits
/// until it has used the old map.
__global__ void update_slot(const __grid_constant__ map_template base, const map_patch* patches, tensor_map* slot,
                            workspace* work, bool overlaps) {
  __shared__ device::warp_stage stage;
  const std::uint32_t replay = work->replay + 1;
  if (overlaps) {
    cudaTriggerProgrammaticLaunchCompletion();
    await_count(&work->early_loads, replay * consumer_blocks, patience);
  }
  __syncwarp();
  const device::patch_array_reader source({patches}, base.fields);
  const auto of_this_replay = [&](std::uint64_t) { return source(replay % line_count); };
  device::encode_warp(base, of_this_replay, slot, 0, 1, stage, device::map_guard{&safe_page});
  if (threadIdx.x == 0) work->replay = replay;
}

/// Consumes the map with one warp per block.
__global__ void consume_slot(const tensor_map* slot, workspace* work, bool overlaps, bool acquires) {
  __shared__ tagged_tile<line_elements> tile;
  tile_reader<line_elements> reader(tile);
  const std::int32_t at[] = {0};
  tag previous{};
  if (overlaps) {
    reader.load_slot(slot, at, true);
    previous = tile.elements[0];
    if (reader.lane() == 0) add_to_count(&work->early_loads);
    cudaGridDependencySynchronize();
  }
  const std::uint32_t replay = *static_cast<volatile std::uint32_t*>(&work->replay);
  const tag expected = replay % line_count + 1;
  const tag expected_before = (replay + line_count - 1) % line_count + 1;
  reader.load_slot(slot, at, acquires);
  const std::uint32_t count = reader.foreign([&](std::uint32_t) { return expected; });
  if (reader.lane() != 0) return;
  if (count != 0) atomicAdd(&work->foreign, count);
  if (overlaps && previous != expected_before) atomicAdd(&work->early_foreign, 1);
}

class replay_without_acquire : public defect_test {
 protected:
  void SetUp() override {
    defect_test::SetUp();
    if (IsSkipped()) return;
    stream_ = std::make_unique<own_stream>();
    const result<map_template> base = line_template();
    TMAP_ASSERT_OK(base);
    base_ = *base;
    lines_ = std::make_unique<tagged_lines>(line_count);
    patches_ = std::make_unique<device_array<map_patch>>(lines_->patches(0, line_count));
    slot_ = std::make_unique<device_array<tensor_map>>(1);
    work_ = std::make_unique<device_array<workspace>>(1);
  }

  void enqueue(cudaStream_t stream, bool overlaps, bool acquires) {
    update_slot<<<1, 32, 0, stream>>>(base_, patches_->data(), slot_->data(), work_->data(), overlaps);
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = consumer_blocks;
    config.blockDim = 32;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = overlaps ? 1 : 0;
    const tensor_map* const slot = slot_->data();
    EXPECT_EQ(cudaLaunchKernelEx(&config, consume_slot, slot, work_->data(), overlaps, acquires), cudaSuccess);
  }

  /// Puts line 0's map into the slot, as a replay before the first would have done.
  void begin() {
    work_->upload({workspace{}});
    const map_patch* const patches = patches_->data();
    TMAP_ASSERT_OK(encode_batch(base_, patch_array{patches}, slot_->data(), 1, {cudaStream_t{}}));
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  }

  workspace launch_many(bool overlaps, bool acquires) {
    begin();
    for (std::uint64_t i = 0; i < scaled(launches); ++i) enqueue(stream_->get(), overlaps, acquires);
    return work_->download()[0];
  }

  workspace replay_many(bool overlaps, bool acquires) {
    begin();
    const captured_graph graph(*stream_, [&](cudaStream_t capturing) { enqueue(capturing, overlaps, acquires); });
    for (std::uint64_t i = 0; i < scaled(launches); ++i) graph.launch(*stream_);
    return work_->download()[0];
  }

  static constexpr std::uint64_t launches = 500;
  std::unique_ptr<own_stream> stream_;
  map_template base_;
  std::unique_ptr<tagged_lines> lines_;
  std::unique_ptr<device_array<map_patch>> patches_;
  std::unique_ptr<device_array<tensor_map>> slot_;
  std::unique_ptr<device_array<workspace>> work_;
};

TEST_F(replay_without_acquire, cudnn_frontend_1126_update_then_consumer_in_one_graph) {
  const workspace eager = launch_many(false, true);
  const workspace replayed = replay_many(false, true);
  EXPECT_EQ(eager.foreign, 0u);
  EXPECT_EQ(replayed.foreign, 0u);
  EXPECT_EQ(replayed.replay, scaled(launches));
}

// The hardware decides whether the start of a kernel refreshes the copy engine's view. On an H200
// it does.
TEST_F(replay_without_acquire, observed_cudnn_frontend_1126_kernels_one_after_the_other) {
  const workspace seeded = replay_many(false, false);
  note("foreign_when_seeded", seeded.foreign);
  EXPECT_EQ(seeded.replay, scaled(launches));
}

// With programmatic dependent launch, the consumer starts before the update has run, and may have
// used the old map.
TEST_F(replay_without_acquire, cudnn_frontend_1126_kernels_that_overlap) {
  const workspace eager = launch_many(true, true);
  const workspace replayed = replay_many(true, true);
  const workspace seeded_eager = launch_many(true, false);
  const workspace seeded_replayed = replay_many(true, false);
  note("launches_without_overlap", seeded_eager.early_foreign);
  note("replays_without_overlap", seeded_replayed.early_foreign);
  note("foreign_in_seeded_replays", seeded_replayed.foreign);
  expect_foreign_only_when_seeded(eager.foreign + replayed.foreign, seeded_eager.foreign + seeded_replayed.foreign);
}

}  // namespace
}  // namespace tmap::testing::replay_without_acquire_cases
