// SPDX-License-Identifier: Apache-2.0
// Tests that encode_warp writes the same slots and statuses if it knows its template's shape at
// compile time or only at run time.
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/patch_source.cuh>
#include <tmap/encode_batch.hpp>

#include "device/gpu_fixture.hpp"
#include "support/random_patch.hpp"
#include "support/random_spec.hpp"

namespace tmap::testing {
namespace {

__device__ device::guard_page page;

template <class Shape>
__global__ void encode_once(const __grid_constant__ map_template base, const map_patch* patches, tensor_map* slots,
                            map_status* statuses, std::uint32_t count) {
  __shared__ device::warp_stage stage;
  const auto read = [&](std::uint64_t i) {
    return device::patch_array_reader({patches}, base.fields).read(i, Shape::fields(base));
  };
  device::encode_warp(base, read, slots, 0, count, stage, device::map_guard{.page = &page, .statuses = statuses},
                      Shape{});
}

struct outputs {
  std::vector<tensor_map> slots;
  std::vector<map_status> statuses;
};

template <class Shape>
outputs encoded(const map_template& base, const device_array<map_patch>& patches, std::uint32_t count) {
  const device_array<tensor_map> slots(patches.size());
  const device_array<map_status> statuses(patches.size());
  encode_once<Shape><<<1, device::warp_lanes>>>(base, patches.data(), slots.data(), statuses.data(), count);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  return {slots.download(), statuses.download()};
}

/// Returns the spec's own patch, an empty one, or a misaligned one.
map_patch random_patch_of(const tensor_spec& spec, random_source& random) {
  map_patch patch = patch_of(spec);
  if (random.one_in(4)) patch.global_dim[random.below(spec.rank)] = 0;
  if (random.one_in(4)) patch.global_address += 8;
  return patch;
}

template <std::uint32_t Rank>
void compare_shapes(random_spec_source& specs) {
  tensor_spec spec = specs.legal();
  while (spec.rank != Rank) spec = specs.legal();
  const result<map_template> base = make_template(spec, patch_extents(Rank));
  TMAP_ASSERT_OK(base);
  std::vector<map_patch> made;
  for (std::uint32_t i = 0; i < device::warp_lanes; ++i) made.push_back(random_patch_of(spec, specs.random()));
  const device_array<map_patch> patches(made);
  const auto count = static_cast<std::uint32_t>(1 + specs.random().below(device::warp_lanes));
  const outputs any = encoded<device::any_shape>(*base, patches, count);
  const outputs known = encoded<device::fixed_shape<Rank, patch_extents(Rank)>>(*base, patches, count);
  EXPECT_TRUE(any.slots == known.slots) << "rank " << Rank << ", " << count << " maps";
  EXPECT_EQ(std::memcmp(any.statuses.data(), known.statuses.data(), made.size() * sizeof(map_status)), 0);
  for (std::uint32_t i = 0; i < device::warp_lanes; ++i) EXPECT_EQ(is_poison(known.slots[i]), i >= count) << i;
}

using encode_shape = gpu_test;

TEST_F(encode_shape, known_when_compiled_or_when_run_writes_the_same) {
  random_spec_source specs{31};
  for (std::uint64_t trial = 0; trial < scaled(100) && !HasFailure(); ++trial) {
    compare_shapes<1>(specs);
    compare_shapes<2>(specs);
    compare_shapes<3>(specs);
    compare_shapes<4>(specs);
    compare_shapes<5>(specs);
  }
}

}  // namespace
}  // namespace tmap::testing
