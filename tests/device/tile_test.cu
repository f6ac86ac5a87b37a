// SPDX-License-Identifier: Apache-2.0
// Tests tiles that the copy engine moves, element by element: views of every layout, and tile types
// with maps of their type.
#include <tmap/device/remote_store.cuh>
#include <tmap/device/stage_ring.cuh>
#include <tmap/device/tile.cuh>
#include <tmap/encode_batch.hpp>
#include <tmap/make_typed_maps.hpp>
#include <tmap/tile_layout.hpp>

#include <array>
#include <type_traits>

#include "device/toolkit_maps.cuh"
#include "support/tile_elements.hpp"

namespace tmap::testing::tile_cases {
namespace {

// These views show tiles that were loaded through maps of any layout.

/// Loads one tile and copies its elements out in the order of coordinates.
template <class T, std::uint32_t Rank>
__global__ void read_through_view(const __grid_constant__ tensor_map map,
                                  const __grid_constant__ conformance::tile_case tile, T* elements) {
  alignas(1024) __shared__ unsigned char shared[conformance::largest_footprint];
  __shared__ device::tile_barrier barrier;
  for (std::uint32_t i = threadIdx.x; i < sizeof(shared); i += blockDim.x) shared[i] = 0xee;
  device::fence_shared_writes();
  if (threadIdx.x == 0) barrier.init(1), device::fence_barrier_init();
  __syncthreads();
  if (threadIdx.x == 0) {
    std::int32_t at[Rank];
    for (std::uint32_t axis = 0; axis < Rank; ++axis) at[axis] = tile.coordinates[axis];
    barrier.arrive_expect(static_cast<std::uint32_t>(tile_bytes(tile.spec)));
    device::load_tile(shared, device::parameter_map(map), at, barrier);
  }
  __syncthreads();
  barrier.wait(0);
  const tile_view<const T, Rank> view(shared, layout_of(tile.spec));
  for (std::uint32_t i = threadIdx.x; i < view.layout().elements(); i += blockDim.x) {
    std::uint32_t at[Rank];
    std::uint32_t rest = i;
    for (std::uint32_t axis = 0; axis < Rank; ++axis) {
      at[axis] = rest % view.layout().dim[axis];
      rest /= view.layout().dim[axis];
    }
    elements[i] = element_at(view, at);
    if (&view[i] != &element_at(view, at)) elements[i] = static_cast<T>(~elements[i]);
  }
}

class tile_view_on_device : public gpu_test {};

TEST_F(tile_view_on_device, shows_every_element_of_every_layout) {
  const bytes arena = random_bytes(conformance::arena_bytes, 11);
  const device_array<unsigned char> there(arena);
  const device_array<unsigned char> elements(conformance::largest_footprint);
  std::uint32_t wrong = 0;
  for (const conformance::tile_case& tile : loads_of_every_layout()) {
    tensor_spec spec = tile.spec;
    spec.global_address += there.address();
    const auto map = encode(spec);
    TMAP_ASSERT_OK(map);
    elements.fill_poison();
    with_element_and_rank(spec, [&](auto element, auto rank) {
      using T = decltype(element);
      read_through_view<T, rank><<<1, 128>>>(*map, tile, reinterpret_cast<T*>(elements.data()));
    });
    bytes expected = expected_elements(tile, arena);
    EXPECT_EQ(expected.size(), tile_bytes(spec)) << to_text(tile);
    expected.resize(conformance::largest_footprint, static_cast<unsigned char>(device_array<char>::poison));
    const auto same = same_bytes(elements.download(), expected);
    EXPECT_TRUE(same) << to_text(tile);
    if (!same && ++wrong == 10) FAIL() << "and so on";
  }
}

// In tests of tile types, one block moves one tile of each map of a batch.

constexpr std::uint32_t tensors = 3;

/// Doubles every element of the tile at `at` of each tensor, with one block for each.
template <class Tile>
struct doubling {
  std::int32_t at[Tile::rank];
  bool is_hinted;

