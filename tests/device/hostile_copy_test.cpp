// SPDX-License-Identifier: Apache-2.0
// Extents of any bits and maps that are no good among good ones: nothing faults, hangs or is written where it should
// not, and the good tensors are copied.
#include <tmap/copy_tiles.hpp>

#include "device/gpu_fixture.hpp"
#include "device/ragged_batch.hpp"
#include "device/safe_map.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t most = std::uint64_t{1} << 31;  // of an extent, and of a tensor's tiles

/// Nothing was stored through a safe map.
void expect_untouched(std::uint64_t page) {
  unsigned char bytes[16];
  TMAP_ASSERT_CUDA(cudaMemcpy(bytes, reinterpret_cast<void*>(page), sizeof bytes, cudaMemcpyDeviceToHost));
  EXPECT_EQ(std::count(std::begin(bytes), std::end(bytes), 0), 16);
}

class hostile_copy : public gpu_test, public ::testing::WithParamInterface<std::uint32_t> {};

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
      if (random.one_in(2)) dim = random.pick({0ull, 1ull, 1ull << 31, (1ull << 31) + 1, 1ull << 63, ~0ull - 7, ~0ull});
      if (random.one_in(3)) dim = random.of_random_length(33);
    }
  } while (!is_left_out(tile, extents));
  return extents;
}

TEST_P(hostile_copy, hostile_extents_among_good_ones) {
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

/// The patches of both sides, of which some make bad maps and some empty destinations.
struct refused_patches {
  std::vector<map_patch> sources;
  std::vector<map_patch> destinations;

  /// The answer says whether the tensor is to be left out. An empty map stays empty, whatever else is wrong with it.
  bool spoil(random_source& random, std::uint64_t i, std::uint32_t rank) {
    if (random.one_in(8)) {
      destinations[i].global_dim[random.below(rank)] = 0;
      return true;
    }
    const map_patch& source = sources[i];
    const bool is_empty = std::count(source.global_dim, source.global_dim + rank, 0) != 0;
    map_patch& broken = is_empty || random.one_in(2) ? destinations[i] : sources[i];
    const std::uint64_t chance = random.below(6);
    if (chance == 0) broken.global_address += 8;
    if (chance == 1) broken.global_dim[0] = most + 1;
    return chance < 2;
  }
};

TEST_P(hostile_copy, bad_maps_are_left_out_where_statuses_tell) {
  const std::uint32_t rank = GetParam();
  random_source random(400 + rank);
  const std::uint64_t page = library_page();
  TMAP_ASSERT_CUDA(cudaMemset(reinterpret_cast<void*>(page), 0, 16));
  for (std::uint64_t trial = 0; trial < scaled(50); ++trial) {
    ragged_batch batch = random_batch(random, random_tile(random, rank), 1 + random.below(100));
    for (tensor_spec& source : batch.source.tensors) {
      if (random.one_in(6)) source.global_dim[random.below(rank)] = 0;
    }
    const device_batch on_device(batch);
    refused_patches patches{on_device.source_patches.download(), on_device.destination_patches.download()};
    ragged_batch good = batch;
    for (std::uint64_t i = 0; i < batch.extents.size(); ++i) {
      if (patches.spoil(random, i, rank)) good.extents[i] = map_patch{};
    }
    on_device.source_patches.upload(patches.sources);
    on_device.destination_patches.upload(patches.destinations);
    TMAP_ASSERT_OK(on_device.run(batch, default_stream, true));
    expect_copied(good, on_device);
    expect_untouched(page);
    ASSERT_FALSE(HasFailure()) << "rank " << rank << ", trial " << trial;
  }
}

INSTANTIATE_TEST_SUITE_P(ranks, hostile_copy, ::testing::Range(1u, max_rank + 1));

using hostile_copy_once = gpu_test;

TEST_F(hostile_copy_once, the_longest_extent_is_walked_to_its_end) {
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

}  // namespace
}  // namespace tmap::testing
