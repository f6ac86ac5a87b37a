// SPDX-License-Identifier: Apache-2.0
// The tile copy over random ragged batches equals a plain loop, byte for byte, and writes nothing else.
#include <tmap/copy_tiles.hpp>

#include "device/gpu_fixture.hpp"
#include "device/ragged_batch.hpp"

namespace tmap::testing {
namespace {

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

TEST_F(copy_tiles_once, an_error_that_was_pending_before_fails_nothing) {
  random_source random(7);
  const ragged_batch batch = random_batch(random, random_tile(random, 2), 10);
  const device_batch on_device(batch);
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  TMAP_ASSERT_OK(on_device.run(batch, default_stream));
  static_cast<void>(cudaGetLastError());
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