  __device__ void operator()(device::acquired_typed_map<Tile> map) const {
    __shared__ Tile tile;
    __shared__ device::tile_barrier barrier;
    using T = typename Tile::element;
    if (threadIdx.x == 0) {
      barrier.init(1);
      device::fence_barrier_init();
      device::prefetch(map);
      device::prefetch_tile(map, at);
      const device::cache_hint hint = device::make_cache_hint<device::l2_eviction::first>();
      if (is_hinted) device::expect_and_load(tile, map, at, barrier, hint);
      if (!is_hinted) device::expect_and_load(tile, map, at, barrier);
    }
    __syncthreads();
    barrier.wait(0);
    for (std::uint32_t i = threadIdx.x; i < Tile::elements; i += blockDim.x) tile[i] = static_cast<T>(2 * tile[i]);
    device::fence_shared_writes();
    __syncthreads();
    if (threadIdx.x != 0) return;
    if (is_hinted) device::store_tile(map, at, tile, device::make_cache_hint<device::l2_eviction::first>());
    if (!is_hinted) device::store_tile(map, at, tile);
    device::commit_stores();
    device::wait_stores_written();
  }
};

template <class Tile>
__global__ void double_each(const typed_maps<Tile> maps, const doubling<Tile> work) {
  work(device::acquire(maps, blockIdx.x));
}
template <class Tile>
__global__ void double_one(const __grid_constant__ typed_map<Tile> map, const doubling<Tile> work) {
  work(device::parameter_map(map));
}

using wide = tile<float, swizzle::bytes_128, 32, 24>;
using narrow = tile<std::uint8_t, swizzle::bytes_64, 48, 5>;  // fewer bytes than its memory
using flat = tile<std::uint16_t, swizzle::none, 64>;
using cube = tile<std::int32_t, swizzle::bytes_32, 8, 3, 2>;
using five = tile<double, swizzle::bytes_64, 8, 2, 3, 2, 2>;

__constant__ typed_map<cube> constant_cube;

__global__ void double_by_constant(const doubling<cube> work) {
  work(device::constant_map(constant_cube));
}

/// Holds tensors one after another, each twice as wide as the tile along each dim.
template <class Tile>
struct tensor_row {
  using T = typename Tile::element;

  tensor_row() {
    tensor_spec spec = Tile::spec();
    count = 1;
    for (std::uint32_t axis = 0; axis < Tile::rank; ++axis) count *= dims[axis] = 2 * spec.box_dim[axis];
    values.resize(tensors * count);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i % 61);
    there = std::make_unique<device_array<T>>(values);
  }

  /// Returns the spec of tensor `i`.
  tensor_spec spec(std::uint32_t i = 0) const {
    return packed_spec<Tile>(there->address() + i * count * sizeof(T), dims);
  }

  /// Returns the elements with the second box along each dim doubled in the first `how_many`
  /// tensors.
  std::vector<T> doubled(std::uint32_t how_many) const {
    std::vector<T> expected = values;
    for (std::uint64_t i = 0; i < how_many * count; ++i) {
      bool inside = true;
      std::uint64_t rest = i;
      for (std::uint32_t axis = 0; axis < Tile::rank; ++axis) {
        inside = inside && rest % dims[axis] >= dims[axis] / 2;
        rest /= dims[axis];
      }
      if (inside) expected[i] = static_cast<T>(2 * expected[i]);
    }
    return expected;
  }

  doubling<Tile> work(bool is_hinted) const {
    doubling<Tile> made{{}, is_hinted};
    for (std::uint32_t axis = 0; axis < Tile::rank; ++axis) made.at[axis] = static_cast<std::int32_t>(dims[axis] / 2);
    return made;
  }

  std::uint64_t dims[Tile::rank];
  std::uint64_t count;
  std::vector<T> values;
  std::unique_ptr<device_array<T>> there;
};

class typed_tiles : public toolkit {
 protected:
  template <class Tile>
  void expect_doubled(const tensor_row<Tile>& row, std::uint32_t how_many) {
    EXPECT_EQ(row.there->download(), row.doubled(how_many));
    row.there->upload(row.values);
  }

