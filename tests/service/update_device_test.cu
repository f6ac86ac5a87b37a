// SPDX-License-Identifier: Apache-2.0
// Tests updates on a GPU: which maps move and which stay, long chains, graphs, and that copies use
// the updated addresses.
#include <tmap/device/acquire.cuh>
#include <tmap/device/tile_copy.cuh>

#include <chrono>
#include <thread>

#include "service/device_maps.cuh"

namespace tmap::testing {
namespace {

constexpr std::uint32_t box = 32;

/// Block i loads the tile of map i and writes its first element.
__global__ void use_maps(map_batch_ref ref, int* seen) {
  __shared__ alignas(128) int tile[box];
  __shared__ device::tile_barrier barrier;
  barrier.init(1);
  device::fence_barrier_init();
  const std::int32_t at[] = {0};
  barrier.arrive_expect(sizeof tile);
  device::load_tile<1>(tile, device::acquire(ref, blockIdx.x), at, barrier);
  barrier.wait(0);
  seen[blockIdx.x] = *static_cast<volatile int*>(tile);
}

/// States how many maps a batch has and how they are published.
struct batch_way {
  std::uint32_t count;
  publish how;
};

std::vector<batch_way> every_way(std::initializer_list<std::uint32_t> counts) {
  std::vector<batch_way> ways;
  for (const std::uint32_t count : counts) {
    for (const publish how : {publish::stores, publish::copy_fence}) ways.push_back({count, how});
  }
  return ways;
}

class update_device : public service_device {
 protected:
  /// Holds a batch of `patches`, and its update to `after` in the listed maps.
  struct pair {
    map_batch old;
    map_batch updated;
  };

  pair update(map_service& service, const own_stream& stream, const std::vector<map_patch>& before,
              const std::vector<map_patch>& after, const std::vector<std::uint32_t>& which,
              publish how = publish::stores, batch_header* header = nullptr) {
    const device_array<map_patch> first(before);
    const device_array<map_patch> second(after);
    const device_array<std::uint32_t> changed(which);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    auto old = service.encode(base, patch_array{first.data()}, before.size(),
                              {.where = {stream.ref()}, .choices = {.published_by = how}});
    EXPECT_TRUE(old.has_value()) << to_string(old.error());
    auto updated = service.update(*old, {changed.data(), which.size()}, base, patch_array{second.data()},
                                  {.where = {stream.ref()}, .header = header, .choices = {.published_by = how}});
    EXPECT_TRUE(updated.has_value()) << to_string(updated.error());
    EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
    return {std::move(old.value()), std::move(updated.value())};
  }

