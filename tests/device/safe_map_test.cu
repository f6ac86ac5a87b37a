// SPDX-License-Identifier: Apache-2.0
// Tests the safe empty map in use: loads return fill and complete, and stores only touch the guard
// page.
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/patch_source.cuh>
#include <tmap/encode_batch.hpp>

#include "device/gpu_fixture.hpp"
#include "device/map_consumer.cuh"
#include "device/safe_map.hpp"
#include "support/random_patch.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint32_t tile_limit = 32 * 1024;
constexpr unsigned char stored = 0x5c;

__device__ device::guard_page kernel_page;

/// Loads the tile at the origin with one warp and counts its zero bytes. Bytes that no load wrote
/// are not zero.
template <std::uint32_t Rank>
__global__ void count_zeros(const tensor_map* map, tensor_spec spec, unsigned int* zeros) {
  extern __shared__ __align__(1024) unsigned char tile[];
  __shared__ device::tile_barrier barrier;
  if (threadIdx.x == 0) barrier.init(1), device::fence_barrier_init();
  for (std::uint32_t i = threadIdx.x; i < tile_limit; i += warpSize) tile[i] = stored;
  device::fence_shared_writes();
  __syncwarp();
  const device::acquired_map acquired = device::acquire(map);
  if (threadIdx.x == 0) {
    const std::int32_t origin[Rank] = {};
    barrier.arrive_expect(static_cast<std::uint32_t>(tile_bytes(spec)));
    device::load_tile<Rank>(tile, acquired, origin, barrier);
  }
  barrier.wait(0);
  for (std::uint32_t i = threadIdx.x; i < tile_limit; i += warpSize) {
    if (tile[i] == 0) atomicAdd(zeros, 1);
  }
}

/// Encodes `patch` with one warp and a page of the test's own, and stores at every corner.
template <std::uint32_t Rank>
__global__ void encode_and_store(const __grid_constant__ map_template base, const map_patch* patch, tensor_map* slot,
                                 const device::guard_page* page) {
  extern __shared__ __align__(1024) unsigned char tile[];
  __shared__ device::warp_stage stage;
  __shared__ device::tile_barrier barrier;
  const device::patch_array_reader source({patch}, base.fields);
  device::encode_warp(base, source, slot, 0, 1, stage, device::map_guard{page});
  for (std::uint32_t i = threadIdx.x; i < tile_limit; i += warpSize) tile[i] = stored;
  device::fence_shared_writes();
  __syncwarp();
  if (threadIdx.x != 0) return;
  const tensor_spec spec = empty_spec(base.spec, 0);
  corner_user<Rank>(spec, tile, barrier).store_all(device::acquire(slot));
}

template <class Launch>
void for_rank(std::uint32_t rank, const Launch& launch) {
  switch (rank) {
    case 1: return launch(std::integral_constant<std::uint32_t, 1>{});
    case 2: return launch(std::integral_constant<std::uint32_t, 2>{});
    case 3: return launch(std::integral_constant<std::uint32_t, 3>{});
    case 4: return launch(std::integral_constant<std::uint32_t, 4>{});
    default: return launch(std::integral_constant<std::uint32_t, 5>{});
  }
}

/// Returns the bytes of the one element, or unit, that lies inside.
std::uint32_t bytes_inside(const tensor_spec& spec) {
  return static_cast<std::uint32_t>(detail::row_bytes(spec, 1));
}

class safe_map_use : public gpu_test {
 protected:
  /// Returns a template of random modes whose extents are all patched.
  map_template next_template() {
    tensor_spec spec = specs_.legal();
    while (tile_footprint_bytes(spec) > tile_limit) spec = specs_.legal();
    const result<map_template> base = make_template(spec, patch_extents(spec.rank));
    EXPECT_TRUE(base.has_value()) << to_string(base.error());
    return base.value_or(map_template{});
  }

  /// Returns a patch that is refused, for one of several reasons.
  map_patch refused_patch(const map_template& base) {
    map_patch patch = patch_of(base.spec);
    if (specs_.random().one_in(2)) patch.global_dim[base.spec.rank - 1] = 0;
    patch.global_address = specs_.random().one_in(2) ? 0 : 4104;
    return patch;
  }

  random_spec_source specs_{21};
};

TEST_F(safe_map_use, loads_complete_with_zeros_or_the_fill) {
  const device_array<tensor_map> slot(1);
  const device_array<unsigned int> zeros(1);
  TMAP_ASSERT_CUDA(cudaMemset(reinterpret_cast<void*>(library_page()), 0, sizeof(device::guard_page)));
  for (std::uint64_t i = 0; i < scaled(3000); ++i) {
    const map_template base = next_template();
    const device_array<map_patch> patch(std::vector<map_patch>{refused_patch(base)});
    TMAP_ASSERT_OK(encode_batch(base, patch_array{patch.data()}, slot.data(), 1, {cudaStream_t{}}));
    TMAP_ASSERT_CUDA(cudaMemset(zeros.data(), 0, sizeof(unsigned int)));
    for_rank(base.spec.rank, [&](auto rank) {
      count_zeros<decltype(rank)::value><<<1, 32, tile_limit>>>(slot.data(), base.spec, zeros.data());
    });
    TMAP_ASSERT_CUDA(cudaGetLastError());
    const bool fills_zeros = base.spec.oob_fill == oob_fill::zero;
    ASSERT_EQ(zeros.download()[0], fills_zeros ? tile_bytes(base.spec) : bytes_inside(base.spec)) << i;
  }
}

TEST_F(safe_map_use, stores_touch_the_first_bytes_of_a_page_of_the_kernels_own) {
  const device_array<tensor_map> slot(1);
  const device_array<device::guard_page> pages(3);
  for (std::uint64_t i = 0; i < scaled(3000); ++i) {
    const map_template base = next_template();
    const device_array<map_patch> patch(std::vector<map_patch>{refused_patch(base)});
    pages.fill_poison();
    TMAP_ASSERT_CUDA(cudaMemset(pages.data() + 1, 0, sizeof(device::guard_page)));
    for_rank(base.spec.rank, [&](auto rank) {
      encode_and_store<decltype(rank)::value><<<1, 32, tile_limit>>>(base, patch.data(), slot.data(), pages.data() + 1);
    });
    TMAP_ASSERT_CUDA(cudaGetLastError());
    const std::vector<device::guard_page> after = pages.download();
    ASSERT_TRUE(is_poison(after[0]) && is_poison(after[2])) << i;
    const auto* const bytes = after[1].bytes;
    ASSERT_EQ(std::count(bytes, bytes + 16, stored), 16) << i;
    ASSERT_EQ(std::count(bytes + 32, bytes + sizeof(device::guard_page), 0), 96) << i;
  }
}

// A page that is declared in the kernel's own module begins zeroed and needs no allocation.
TEST_F(safe_map_use, a_page_in_the_kernels_module_is_zeroed) {
  device::guard_page page;
  std::memset(&page, 1, sizeof(page));
  TMAP_ASSERT_CUDA(cudaMemcpyFromSymbol(&page, kernel_page, sizeof(page)));
  EXPECT_EQ(std::count(page.bytes, page.bytes + sizeof(page), 0), 128);
}

}  // namespace
}  // namespace tmap::testing