  template <class Tile>
  void expect_doubling() {
    const tensor_row<Tile> row;
    auto service = map_service::create();
    TMAP_ASSERT_OK(service);
    const auto base = make_template(row.spec(), patch_address);
    TMAP_ASSERT_OK(base);
    std::vector<map_patch> patches(tensors);
    for (std::uint32_t i = 0; i < tensors; ++i) patches[i].global_address = row.spec(i).global_address;
    const device_array<map_patch> there(patches);
    const cuda::stream_ref stream{cudaStream_t{}};
    for (const bool is_hinted : {false, true}) {
      SCOPED_TRACE(is_hinted);
      const auto batch = service->encode(*base, patch_array{there.data()}, tensors, {stream});
      TMAP_ASSERT_OK(batch);
      const auto maps = batch->template as<Tile>();
      TMAP_ASSERT_OK(maps);
      launch({tensors}, double_each<Tile>, *maps, row.work(is_hinted));
      expect_doubled(row, tensors);

      const device_array<tensor_map> slots(tensors);
      TMAP_ASSERT_OK(encode_batch(*base, patch_array{there.data()}, slots.data(), tensors, {stream}));
      const auto own = typed_maps_of<Tile>(*base, slots.data(), tensors);
      TMAP_ASSERT_OK(own);
      launch({tensors}, double_each<Tile>, *own, row.work(is_hinted));
      expect_doubled(row, tensors);

      const auto map = typed_map_of<Tile>(row.spec());
      TMAP_ASSERT_OK(map);
      launch({1}, double_one<Tile>, *map, row.work(is_hinted));
      expect_doubled(row, 1);
    }
  }
};

TEST_F(typed_tiles, load_and_store_with_bytes_of_their_own) {
  expect_doubling<wide>();
  expect_doubling<narrow>();
  expect_doubling<flat>();
  expect_doubling<cube>();
  expect_doubling<five>();
}

TEST_F(typed_tiles, go_through_a_map_in_constant_memory) {
  const tensor_row<cube> row;
  const auto map = typed_map_of<cube>(row.spec());
  TMAP_ASSERT_OK(map);
  TMAP_ASSERT_CUDA(cudaMemcpyToSymbol(constant_cube, &*map, sizeof(*map)));
  launch({1}, double_by_constant, row.work(false));
  expect_doubled(row, 1);
}

/// Sums each of the eight tiles of a tensor, through a ring of two stages.
__global__ void sum_tiles(const __grid_constant__ typed_map<cube> map, std::int32_t* sums) {
  __shared__ cube stages[2];
  __shared__ device::ring_barriers<2> barriers;
  if (threadIdx.x == 0) barriers.init(2, 1);
  __syncthreads();
  if (threadIdx.x != 0) return;
  device::ring_producer<2> producer(barriers);
  device::ring_consumer<2> consumer(barriers);
  const auto fill = [&](std::int32_t n) {
    cube& stage = stages[producer.acquire_stage()];
    device::load_tile(stage, device::parameter_map(map), {n % 2 * 8, n / 2 % 2 * 3, n / 4 * 2},
                      producer.announce(cube::bytes));
  };
  fill(0);
  for (std::int32_t n = 0; n < 8; ++n) {
    if (n + 1 < 8) fill(n + 1);
    const cube& stage = stages[consumer.wait_full()];
    std::int32_t sum = 0;
    for (std::uint32_t i = 0; i < cube::elements; ++i) sum += stage[i];
    sums[n] = sum;
    consumer.release();
  }
}

TEST_F(typed_tiles, fill_the_stages_of_a_ring) {
  const tensor_row<cube> row;
  const auto map = typed_map_of<cube>(row.spec());
  TMAP_ASSERT_OK(map);
  const device_array<std::int32_t> sums(8);
  sum_tiles<<<1, 32>>>(*map, sums.data());
  std::vector<std::int32_t> expected(8);
  for (std::uint64_t i = 0; i < row.count; ++i) {
    const std::uint64_t at[] = {i % 16, i / 16 % 6, i / 96};
    expected[at[0] / 8 + at[1] / 3 * 2 + at[2] / 2 * 4] += row.values[i];
  }
  EXPECT_EQ(sums.download(), expected);
}

/// Adds 1000 + i to element i of the first tile.
__global__ void add_to_first_tile(const __grid_constant__ typed_map<cube> map) {
  __shared__ cube tile;
  for (std::uint32_t i = 0; i < cube::elements; ++i) tile[i] = static_cast<std::int32_t>(1000 + i);
  device::fence_shared_writes();
  device::reduce_tile<reduction::add>(device::parameter_map(map), {0, 0, 0}, tile);
  device::commit_stores();
  device::wait_stores_written();
}

TEST_F(typed_tiles, reduce_by_their_element_type) {
  const tensor_row<cube> row;
  const auto map = typed_map_of<cube>(row.spec());
  TMAP_ASSERT_OK(map);
  add_to_first_tile<<<1, 1>>>(*map);
  std::vector<std::int32_t> expected = row.values;
  for (std::uint32_t z = 0, i = 0; z < 2; ++z) {
    for (std::uint32_t y = 0; y < 3; ++y) {
      for (std::uint32_t x = 0; x < 8; ++x, ++i) {
        expected[x + y * 16 + z * 96] += static_cast<std::int32_t>(1000 + i);
      }
    }
  }
  EXPECT_EQ(row.there->download(), expected);
}

__global__ void __cluster_dims__(2) load_into_both(const __grid_constant__ typed_map<wide> map, float* found) {
  __shared__ wide tile;
  __shared__ device::tile_barrier barrier;
  if (threadIdx.x == 0) {
    barrier.init(1);
    device::fence_barrier_init();
    barrier.arrive_expect(wide::bytes);
  }
  device::sync_cluster();
  if (threadIdx.x == 0 && device::block_of_cluster() == 0) {
    device::load_tile_multicast(tile, device::parameter_map(map), {32, 24}, barrier, 0b11);
  }
  barrier.wait_cluster(0);
  for (std::uint32_t i = threadIdx.x; i < wide::elements; i += blockDim.x) {
    found[blockIdx.x * wide::elements + i] = tile(i % 32, i / 32);
  }
  device::sync_cluster();
}

TEST_F(typed_tiles, reach_every_block_of_a_cluster) {
  const tensor_row<wide> row;
  const auto map = typed_map_of<wide>(row.spec());
  TMAP_ASSERT_OK(map);
  const device_array<float> found(2 * wide::elements);
  load_into_both<<<2, 64>>>(*map, found.data());
  std::vector<float> expected(2 * wide::elements);
  for (std::uint32_t i = 0; i < 2 * wide::elements; ++i) {
    expected[i] = row.values[(24 + i % wide::elements / 32) * 64 + 32 + i % 32];
  }
  EXPECT_EQ(found.download(), expected);
}

// Arguments that do not match must not compile.

struct expect_and_load_call {
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) -> decltype(device::expect_and_load(arguments...));
};
struct store_call {
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) -> decltype(device::store_tile(arguments...));
};
struct add_call {
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) -> decltype(device::reduce_tile<reduction::add>(arguments...));
};
template <class Map, std::uint32_t Rank>
constexpr bool loads_into_wide =
    std::is_invocable_v<expect_and_load_call, wide&, Map, const std::int32_t (&)[Rank], device::tile_barrier&>;