  static void move(std::vector<map_patch>& patches, const std::vector<std::uint32_t>& which) {
    for (const std::uint32_t i : which) {
      if (i < patches.size()) patches[i].global_address += std::uint64_t{1} << 34;
    }
  }
};

TEST_F(update_device, shares_what_did_not_change) {
  map_service service = make(16384);
  const own_stream stream;
  for (const auto& [count, how] : every_way({100u, 4097u})) {
    const std::vector<map_patch> before = rows_patches(count);
    std::vector<map_patch> after = before;
    std::vector<std::uint32_t> which;
    for (std::uint32_t i = 3; i < count; i += 11) which.push_back(i);
    move(after, which);
    const pair batches = update(service, stream, before, after, which, how);
    const seen_maps old = read(batches.old, stream.get());
    const seen_maps updated = read(batches.updated, stream.get());
    EXPECT_EQ(count_wrong(old, base, before), 0u);
    EXPECT_EQ(count_wrong(updated, base, after), 0u);
    for (std::uint32_t i = 0; i < count; ++i) EXPECT_EQ(old.slots[i] == updated.slots[i], i % 11 != 3) << i;
  }
}

TEST_F(update_device, everything_moves_when_most_changed) {
  map_service service = make(16384);
  const own_stream stream;
  for (const auto& [count, how] : every_way({1u, 33u, 4097u})) {
    const std::vector<map_patch> before = rows_patches(count);
    std::vector<map_patch> after = before;
    std::vector<std::uint32_t> which;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (i % 7 != 5) which.push_back(i);
    }
    move(after, which);
    which.insert(which.end(), count / 4, 0);
    const pair batches = update(service, stream, before, after, which, how);
    EXPECT_EQ(batches.updated.ref().indices, nullptr);
    EXPECT_EQ(count_wrong(read(batches.updated, stream.get()), base, after), 0u);
    EXPECT_EQ(count_wrong(read(batches.old, stream.get()), base, before), 0u);
  }
}

TEST_F(update_device, strange_changes_do_no_harm) {
  map_service service = make(16384);
  const own_stream stream;
  for (const auto& [count, how] : every_way({1000u, 40u})) {  // shared, and all moved
    const std::vector<map_patch> before = rows_patches(count);
    std::vector<map_patch> after = before;
    std::vector<std::uint32_t> which{count, ~0u, 7, 7, 7, count + 31, 39, 1u << 31, 0};
    which.insert(which.end(), 40, ~0u);
    move(after, {7});
    after[39].global_address = 8;
    after[0].global_dim[1] = 0;
    const device_array<batch_header> counts(1);
    const pair batches = update(service, stream, before, after, which, how, counts.data());
    const seen_maps seen = read(batches.updated, stream.get());
    for (std::uint32_t i = 0; i < count; ++i) {
      const map_status expected = judge_patched(patched_spec(base, after[i]), base.fields, nullptr, 0);
      ASSERT_EQ(seen.statuses[i], expected) << i;
      if (expected.is_good()) {
        ASSERT_EQ(seen.maps[i], encode(patched_spec(base, after[i])).value()) << i;
      }
    }
    batch_header header;
    TMAP_ASSERT_CUDA(cudaMemcpy(&header, counts.data(), sizeof header, cudaMemcpyDeviceToHost));
    EXPECT_EQ(header.bad_count, 1u);
    EXPECT_EQ(header.first_bad, 39u);
    EXPECT_EQ(header.empty_count, 1u);
  }
  EXPECT_EQ(service.statistics().bad_maps, 4u);
  EXPECT_EQ(service.statistics().empty_maps, 4u);
}

TEST_F(update_device, long_chains_stay_right_and_small) {
  constexpr std::uint32_t count = 1000;
  map_service service = make(4 * count);
  const own_stream stream;
  std::vector<map_patch> patches = rows_patches(count);
  const device_array<map_patch> source(patches);
  const device_array<std::uint32_t> changed(count / 10);
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  auto batch = service.encode(base, patch_array{source.data()}, count, {stream.ref()});
  ASSERT_TRUE(batch.has_value()) << to_string(batch.error());
  std::uint32_t compactions = 0;
  for (std::uint32_t round = 0; round < 200; ++round) {
    std::vector<std::uint32_t> which;
    for (std::uint32_t i = 0; i < count / 10; ++i) which.push_back((round * 37 + i * 11) % count);
    move(patches, which);
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    source.upload(patches);
    changed.upload(which);
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    auto next =
        service.update(*batch, {changed.data(), which.size()}, base, patch_array{source.data()}, {stream.ref()});
    ASSERT_TRUE(next.has_value()) << to_string(next.error());
    *batch = std::move(*next);
    compactions += batch->ref().indices == nullptr ? 1 : 0;
    ASSERT_EQ(count_wrong(read(*batch, stream.get()), base, patches), 0u) << round;
  }
  EXPECT_GE(compactions, 20u);
  EXPECT_LE(compactions, 40u);
  EXPECT_LE(service.statistics().peak_leased, 3u * count);
}

/// Makes tensors of 32 ints that hold the tensor's number.
TEST_F(update_device, copies_go_where_the_maps_lead) {
  constexpr std::uint32_t count = 500;
  std::vector<int> values(2 * count * box);
  for (std::uint32_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i / box);
  const device_array<int> memory(values);
  const device_array<int> seen(count);
  const std::uint64_t dims[] = {box};
  const std::uint32_t boxes[] = {box};
  const tensor_spec spec = packed_spec(element_type::i32, memory.address(), dims, boxes);
  const map_template lines = make_template(spec, patch_address).value();
  std::vector<std::uint32_t> line(count);
  for (std::uint32_t i = 0; i < count; ++i) line[i] = i;
  const auto patches = [&] {
    std::vector<map_patch> made(count);
    for (std::uint32_t i = 0; i < count; ++i) made[i].global_address = memory.address() + line[i] * box * sizeof(int);
    return made;
  };
  const device_array<map_patch> source(patches());
  map_service service = make(4 * count);
  const own_stream stream;
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  auto batch = service.encode(lines, patch_array{source.data()}, count, {stream.ref()});
  ASSERT_TRUE(batch.has_value()) << to_string(batch.error());
  bool has_moved = false;
  for (const std::uint32_t step : {50u, 20u, 2u, 2u, 7u}) {
    std::vector<std::uint32_t> which;
    for (std::uint32_t i = 0; i < count; i += step) which.push_back(i), line[i] = (line[i] + count) % (2 * count);
    const device_array<std::uint32_t> changed(which);
    source.upload(patches());
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    // [update]
    auto next =
        service.update(*batch, {changed.data(), which.size()}, lines, patch_array{source.data()}, {stream.ref()});
    ASSERT_TRUE(next.has_value()) << to_string(next.error());
    use_maps<<<count, 1, 0, stream.get()>>>(next->ref(), seen.data());
    // [update]
    const std::vector<int> found = seen.download();
    for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(found[i], static_cast<int>(line[i])) << i << " by " << step;
    has_moved |= next->ref().indices == nullptr;
    *batch = std::move(*next);
  }
  EXPECT_TRUE(has_moved);
}

TEST_F(update_device, a_graph_updates_anew_at_each_replay) {
  constexpr std::uint32_t count = 300;
  map_service service = make(2048);
  const own_stream stream;
  std::vector<map_patch> patches = rows_patches(count);
  const device_array<map_patch> source(patches);
  const std::vector<std::uint32_t> which{1, 100, 299};
  const device_array<std::uint32_t> changed(which);
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  auto old = service.encode(base, patch_array{source.data()}, count, {stream.ref()});
  ASSERT_TRUE(old.has_value()) << to_string(old.error());
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  cudaGraph_t graph{};
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  auto updated = service.update(*old, {changed.data(), which.size()}, base, patch_array{source.data()}, {stream.ref()});
  TMAP_ASSERT_CUDA(cudaStreamEndCapture(stream.get(), &graph));
  ASSERT_TRUE(updated.has_value()) << to_string(updated.error());
  cudaGraphExec_t exec{};
  TMAP_ASSERT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  for (int replay = 0; replay < 3; ++replay) {
    move(patches, which);
    source.upload(patches);
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    TMAP_ASSERT_CUDA(cudaGraphLaunch(exec, stream.get()));
    EXPECT_EQ(count_wrong(read(*updated, stream.get()), base, patches), 0u) << replay;
  }
  TMAP_ASSERT_OK(updated->release());
  TMAP_ASSERT_OK(old->release());
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(service.statistics().slots.captured, count + which.size() + (count + 31) / 32);
  TMAP_ASSERT_CUDA(cudaGraphExecDestroy(exec));
  TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  // A thread of CUDA releases the graph's objects some time later.
  for (int wait = 0; wait < 5000 && service.statistics().slots.free != 2048; ++wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  EXPECT_EQ(service.statistics().slots.free, 2048u);
}

}  // namespace
}  // namespace tmap::testing
