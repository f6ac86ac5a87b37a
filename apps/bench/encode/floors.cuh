// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels that an encode is compared with, in the same launch configuration. One does nothing.
// The other, the floor, reads the same patches and stores 128 bytes per map. Both wait for the
// preceding kernel, as the encoder must.
#include <tmap/map_patch.hpp>
#include <tmap/map_template.hpp>
#include <tmap/tensor_map.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>

#include "apps/support/timing.hpp"

namespace tmap::apps::bench {
namespace {

constexpr std::uint32_t lanes = 32;
constexpr std::uint32_t most_threads = 128;

/// Holds the launch configuration of a kernel.
struct launch_shape {
  dim3 grid;
  dim3 block;
  std::uint32_t shared_bytes;  // static plus dynamic

  std::uint64_t warps() const { return std::uint64_t{grid.x} * block.x / lanes; }
};

/// Returns the launch configuration of the only kernel that `enqueue` enqueues.
template <class Enqueue>
launch_shape shape_of(const timer& clock, const Enqueue& enqueue) {
  const captured_graph graph(clock.stream(), enqueue, 1);
  cudaGraphNode_t node = nullptr;
  std::size_t count = 0;
  require(cudaGraphGetNodes(graph.get(), nullptr, &count));
  require(count == 1);
  require(cudaGraphGetNodes(graph.get(), &node, &count));
  cudaKernelNodeParams launch{};
  require(cudaGraphKernelNodeGetParams(node, &launch));
  cudaFuncAttributes kernel{};
  require(cudaFuncGetAttributes(&kernel, launch.func));
  require(launch.blockDim.x <= most_threads);
  return {launch.gridDim, launch.blockDim, static_cast<std::uint32_t>(kernel.sharedSizeBytes) + launch.sharedMemBytes};
}

/// Makes the encoder's two calls for overlapping launches.
__device__ void overlap_as_encoder(std::uint32_t maps_per_warp) {
  if (maps_per_warp == 1) cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
}

/// Has the size of the validation and report parameters of the encoder's kernel.
struct encoder_terms {
  std::uint64_t words[5];
};

/// Mirrors the encoder's parameters.
template <class Reader>
__global__ void __launch_bounds__(most_threads)
    empty_kernel(const __grid_constant__ map_template, const __grid_constant__ Reader,
                 const __grid_constant__ encoder_terms, tensor_map*, std::uint64_t, std::uint32_t maps_per_warp) {
  overlap_as_encoder(maps_per_warp);
}

/// Uses every field of `Fields`, so that the kernel has to load each of them.
template <patch_fields Fields>
__device__ std::uint64_t mix(const map_patch& patch) {
  std::uint64_t mixed = has_any(Fields, patch_address) ? patch.global_address.value() : 0;
#pragma unroll
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    if (has_any(Fields, patch_dim(axis))) mixed ^= patch.global_dim[axis];
    if (axis + 1 < max_rank && has_any(Fields, patch_stride(axis))) mixed ^= patch.global_stride_bytes[axis];
    if (has_any(Fields, patch_box(axis))) mixed ^= patch.box_dim[axis];
    if (has_any(Fields, patch_element_stride(axis))) mixed ^= patch.element_stride[axis];
  }
  return mixed;
}

/// `FieldBits` are those of a `patch_fields`, which nvcc 13.0 does not take as a kernel's argument.
template <std::uint32_t FieldBits, class Reader>
__global__ void __launch_bounds__(most_threads) floor_kernel(const __grid_constant__ Reader source, tensor_map* slots,
                                                             std::uint64_t count, std::uint32_t maps_per_warp) {
  constexpr std::uint32_t chunks = tensor_map_bytes / sizeof(ulonglong2);
  const std::uint64_t first = (std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) / lanes * maps_per_warp;
  const std::uint32_t lane = threadIdx.x % lanes;
  overlap_as_encoder(maps_per_warp);
  if (first >= count) return;
  const std::uint64_t left = count - first;
  const std::uint32_t maps = left < maps_per_warp ? static_cast<std::uint32_t>(left) : maps_per_warp;
  std::uint64_t mixed = 0;
  if (lane < maps) mixed = mix<patch_fields{FieldBits}>(source(first + lane));
  auto* const target = reinterpret_cast<ulonglong2*>(slots + first);
#pragma unroll
  for (std::uint32_t at = lane; at < lanes * chunks; at += lanes) {
    if (at < maps * chunks) target[at] = {mixed, mixed};
  }
}

/// States whether a kernel may start before the preceding one has ended, as the encoder may.
enum class overlap_with_last { allowed, none };

/// Holds what a comparison kernel has in common with an encode of `count` maps.
class twin {
 public:
  template <class Enqueue>
  twin(const timer& clock, std::uint64_t count, const Enqueue& encode)
      : shape_(shape_of(clock, encode)),
        maps_per_warp_(static_cast<std::uint32_t>((count + shape_.warps() - 1) / shape_.warps())) {}

  std::uint32_t maps_per_warp() const { return maps_per_warp_; }

  template <class... Parameters, class... Arguments>
  void launch(cudaStream_t stream, overlap_with_last overlap, std::uint32_t shared_bytes, void (*kernel)(Parameters...),
              const Arguments&... arguments) const {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = shape_.grid;
    config.blockDim = shape_.block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = overlap == overlap_with_last::allowed ? 1 : 0;
    require(cudaLaunchKernelEx(&config, kernel, arguments...));
  }

  std::uint32_t shared_bytes() const { return shape_.shared_bytes; }

 private:
  launch_shape shape_;
  std::uint32_t maps_per_warp_;
};

}  // namespace
}  // namespace tmap::apps::bench