template <class Map, std::uint32_t Rank>
constexpr bool stores_wide = std::is_invocable_v<store_call, Map, const std::int32_t (&)[Rank], const wide&>;
template <class Tile>
constexpr bool adds =
    std::is_invocable_v<add_call, device::acquired_typed_map<Tile>, const std::int32_t (&)[Tile::rank], const Tile&>;

using wide_map = device::acquired_typed_map<wide>;
using wider_map = device::acquired_typed_map<tile<float, swizzle::bytes_128, 32, 32>>;
using plain_map = device::acquired_typed_map<tile<float, swizzle::none, 32, 24>>;
using whole_number_map = device::acquired_typed_map<tile<std::int32_t, swizzle::bytes_128, 32, 24>>;

static_assert(loads_into_wide<wide_map, 2> && stores_wide<wide_map, 2>);
static_assert(!loads_into_wide<wide_map, 1> && !loads_into_wide<wide_map, 3>, "coordinates of another rank");
static_assert(!stores_wide<wide_map, 1> && !stores_wide<wide_map, 3>);
static_assert(!loads_into_wide<wider_map, 2> && !stores_wide<wider_map, 2>, "another box");
static_assert(!loads_into_wide<plain_map, 2> && !stores_wide<plain_map, 2>, "another swizzle");
static_assert(!loads_into_wide<whole_number_map, 2> && !stores_wide<whole_number_map, 2>, "another type");
static_assert(!loads_into_wide<device::acquired_map, 2> && !stores_wide<device::acquired_map, 2>, "no type");
static_assert(!loads_into_wide<typed_map<wide>, 2> && !loads_into_wide<typed_maps<wide>, 2>, "not acquired");
static_assert(adds<wide> && adds<cube> && !adds<narrow>, "bytes are not added");
static_assert(!std::is_constructible_v<wide_map, device::acquired_map>, "only an acquire makes one");
static_assert(!std::is_constructible_v<typed_maps<wide>, map_batch_ref>, "only a comparison makes one");
static_assert(!std::is_constructible_v<typed_map<wide>, tensor_map>);

}  // namespace
}  // namespace tmap::testing::tile_cases
