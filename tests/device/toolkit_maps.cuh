// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a use of a map with that map in a parameter, in constant memory and in a leased slot, and
// compares bytes.

#include <tmap/device/acquire.cuh>
#include <tmap/device/tile_copy.cuh>
#include <tmap/encode.hpp>
#include <tmap/map_service.hpp>

#include <cuda_runtime.h>
#include <cuda/ptx>

#include <memory>
#include <random>

#include "device/gpu_fixture.hpp"

namespace tmap::testing {
namespace {

enum class map_place { parameter, constant, leased_slot };
constexpr map_place map_places[] = {map_place::parameter, map_place::constant, map_place::leased_slot};

__constant__ tensor_map constant_place;

template <class Use>
__global__ void use_parameter(const __grid_constant__ tensor_map map, const Use use) {
  use(device::parameter_map(map));
}
template <class Use>
__global__ void use_constant(const Use use) {
  use(device::constant_map(constant_place));
}
template <class Use>
__global__ void use_leased(const map_batch_ref maps, const Use use) {
  use(device::acquire(maps, 0));
}
/// Uses a leased slot that the host wrote.
template <class Use>
__global__ void use_written(const tensor_map* slot, const Use use) {
  use(device::acquire(slot, device::map_scope::sys));
}

/// Takes 50 microseconds, so that a thread that fails to wait for this one comes too early.
__device__ inline void pause() {
  const std::uint64_t begin = cuda::ptx::get_sreg_globaltimer();
  while (cuda::ptx::get_sreg_globaltimer() - begin < 50'000) {
  }
}

struct launch_shape {
  std::uint32_t blocks{1};
  std::uint32_t threads{128};
  std::uint32_t cluster{1};
};

template <class... Parameters, class... Arguments>
void launch(const launch_shape& shape, void (*kernel)(Parameters...), const Arguments&... arguments) {
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = shape.cluster;
  cluster.val.clusterDim.y = 1;
  cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = shape.blocks;
  config.blockDim = shape.threads;
  config.attrs = &cluster;
  config.numAttrs = 1;
  EXPECT_EQ(cudaLaunchKernelEx(&config, kernel, arguments...), cudaSuccess);
}

/// `use` is a device callable that takes the map. Every thread of the grid calls it.
class toolkit : public gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    auto made = map_service::create();
    TMAP_ASSERT_OK(made);
    service_ = std::make_unique<map_service>(std::move(*made));
  }

  template <class Use>
  void use_map(map_place place, const tensor_spec& spec, const launch_shape& shape, const Use& use) {
    if (place != map_place::leased_slot) return use_encoded(place, encode(spec), shape, use);
    const auto base = make_template(spec, patch_address);
    TMAP_ASSERT_OK(base);
    std::vector<map_patch> patches(1);
    patches[0].global_address = spec.global_address;
    const device_array<map_patch> there(patches);
    const auto batch = service_->encode(*base, patch_array{there.data()}, 1, {stream_});
    TMAP_ASSERT_OK(batch);
    launch(shape, use_leased<Use>, batch->ref(), use);
  }

  template <class Use>
  void use_map(map_place place, const im2col_spec& spec, const launch_shape& shape, const Use& use) {
    const auto map = encode(spec);
    if (place != map_place::leased_slot) return use_encoded(place, map, shape, use);
    TMAP_ASSERT_OK(map);
    const auto batch = service_->reserve(1, stream_);
    TMAP_ASSERT_OK(batch);
    tensor_map* const slot = batch->writer().slots;
    TMAP_ASSERT_CUDA(cudaMemcpyAsync(slot, &*map, sizeof(tensor_map), cudaMemcpyDefault, cudaStream_t{}));
    launch(shape, use_written<Use>, slot, use);
  }

 private:
  template <class Use>
  void use_encoded(map_place place, const result<tensor_map>& map, const launch_shape& shape, const Use& use) {
    TMAP_ASSERT_OK(map);
    if (place == map_place::parameter) return launch(shape, use_parameter<Use>, *map, use);
    TMAP_ASSERT_CUDA(cudaMemcpyToSymbol(constant_place, &*map, sizeof(tensor_map)));
    launch(shape, use_constant<Use>, use);
  }

  std::unique_ptr<map_service> service_;
  cuda::stream_ref stream_{cudaStream_t{}};
};

using bytes = std::vector<unsigned char>;

inline bytes random_bytes(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  bytes values(count);
  for (unsigned char& value : values) value = static_cast<unsigned char>(random());
  return values;
}

/// Compares all bytes, including those around the copied ones.
inline ::testing::AssertionResult same_bytes(const bytes& found, const bytes& expected) {
  if (found.size() != expected.size()) return ::testing::AssertionFailure() << "sizes differ";
  std::size_t different = 0;
  std::size_t first = found.size();
  for (std::size_t i = found.size(); i-- > 0;) {
    if (found[i] != expected[i]) ++different, first = i;
  }
  if (different == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << different << " bytes differ, the first is " << first << ": " << +found[first]
                                       << " instead of " << +expected[first];
}

}  // namespace
}  // namespace tmap::testing
