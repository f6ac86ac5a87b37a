// SPDX-License-Identifier: Apache-2.0
#include "kernels/launch.hpp"

#include <tmap/device/encode_warp.cuh>
#include <tmap/device/patch_source.cuh>

#include <algorithm>
#include <type_traits>

namespace tmap::kernels {
namespace {

constexpr std::uint32_t block_warps = 4;
constexpr std::uint32_t block_threads = block_warps * device::warp_lanes;

// Maps 128 bytes apart lie in the same banks, so that 32 lanes editing 32 of them take turns. 16 bytes more spread
// them over eight times as many banks. tensormap.replace asks for no alignment beyond that of the words it edits
// once ptxas has made plain loads and stores of it, which this library ships, never PTX; the tests compare the bytes.
using padded_stage = device::basic_warp_stage<tensor_map_bytes + 16>;

template <publish_path Path>
using stage_for = std::conditional_t<Path == publish_path::copy_fence, device::warp_stage, padded_stage>;

// Where the safe empty maps of this library point to, on each device: zeroed when the module is loaded.
__device__ device::guard_page library_page;

__device__ device::map_guard guard_of(const encode_options& options) {
  return {&library_page, options.statuses, options.header, options.totals, options.windows, options.window_count};
}

__device__ device::trusted_patches guard_of(device::trusted_patches trusted) {
  return trusted;
}

/// `Options` are `encode_options`, or `device::trusted_patches`.
template <publish_path Path, class Source, class Options>
__global__ void __launch_bounds__(block_threads)
    encode_kernel(const __grid_constant__ map_template base, const __grid_constant__ Source source,
                  const __grid_constant__ Options options, tensor_map* slots, std::uint64_t count,
                  std::uint32_t maps_per_warp) {
  __shared__ stage_for<Path> stages[block_warps];
  const std::uint32_t warp = threadIdx.x / device::warp_lanes;
  const std::uint64_t first = (std::uint64_t{blockIdx.x} * block_warps + warp) * maps_per_warp;
  if (first >= count) return;
  const std::uint64_t left = count - first;
  const std::uint32_t maps = left < maps_per_warp ? static_cast<std::uint32_t>(left) : maps_per_warp;
  device::warp_encoder encoder(base, stages[warp]);
  encoder.compose(source, first, maps, guard_of(options));
  if constexpr (Path == publish_path::copy_fence) {
    encoder.copy_and_release(slots + first, maps);
  } else {
    encoder.store(slots + first, maps);
    encoder.release();
  }
}

__global__ void reset_header_kernel(batch_header* header) {
  *header = batch_header{};
}

template <class Source, class Options>
cudaError_t launch(const encode_plan& plan, const map_template& base, const Source& source, const Options& options,
                   tensor_map* slots, std::uint64_t count, cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  const std::uint64_t block_maps = std::uint64_t{block_warps} * plan.maps_per_warp;
  config.gridDim = static_cast<std::uint32_t>((count + block_maps - 1) / block_maps);
  config.blockDim = block_threads;
  config.stream = stream;
  const auto kernel = plan.path == publish_path::copy_fence ? encode_kernel<publish_path::copy_fence, Source, Options>
                                                            : encode_kernel<publish_path::store_fence, Source, Options>;
  return cudaLaunchKernelEx(&config, kernel, base, source, options, slots, count, plan.maps_per_warp);
}

template <class Source>
cudaError_t launch_guarded(const encode_plan& plan, const map_template& base, const Source& source, tensor_map* slots,
                           std::uint64_t count, cudaStream_t stream, const encode_options& options) {
  if (options.trusted) return launch(plan, base, source, device::trusted_patches{}, slots, count, stream);
  return launch(plan, base, source, options, slots, count, stream);
}

}  // namespace

encode_plan plan_encode(std::uint64_t count, std::uint32_t multiprocessors) {
  constexpr std::uint64_t warps_per_multiprocessor = 4;
  const std::uint64_t warps = multiprocessors * warps_per_multiprocessor;
  const std::uint64_t maps_per_warp = std::clamp<std::uint64_t>((count + warps - 1) / warps, 1, device::warp_lanes);
  const publish_path path = maps_per_warp == 1 ? publish_path::copy_fence : publish_path::store_fence;
  return {path, static_cast<std::uint32_t>(maps_per_warp)};
}

cudaError_t launch_encode(const encode_plan& plan, const map_template& base, const patch_array& source,
                          tensor_map* slots, std::uint64_t count, cudaStream_t stream, const encode_options& options) {
  return launch_guarded(plan, base, device::patch_array_reader(source, base.fields), slots, count, stream, options);
}

cudaError_t launch_encode(const encode_plan& plan, const map_template& base, const patch_columns& source,
                          tensor_map* slots, std::uint64_t count, cudaStream_t stream, const encode_options& options) {
  return launch_guarded(plan, base, device::patch_columns_reader(source, base.fields), slots, count, stream, options);
}

cudaError_t launch_header_reset(batch_header* header, cudaStream_t stream) {
  reset_header_kernel<<<1, 1, 0, stream>>>(header);
  return cudaGetLastError();
}

cudaError_t encode_kernel_image() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes,
                               encode_kernel<publish_path::copy_fence, device::patch_array_reader, encode_options>);
}

template <class Offset>
cudaError_t launch_encode(const encode_plan& plan, const map_template& base, const ragged_rows<Offset>& source,
                          const std::int64_t* begins, tensor_map* slots, std::uint64_t count, cudaStream_t stream,
                          const encode_options& options) {
  return launch_guarded(plan, base, device::ragged_rows_reader<Offset>(source, begins), slots, count, stream, options);
}

template cudaError_t launch_encode(const encode_plan&, const map_template&, const ragged_rows<std::int32_t>&,
                                   const std::int64_t*, tensor_map*, std::uint64_t, cudaStream_t,
                                   const encode_options&);
template cudaError_t launch_encode(const encode_plan&, const map_template&, const ragged_rows<std::int64_t>&,
                                   const std::int64_t*, tensor_map*, std::uint64_t, cudaStream_t,
                                   const encode_options&);

}  // namespace tmap::kernels
