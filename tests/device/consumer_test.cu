// SPDX-License-Identifier: Apache-2.0
// Tests the tile functions with a map in a kernel parameter, in constant memory, and in a slot of
// global memory.
#include <tmap/device/acquire.cuh>
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/patch_source.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/encode.hpp>
#include <tmap/encode_batch.hpp>

#include <memory>
#include <type_traits>

#include "device/gpu_fixture.hpp"

namespace tmap::testing::consumer_cases {
namespace {

using device::acquired_map;

// An acquired map cannot be made from a pointer, a slot or a map, so a use without an acquire does
// not compile.
static_assert(!std::is_constructible_v<acquired_map, const tensor_map*>);
static_assert(!std::is_constructible_v<acquired_map, const tensor_map&>);
static_assert(!std::is_default_constructible_v<acquired_map>);
struct load_function {
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) -> decltype(device::load_tile<2>(arguments...));
};
struct store_function {
  template <class... Arguments>
  auto operator()(Arguments&&... arguments) -> decltype(device::store_tile<2>(arguments...));
};
using corner = const std::int32_t (&)[2];
static_assert(std::is_invocable_v<load_function, void*, acquired_map, corner, device::tile_barrier&>);
static_assert(!std::is_invocable_v<load_function, void*, const tensor_map*, corner, device::tile_barrier&>);
static_assert(!std::is_invocable_v<load_function, void*, const tensor_map&, corner, device::tile_barrier&>);
static_assert(std::is_invocable_v<store_function, acquired_map, corner, const void*>);
static_assert(!std::is_invocable_v<store_function, const tensor_map*, corner, const void*>);
static_assert(std::is_trivially_copyable_v<acquired_map>);

constexpr std::uint32_t width = 64;
constexpr std::uint32_t height = 40;
constexpr std::uint32_t box_width = 32;
constexpr std::uint32_t box_height = 16;
constexpr std::uint32_t box_elements = box_width * box_height;

/// Loads the tile at `at`, adds 1 to each element with ordinary instructions, and stores it in the
/// same place.
__device__ void increment_tile(acquired_map source, acquired_map destination, corner at) {
  __shared__ alignas(128) float tile[box_elements];
  __shared__ device::tile_barrier barrier;
  if (threadIdx.x == 0) {
    barrier.init(1);
    device::fence_barrier_init();
    barrier.arrive_expect(sizeof(tile));
    device::load_tile<2>(tile, source, at, barrier);
  }
  __syncthreads();
  barrier.wait(0);
  for (std::uint32_t i = threadIdx.x; i < box_elements; i += blockDim.x) tile[i] += 1;
  device::fence_shared_writes();
  __syncthreads();
  if (threadIdx.x != 0) return;
  device::store_tile<2>(destination, at, tile);
  device::commit_stores();
  device::wait_stores_written();
}

__device__ void increment_my_tile(acquired_map source, acquired_map destination) {
  const std::int32_t at[] = {static_cast<std::int32_t>(blockIdx.x * box_width),
                             static_cast<std::int32_t>(blockIdx.y * box_height)};
  increment_tile(source, destination, at);
}

__global__ void through_parameters(const __grid_constant__ tensor_map source,
                                   const __grid_constant__ tensor_map destination) {
  increment_my_tile(device::parameter_map(source), device::parameter_map(destination));
}

__constant__ tensor_map constant_source;
__constant__ tensor_map constant_destination;

__global__ void through_constants() {
  increment_my_tile(device::constant_map(constant_source), device::constant_map(constant_destination));
}

// Every thread acquires, although only the copying thread needs to.
__global__ void through_slots(const tensor_map* slots, device::map_scope scope) {
  const acquired_map source = device::acquire(&slots[0], scope);
  const acquired_map destination = device::acquire(&slots[1], scope);
  device::prefetch(destination);
  increment_my_tile(source, destination);
}

__device__ device::guard_page safe_page;

// Does what a routing kernel's epilogue would do: encodes with the warp's function, then uses the
// maps in the same block.
__global__ void encode_and_use(const __grid_constant__ map_template base, const map_patch* patches, tensor_map* slots) {
  __shared__ device::warp_stage stage;
  tensor_map* const mine = slots + 2 * (blockIdx.y * gridDim.x + blockIdx.x);
  if (threadIdx.x < device::warp_lanes) {
    device::encode_warp(base, device::patch_array_reader({patches}, base.fields), mine, 0, 2, stage,
                        device::map_guard{&safe_page});
  }
  __syncthreads();
  increment_my_tile(device::acquire(&mine[0]), device::acquire(&mine[1]));
}

const dim3 whole_grid(width / box_width, (height + box_height - 1) / box_height);

class consumer : public gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    for (std::uint32_t i = 0; i < width * height; ++i) values_.push_back(static_cast<float>(i % 9973));
  }

  tensor_spec spec(const device_array<float>& of) const {
    const std::uint64_t dims[] = {width, height};
    const std::uint32_t box[] = {box_width, box_height};
    return packed_spec(element_type::f32, of.address(), dims, box);
  }
  tensor_map map(const device_array<float>& of) const { return encode(spec(of)).value_or(tensor_map{}); }

  void expect_incremented(const device_array<float>& destination) const {
    const std::vector<float> found = destination.download();
    std::uint32_t wrong = 0;
    for (std::uint32_t i = 0; i < width * height; ++i) wrong += found[i] != values_[i] + 1 ? 1 : 0;
    EXPECT_EQ(wrong, 0u);
  }

  std::vector<float> values_;
};

