// SPDX-License-Identifier: Apache-2.0
// The tile copy over random ragged batches equals a plain loop, byte for byte, and writes nothing else.
#include <tmap/copy_tiles.hpp>

#include "device/gpu_fixture.hpp"
#include "device/ragged_batch.hpp"
#include "device/safe_map.hpp"

namespace tmap::testing {
namespace {

const cuda::stream_ref default_stream{cudaStream_t{}};

void expect_copied(const ragged_batch& batch, const device_batch& on_device) {
  const std::vector<unsigned char> expected = expected_destination(batch);
  const std::vector<unsigned char> found = on_device.destination.download();
  ASSERT_EQ(found.size(), expected.size());
  const auto differ = std::mismatch(found.begin(), found.end(), expected.begin()).first;
  EXPECT_TRUE(differ == found.end()) << "first at byte " << differ - found.begin() << " of " << found.size();
}

/// Nothing was stored through a safe map.
void expect_untouched(std::uint64_t page) {
  unsigned char bytes[16];
  TMAP_ASSERT_CUDA(cudaMemcpy(bytes, reinterpret_cast<void*>(page), sizeof bytes, cudaMemcpyDeviceToHost));
  EXPECT_EQ(std::count(std::begin(bytes), std::end(bytes), 0), 16);
}

class copy_tiles : public gpu_test, public ::testing::WithParamInterface<std::uint32_t> {};

TEST_P(copy_tiles, random_ragged_batches) {
  const std::uint32_t rank = GetParam();
  random_source random(100 + rank);
  for (std::uint64_t trial = 0; trial < scaled(100); ++trial) {
    const std::uint64_t count = 1 + random.below(trial % 4 == 0 ? 300 : 40);
    const ragged_batch batch = random_batch(random, random_tile(random, rank), count);
    const device_batch on_device(batch);
    TMAP_ASSERT_OK(on_device.run(batch, default_stream));
    expect_copied(batch, on_device);
    ASSERT_FALSE(HasFailure()) << "rank " << rank << ", trial " << trial;
  }
}

TEST_P(copy_tiles, long_runs_of_tensors_with_nothing_to_walk) {
  const std::uint32_t rank = GetParam();
  random_source random(200 + rank);
  ragged_batch batch = random_batch(random, random_tile(random, rank), scaled(3000));
  for (std::uint64_t i = 0; i < batch.extents.size(); ++i) {
    if (i % 1024 != 700) batch.extents[i].global_dim[rank - 1] = 0;
  }
  const device_batch on_device(batch);
  TMAP_ASSERT_OK(on_device.run(batch, default_stream));
  expect_copied(batch, on_device);
}

constexpr std::uint64_t most = std::uint64_t{1} << 31;  // of an extent, and of a tensor's tiles

/// No tiles at all, or more than a walk may visit.
bool is_left_out(const tensor_spec& tile, const map_patch& extents) {
  std::uint64_t tiles = 1;
  for (std::uint32_t axis = 0; axis < tile.rank; ++axis) {
    const std::uint64_t dim = extents.global_dim[axis];
    if (dim == 0 || dim > most) return true;
  }
  for (std::uint32_t axis = 0; axis < tile.rank; ++axis) {
    const std::uint64_t along = (extents.global_dim[axis] - 1) / tile.box_dim[axis] + 1;
    if (along > most / tiles) return true;
    tiles *= along;
  }
  return false;
}

/// Extents of any bits, corners more often than chance has them, drawn again while they would only be long work.
map_patch hostile_extents(random_source& random, const tensor_spec& tile) {
  map_patch extents;
  do {
    std::uint64_t words[sizeof(map_patch) / 8];
    for (std::uint64_t& word : words) word = random.bits();
    std::memcpy(&extents, words, sizeof extents);
    for (std::uint64_t& dim : extents.global_dim) {
      if (random.one_in(2))
        dim = random.pick<std::uint64_t>({0, 1, most, most + 1, 1ull << 32, 1ull << 63, ~0ull - 7, ~0ull});
      if (random.one_in(3)) dim = random.of_random_length(33);
    }
  } while (!is_left_out(tile, extents));
  return extents;
}

TEST_P(copy_tiles, hostile_extents_among_good_ones) {
  const std::uint32_t rank = GetParam();
  random_source random(300 + rank);
  for (std::uint64_t trial = 0; trial < scaled(100); ++trial) {
    ragged_batch batch = random_batch(random, random_tile(random, rank), 1 + random.below(100));
    ragged_batch good = batch;
    for (std::uint64_t i = 0; i < batch.extents.size(); ++i) {
      if (random.one_in(2)) continue;
      batch.extents[i] = hostile_extents(random, batch.tile);
      good.extents[i] = map_patch{};
    }
    const device_batch on_device(batch);
    TMAP_ASSERT_OK(on_device.run(batch, default_stream));
    expect_copied(good, on_device);
    ASSERT_FALSE(HasFailure()) << "rank " << rank << ", trial " << trial;
  }
}

/// Any of a tensor's maps may be bad, and sources empty. `good` becomes the batch as it should be copied.
TEST_P(copy_tiles, bad_maps_are_left_out_where_statuses_tell) {
  const std::uint32_t rank = GetParam();
  random_source random(400 + rank);
  const std::uint64_t page = library_page();
  TMAP_ASSERT_CUDA(cudaMemset(reinterpret_cast<void*>(page), 0, 16));
  for (std::uint64_t trial = 0; trial < scaled(50); ++trial) {
    ragged_batch batch = random_batch(random, random_tile(random, rank), 1 + random.below(100));
    for (tensor_spec& source : batch.source.tensors) {
      if (random.one_in(6)) source.global_dim[random.below(rank)] = 0;
    }
    ragged_batch good = batch;
    device_batch on_device(batch);
    std::vector<map_patch> patches[] = {on_device.source_patches.download(), on_device.destination_patches.download()};
    for (std::uint64_t i = 0; i < batch.extents.size(); ++i) {
      if (!random.one_in(4)) continue;
      map_patch& broken = patches[random.below(2)][i];
      random.one_in(2) ? broken.global_address += 8 : broken.global_dim[0] = most + 1;
      good.extents[i] = map_patch{};
    }
    for (std::uint64_t i = 0; i < batch.extents.size(); ++i) {
      if (good.extents[i].global_dim[0] == 0 || !random.one_in(8)) continue;
      patches[1][i].global_dim[0] = 0;
      good.extents[i] = map_patch{};
    }
    on_device.source_patches.upload(patches[0]);
    on_device.destination_patches.upload(patches[1]);
    TMAP_ASSERT_OK(on_device.run(batch, default_stream, true));
    expect_copied(good, on_device);
    expect_untouched(page);
    ASSERT_FALSE(HasFailure()) << "rank " << rank << ", trial " << trial;
  }
}

INSTANTIATE_TEST_SUITE_P(ranks, copy_tiles, ::testing::Range(1u, max_rank + 1));

using copy_tiles_once = gpu_test;

TEST_F(copy_tiles_once, nothing_at_all_to_walk) {
  random_source random(1);
  ragged_batch batch = random_batch(random, random_tile(random, 2), 10);
  for (map_patch& extents : batch.extents) extents.global_dim[1] = 0;
  const device_batch on_device(batch);
  TMAP_ASSERT_OK(on_device.run(batch, default_stream));
  expect_copied(batch, on_device);
}

TEST_F(copy_tiles_once, more_tiles_than_all_blocks_hold_at_once) {
  random_source random(2);
  ragged_batch batch;
  batch.tile = random_tile(random, 2);
  batch.tile.type = element_type::f32;
  batch.tile.swizzle = swizzle::bytes_128;
  batch.tile.box_dim[0] = 32;
  batch.tile.box_dim[1] = 8;
  for (const std::uint64_t rows : {5003ull, 1ull, 9001ull}) {
    tensor_spec tensor = batch.tile;
    tensor.global_dim[0] = 333;
    tensor.global_dim[1] = rows;
    append_tensor(batch.source, tensor, random);
    append_tensor(batch.destination, tensor, random);
    map_patch extents{};
    extents.global_dim[0] = 333;
    extents.global_dim[1] = rows;
    batch.extents.push_back(extents);
  }
  for (unsigned char& byte : batch.source.bytes) byte = static_cast<unsigned char>(random.bits());
  std::fill(batch.destination.bytes.begin(), batch.destination.bytes.end(), device_array<int>::poison);
  const device_batch on_device(batch);
  TMAP_ASSERT_OK(on_device.run(batch, default_stream));
  expect_copied(batch, on_device);
}

TEST_F(copy_tiles_once, the_longest_extent_is_walked_to_its_end) {
  random_source random(6);
  ragged_batch batch = random_batch(random, random_tile(random, 1), 3);
  batch.tile.type = element_type::f32;
  batch.tile.swizzle = swizzle::none;
  batch.tile.box_dim[0] = 256;
  batch.source = {};
  batch.destination = {};
  for (std::uint64_t i = 0; i < batch.extents.size(); ++i) {
    tensor_spec tensor = batch.tile;
    tensor.global_dim[0] = 1000 + i;
    append_tensor(batch.source, tensor, random);
    tensor.global_dim[0] = 2000 + i;
    append_tensor(batch.destination, tensor, random);
    batch.extents[i].global_dim[0] = i == 1 ? most : 2000 + i;
  }
  for (unsigned char& byte : batch.source.bytes) byte = static_cast<unsigned char>(random.bits());
  std::fill(batch.destination.bytes.begin(), batch.destination.bytes.end(), device_array<int>::poison);
  const device_batch on_device(batch);
  TMAP_ASSERT_OK(on_device.run(batch, default_stream));
  expect_copied(batch, on_device);
}

TEST_F(copy_tiles_once, workspace_too_small_or_missing) {
  random_source random(3);
  const ragged_batch batch = random_batch(random, random_tile(random, 2), 10);
  const device_batch on_device(batch);
  const tile_copy_batch copy{batch.tile, on_device.slots.data(), on_device.slots.data(), on_device.extents.data(), 10};
  const std::uint64_t bytes = on_device.workspace.bytes();
  const result<void> small = copy_tiles_async(copy, on_device.workspace.data(), bytes - 1, default_stream);
  ASSERT_FALSE(small.has_value());
  EXPECT_EQ(small.error().code, status::invalid_argument);
  EXPECT_EQ(small.error().allowed, bytes);
  EXPECT_EQ(copy_tiles_async(copy, nullptr, bytes, default_stream).error().code, status::invalid_argument);
}

TEST_F(copy_tiles_once, a_tile_too_large_for_two_stages) {
  random_source random(4);
  ragged_batch batch = random_batch(random, random_tile(random, 3), 1);
  batch.tile.type = element_type::f32;
  batch.tile.swizzle = swizzle::none;
  batch.tile.box_dim[0] = 128;
  batch.tile.box_dim[1] = 256;
  batch.tile.box_dim[2] = 1;
  const device_batch on_device(batch);
  const tile_copy_batch copy{batch.tile, on_device.slots.data(), on_device.slots.data(), on_device.extents.data(), 1};
  const result<void> refused =
      copy_tiles_async(copy, on_device.workspace.data(), on_device.workspace.bytes(), default_stream);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, status::invalid_argument);
}

/// Replays a captured encode + copy after everything it reads in device memory was exchanged for another batch.
TEST_F(copy_tiles_once, a_captured_graph_replays_with_other_shapes_and_addresses) {
  random_source random(5);
  const ragged_batch first = random_batch(random, random_tile(random, 3), 64);
  cudaStream_t stream = nullptr;
  TMAP_ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const device_batch on_device(first);
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const result<void> captured = on_device.run(first, stream);
  cudaGraph_t graph = nullptr;
  TMAP_ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
  TMAP_ASSERT_OK(captured);
  cudaGraphExec_t executable = nullptr;
  TMAP_ASSERT_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  for (int replay = 0; replay < 20; ++replay) {
    const ragged_batch batch = random_batch(random, first.tile, 64);
    const device_batch replayed(batch);
    TMAP_ASSERT_CUDA(cudaMemcpy(on_device.source_patches.data(), replayed.source_patches.data(),
                                on_device.source_patches.bytes(), cudaMemcpyDeviceToDevice));
    TMAP_ASSERT_CUDA(cudaMemcpy(on_device.destination_patches.data(), replayed.destination_patches.data(),
                                on_device.destination_patches.bytes(), cudaMemcpyDeviceToDevice));
    TMAP_ASSERT_CUDA(cudaMemcpy(on_device.extents.data(), replayed.extents.data(), on_device.extents.bytes(),
                                cudaMemcpyDeviceToDevice));
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    TMAP_ASSERT_CUDA(cudaGraphLaunch(executable, stream));
    TMAP_ASSERT_CUDA(cudaStreamSynchronize(stream));
    expect_copied(batch, replayed);
    ASSERT_FALSE(HasFailure()) << "replay " << replay;
  }
  TMAP_ASSERT_CUDA(cudaGraphExecDestroy(executable));
  TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  TMAP_ASSERT_CUDA(cudaStreamDestroy(stream));
}

}  // namespace
}  // namespace tmap::testing
