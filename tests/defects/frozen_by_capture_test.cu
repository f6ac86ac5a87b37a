// SPDX-License-Identifier: Apache-2.0
// Reproduces deepseek-ai/DeepGEMM #444. Eager runs, the capture and identical replays were right,
// but a replay after the batch had changed used the maps that the capture had frozen.
#include <tmap/encode.hpp>
#include <tmap/map_service.hpp>

#include "defects/captured_graph.hpp"
#include "defects/consume_lines.cuh"
#include "defects/defect_fixture.hpp"

namespace tmap::testing::frozen_by_capture_cases {
namespace {

constexpr std::uint32_t maps = 8;
constexpr std::uint32_t batches = 16;

/// Passes maps of the host as kernel parameters. A graph keeps them as they were.
struct host_maps {
  tensor_map map[maps];
};

/// Counts the foreign elements of each map. Each warp takes one map.
__global__ void consume_parameters(const __grid_constant__ host_maps frozen, const line_use* uses,
                                   consumed_lines* found) {
  __shared__ tagged_tile<line_elements> tile;
  tile_reader<line_elements> reader(tile);
  const std::int32_t at[] = {0};
  reader.load([&] { return device::parameter_map(frozen.map[blockIdx.x]); }, at);
  const tag expected = uses[blockIdx.x].tag;
  const std::uint32_t count = reader.foreign([&](std::uint32_t) { return expected; });
  if (reader.lane() != 0) return;
  atomicAdd(&found->tiles, 1);
  if (count != 0) atomicAdd(&found->foreign, count);
}

/// Holds the device arrays that describe the work of a replay.
struct batch_arrays {
  tagged_lines lines{maps * batches};
  device_array<map_patch> patches{maps};
  device_array<line_use> uses{maps};
  device_array<consumed_lines> found{std::vector<consumed_lines>(1)};

  void choose(std::uint32_t batch) const {
    patches.upload(lines.patches(batch * maps, maps));
    uses.upload(tagged_lines::uses(batch * maps, maps));
  }
  /// Returns the number of foreign elements since the last call.
  std::uint64_t take_foreign() const {
    const consumed_lines now = found.download()[0];
    EXPECT_EQ(now.tiles % maps, 0u);
    EXPECT_NE(now.tiles, 0u);
    found.upload({consumed_lines{}});
    return now.foreign;
  }
};

class frozen_by_capture : public defect_test {
 protected:
  /// Counts the foreign elements of a replay of the captured batch, then of replays of all the
  /// others.
  static std::pair<std::uint64_t, std::uint64_t> replay(const batch_arrays& arrays, const captured_graph& graph,
                                                        const own_stream& stream) {
    // [replay]
    arrays.choose(0);
    graph.launch(stream);
    const std::uint64_t identical = arrays.take_foreign();
    for (std::uint32_t batch = 1; batch < batches; ++batch) {
      arrays.choose(batch);
      graph.launch(stream);
      stream.wait();
    }
    // [replay]
    return {identical, arrays.take_foreign()};
  }
};

TEST_F(frozen_by_capture, deepgemm_444_replay_of_a_changed_batch) {
  const batch_arrays arrays;
  const own_stream stream;
  result<map_service> service = map_service::create({.capacity = 1024});
  TMAP_ASSERT_OK(service);
  const result<map_template> base = line_template();
  TMAP_ASSERT_OK(base);
  // [capture]
  const captured_graph encodes(stream, [&](cudaStream_t capturing) {
    const result<map_batch> batch = service->encode(*base, patch_array{arrays.patches.data()}, maps, {capturing});
    TMAP_ASSERT_OK(batch);
    launch_consume_lines({batch->ref(), arrays.uses.data()}, 0, maps, arrays.found.data(), capturing);
  });
  // [capture]
  if (HasFailure()) return;
  host_maps of_batch_0;
  for (std::uint32_t i = 0; i < maps; ++i) of_batch_0.map[i] = arrays.lines.map(i);
  const captured_graph frozen(stream, [&](cudaStream_t capturing) {
    consume_parameters<<<maps, 32, 0, capturing>>>(of_batch_0, arrays.uses.data(), arrays.found.data());
  });
  const auto real = replay(arrays, encodes, stream);
  const auto seeded = replay(arrays, frozen, stream);
  EXPECT_EQ(real.first + seeded.first, 0u) << "a replay of the captured batch";
  expect_foreign_only_when_seeded(real.second, seeded.second);
}

}  // namespace
}  // namespace tmap::testing::frozen_by_capture_cases
