// SPDX-License-Identifier: Apache-2.0
// Tests effects that no byte shows: prefetched memory is closer, and each cache hint has its own
// effect.
#include <tmap/device/bulk_copy.cuh>

#include <algorithm>
#include <set>

#include "device/toolkit_maps.cuh"

namespace tmap::testing::toolkit_l2_cases {
namespace {

constexpr std::uint32_t width = 64;                // elements of a row
constexpr std::uint32_t box_rows = 4;              // 1 KiB
constexpr std::uint32_t rows_between = 64;         // 16 KiB from one tile to the next
constexpr std::uint32_t tiles = 64;                // the odd ones are prefetched
constexpr std::uint64_t much_memory = 256u << 20;  // more than L2 holds

/// Measures the cycles from the start of each load until its bytes arrive. One thread runs it.
template <class Prefetch, class Load>
__device__ void time_loads(long long* cycles, const Prefetch& prefetch, const Load& load) {
  alignas(128) __shared__ std::uint32_t tile[width * box_rows];
  __shared__ device::tile_barrier barrier;
  barrier.init(1);
  device::fence_barrier_init();
  for (std::uint32_t i = 1; i < tiles; i += 2) prefetch(i);
  pause();
  for (std::uint32_t i = 0; i <= tiles; ++i) {
    // The last tile comes first and once more, to bring in the page.
    const std::uint32_t which = (i + tiles - 1) % tiles;
    const long long begin = clock64();
    barrier.arrive_expect(sizeof(tile));
    load(tile, which, barrier);
    barrier.wait(i % 2);
    cycles[which] = clock64() - begin;
  }
}

struct tile_prefetch_use {
  long long* cycles;
  __device__ void operator()(device::acquired_map map) const {
    const auto row = [](std::uint32_t i) { return static_cast<std::int32_t>(i * rows_between); };
    time_loads(
        cycles,
        [&](std::uint32_t i) {
          device::prefetch_tile(map, {0, row(i)});
        },
        [&](std::uint32_t* tile, std::uint32_t i, device::tile_barrier& barrier) {
          device::load_tile(tile, map, {0, row(i)}, barrier);
        });
  }
};

__global__ void time_bulk(const std::uint32_t* source, long long* cycles) {
  const auto piece = [=](std::uint32_t i) { return source + std::uint64_t{i} * rows_between * width; };
  time_loads(
      cycles, [&](std::uint32_t i) { device::prefetch_bytes(piece(i), width * box_rows * 4); },
      [&](std::uint32_t* tile, std::uint32_t i, device::tile_barrier& barrier) {
        device::load_bytes(tile, piece(i), width * box_rows * 4, barrier);
      });
}

class toolkit_l2 : public toolkit {
 protected:
  static constexpr launch_shape one_thread{1, 1, 1};

  void SetUp() override {
    toolkit::SetUp();
    if (IsSkipped()) return;
    source_ = std::make_unique<device_array<std::uint32_t>>(tiles * rows_between * width);
    much_ = std::make_unique<device_array<unsigned char>>(much_memory);
  }

  /// Evicts `source_` from L2.
  void forget() { much_->fill_poison(); }

  void expect_prefetched_ones_nearer(const device_array<long long>& cycles) {
    std::vector<long long> as_they_are;
    std::vector<long long> prefetched;
    const std::vector<long long> all = cycles.download();
    for (std::uint32_t i = 0; i + 1 < tiles; ++i) (i % 2 == 0 ? as_they_are : prefetched).push_back(all[i]);
    const long long far = median(as_they_are);
    const long long near = median(prefetched);
    RecordProperty("cycles_prefetched", std::to_string(near));
    RecordProperty("cycles_from_memory", std::to_string(far));
    EXPECT_LT(near, far * 9 / 10) << far;
  }

  static long long median(std::vector<long long>& values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }

  std::unique_ptr<device_array<std::uint32_t>> source_;
  std::unique_ptr<device_array<unsigned char>> much_;
};

TEST_F(toolkit_l2, a_prefetched_tile_is_nearer) {
  const std::uint64_t dims[] = {width, tiles * rows_between};
  const std::uint32_t box[] = {width, box_rows};
  const tensor_spec spec = packed_spec(element_type::u32, source_->address(), dims, box);
  for (const map_place place : map_places) {
    SCOPED_TRACE(static_cast<int>(place));
    const device_array<long long> cycles(tiles);
    forget();
    use_map(place, spec, one_thread, tile_prefetch_use{cycles.data()});
    expect_prefetched_ones_nearer(cycles);
  }
}

TEST_F(toolkit_l2, prefetched_bytes_are_nearer) {
  const device_array<long long> cycles(tiles);
  forget();
  launch(one_thread, time_bulk, source_->data(), cycles.data());
  expect_prefetched_ones_nearer(cycles);
}

__global__ void make_hints(std::uint64_t* policies) {
  using namespace device;
  policies[0] = make_cache_hint<l2_eviction::normal>().policy();
  policies[1] = make_cache_hint<l2_eviction::first>().policy();
  policies[2] = make_cache_hint<l2_eviction::last>().policy();
  policies[3] = make_cache_hint<l2_eviction::unchanged>().policy();
  policies[4] = make_cache_hint<l2_eviction::last>(0.5f).policy();
  policies[5] = make_cache_hint<l2_eviction::last, l2_eviction::first>(0.5f).policy();
}

TEST_F(toolkit_l2, hints_differ) {
  const device_array<std::uint64_t> policies(6);
  make_hints<<<1, 1>>>(policies.data());
  const std::vector<std::uint64_t> made = policies.download();
  EXPECT_EQ(std::set<std::uint64_t>(made.begin(), made.end()).size(), made.size());
}

}  // namespace
}  // namespace tmap::testing::toolkit_l2_cases