TEST_F(consumer, parameter) {
  const device_array<float> source(values_);
  const device_array<float> destination(values_.size());
  through_parameters<<<whole_grid, 128>>>(map(source), map(destination));
  TMAP_ASSERT_CUDA(cudaGetLastError());
  expect_incremented(destination);
}

TEST_F(consumer, constant) {
  const device_array<float> source(values_);
  const device_array<float> destination(values_.size());
  const tensor_map maps[] = {map(source), map(destination)};
  TMAP_ASSERT_CUDA(cudaMemcpyToSymbol(constant_source, &maps[0], sizeof(tensor_map)));
  TMAP_ASSERT_CUDA(cudaMemcpyToSymbol(constant_destination, &maps[1], sizeof(tensor_map)));
  through_constants<<<whole_grid, 128>>>();
  TMAP_ASSERT_CUDA(cudaGetLastError());
  expect_incremented(destination);
}

TEST_F(consumer, slots_written_by_the_host) {
  const device_array<float> source(values_);
  const device_array<float> destination(values_.size());
  const device_array<tensor_map> slots(std::vector<tensor_map>{map(source), map(destination)});
  through_slots<<<whole_grid, 128>>>(slots.data(), device::map_scope::sys);
  TMAP_ASSERT_CUDA(cudaGetLastError());
  expect_incremented(destination);
}

TEST_F(consumer, slots_rewritten_by_the_host_many_times) {
  const device_array<float> source(values_);
  const device_array<tensor_map> slots(2);
  std::vector<std::unique_ptr<device_array<float>>> destinations;
  for (int i = 0; i < 50; ++i) {
    destinations.push_back(std::make_unique<device_array<float>>(values_.size()));
    slots.upload({map(source), map(*destinations.back())});
    through_slots<<<whole_grid, 128>>>(slots.data(), device::map_scope::sys);
    TMAP_ASSERT_CUDA(cudaGetLastError());
  }
  for (const auto& destination : destinations) expect_incremented(*destination);
}

std::vector<map_patch> addresses(std::uint64_t source, std::uint64_t destination) {
  std::vector<map_patch> patches(2);
  patches[0].global_address = source;
  patches[1].global_address = destination;
  return patches;
}

TEST_F(consumer, slots_encoded_on_the_device) {
  const device_array<float> source(values_);
  const device_array<float> destination(values_.size());
  const result<map_template> base = make_template(spec(source), patch_address);
  TMAP_ASSERT_OK(base);
  const device_array<map_patch> patches(addresses(source.address(), destination.address()));
  const device_array<tensor_map> slots(2);
  TMAP_ASSERT_OK(encode_batch(*base, patch_array{patches.data()}, slots.data(), 2, {cudaStream_t{}}));
  through_slots<<<whole_grid, 128>>>(slots.data(), device::map_scope::gpu);
  TMAP_ASSERT_CUDA(cudaGetLastError());
  expect_incremented(destination);
}

TEST_F(consumer, encoded_and_used_in_one_kernel) {
  const device_array<float> source(values_);
  const device_array<tensor_map> slots(2 * whole_grid.x * whole_grid.y);
  for (const bool zeroed : {false, true}) {
    const device_array<float> destination(values_.size());
    const device_array<map_patch> patches(addresses(source.address(), destination.address()));
    const result<map_template> base =
        zeroed ? make_zeroed_template(spec(source), patch_address) : make_template(spec(source), patch_address);
    TMAP_ASSERT_OK(base);
    encode_and_use<<<whole_grid, 128>>>(*base, patches.data(), slots.data());
    TMAP_ASSERT_CUDA(cudaGetLastError());
    expect_incremented(destination);
  }
}

}  // namespace
}  // namespace tmap::testing::consumer_cases
