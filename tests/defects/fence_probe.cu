// SPDX-License-Identifier: Apache-2.0
// The build compiles this file to PTX and machine code, but no program runs it.
// emitted_fences_test.cpp reads the compiled code.
#include <tmap/device/acquire.cuh>
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/tile_copy.cuh>

namespace {

using namespace tmap;

struct place {
  alignas(128) int tile[32];
  device::tile_barrier barrier;
};

__device__ device::guard_page page;

// Fence, flush and load are straight-line code: no other instruction may come between them.
template <class Load>
__device__ void load_by(place& shared, int* seen, const Load& load) {
  shared.barrier.init(1);
  device::fence_barrier_init();
  shared.barrier.arrive_expect(sizeof(shared.tile));
  load();
  shared.barrier.wait(0);
  *seen = shared.tile[0];
}

__device__ void load_bare(place& shared, const tensor_map* slot) {
  namespace ptx = cuda::ptx;
  const std::int32_t at[] = {0};
  ptx::cp_async_bulk_tensor(ptx::space_shared, ptx::space_global, shared.tile, slot, at, shared.barrier.word());
}

__device__ map_patch patch_of(std::uint64_t i) {
  map_patch patch{};
  patch.global_address = i;
  return patch;
}

}  // namespace

extern "C" {

__global__ void acquire_gpu(const tensor_map* slot, int* seen) {
  __shared__ place shared;
  const std::int32_t at[] = {0};
  load_by(shared, seen, [&] { device::load_tile<1>(shared.tile, device::acquire(slot), at, shared.barrier); });
}

__global__ void acquire_sys(const tensor_map* slot, int* seen) {
  __shared__ place shared;
  const std::int32_t at[] = {0};
  load_by(shared, seen, [&] {
    device::load_tile<1>(shared.tile, device::acquire(slot, device::map_scope::sys), at, shared.barrier);
  });
}

__global__ void acquire_of_batch(map_batch_ref ref, int* seen) {
  __shared__ place shared;
  const std::int32_t at[] = {0};
  load_by(shared, seen, [&] { device::load_tile<1>(shared.tile, device::acquire(ref, 0), at, shared.barrier); });
}

// Seeds two faults: no fence, and the fence without the instruction that makes the compiler keep
// its flush.
__global__ void no_acquire(const tensor_map* slot, int* seen) {
  __shared__ place shared;
  load_by(shared, seen, [&] { load_bare(shared, slot); });
}

__global__ void fence_alone(const tensor_map* slot, int* seen) {
  namespace ptx = cuda::ptx;
  __shared__ place shared;
  load_by(shared, seen, [&] {
    ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_gpu, slot, ptx::n32_t<tensor_map_bytes>{});
    load_bare(shared, slot);
  });
}

__global__ void publish_by_warp(const __grid_constant__ map_template base, tensor_map* slots) {
  __shared__ device::warp_stage stage;
  device::encode_warp(base, patch_of, slots, 0, 1, stage, device::map_guard{&page});
}

__global__ void publish_by_stores(const __grid_constant__ map_template base, tensor_map* slots) {
  __shared__ device::warp_stage stage;
  device::warp_encoder encoder(base, stage);
  encoder.compose(patch_of, 0, 32, device::map_guard{&page});
  encoder.store(slots, 32);
  encoder.release();
}

__global__ void publish_by_copies(const __grid_constant__ map_template base, tensor_map* slots) {
  __shared__ device::warp_stage stage;
  device::warp_encoder encoder(base, stage);
  encoder.compose(patch_of, 0, 32, device::map_guard{&page});
  encoder.publish_in(slots, 32, publish::copy_fence);
}

// Seeds the fault: no release.
__global__ void stores_alone(const __grid_constant__ map_template base, tensor_map* slots) {
  __shared__ device::warp_stage stage;
  device::warp_encoder encoder(base, stage);
  encoder.compose(patch_of, 0, 32, device::map_guard{&page});
  encoder.store(slots, 32);
}

}  // extern "C"
