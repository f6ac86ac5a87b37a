// SPDX-License-Identifier: Apache-2.0
#include "kernels/encode/counting_guard.cuh"
#include "kernels/launch.hpp"
#include "kernels/load_kernel.hpp"

#include <tmap/device/encode_warp.cuh>
#include <tmap/device/patch_source.cuh>

#include <cstdint>
#include <variant>

namespace tmap::kernels {
namespace {

constexpr std::uint32_t update_block_warps = 4;
constexpr std::uint32_t update_block_threads = update_block_warps * device::warp_lanes;
constexpr std::uint32_t map_chunks = tensor_map_bytes / sizeof(uint4);

// The safe empty maps that an update makes point to this page. Loading the module zeroes it.
__device__ device::guard_page update_page;

/// Returns the map that change j names, or `map_count` if there is no such change or it names no
/// map.
__device__ std::uint32_t map_of(const update_target& target, std::uint64_t j) {
  const std::uint32_t map = j < target.change_count ? target.changes[j] : target.map_count;
  return map < target.map_count ? map : target.map_count;
}

/// Returns patch `changes[j]`. For a change that names no map it returns an empty patch, whose map
/// is composed and then stored nowhere.
template <class Source>
struct changed_source {
  const Source& source;
  const update_target& target;

  __device__ map_patch operator()(std::uint64_t j) const {
    const std::uint32_t map = map_of(target, j);
    return map < target.map_count ? source(map) : map_patch{};
  }
};

/// A guard that writes a map's status at the index of the map's slot, and counts it by its index in
/// the batch.
struct update_guard : counting_guard {
  const update_target& target;

  __device__ update_guard(const encode_terms& terms, const update_target& to, const fault_sink& faults)
      : counting_guard(update_page, nullptr, terms, faults), target(to) {}

  __device__ void report(std::uint64_t j, bool has_change, map_status status) const {
    const std::uint32_t map = has_change ? map_of(target, j) : target.map_count;
    const bool has_map = map < target.map_count;
    if (has_map && target.statuses != nullptr) target.statuses[target.table == nullptr ? map : j] = status;
    counting_guard::report(map, has_map, has_map ? status : map_status{});
  }
};

/// Returns the slot of change j, or null for one that names no map.
__device__ tensor_map* slot_of(const update_target& target, std::uint64_t j) {
  const std::uint32_t map = map_of(target, j);
  if (map == target.map_count) return nullptr;
  return target.slots + (target.table == nullptr ? map : j);
}

/// Enters the slots of the changed maps `first` to `first + count` in the table. All lanes of the
/// warp call it.
__device__ void enter_changed(const update_target& target, std::uint64_t first, std::uint32_t count) {
  const std::uint64_t j = first + device::lane_index();
  if (target.table == nullptr || device::lane_index() >= count || slot_of(target, j) == nullptr) return;
  target.table[map_of(target, j)] = target.first_slot + static_cast<std::uint32_t>(j);
}

/// Stores the composed maps `first` to `first + count` in their slots. All lanes of the warp call
/// it.
__device__ void store_changed(device::warp_stage& maps, const update_target& target, std::uint64_t first,
                              std::uint32_t count) {
  for (std::uint32_t at = device::lane_index(); at < count * map_chunks; at += device::warp_lanes) {
    tensor_map* const slot = slot_of(target, first + at / map_chunks);
    if (slot != nullptr) reinterpret_cast<uint4*>(slot)[at % map_chunks] = maps.chunk(at);
  }
}

template <publish How, class Source>
__global__ void __launch_bounds__(update_block_threads)
    update_kernel(const __grid_constant__ map_template base, const __grid_constant__ Source source,
                  const __grid_constant__ encode_terms terms, const __grid_constant__ update_target target,
                  std::uint32_t maps_per_warp, const __grid_constant__ fault_sink faults) {
  __shared__ device::warp_stage stages[update_block_warps];
  const std::uint32_t warp = threadIdx.x / device::warp_lanes;
  const std::uint64_t first = (std::uint64_t{blockIdx.x} * update_block_warps + warp) * maps_per_warp;
  if (first >= target.change_count) return;
  const std::uint64_t left = target.change_count - first;
  const std::uint32_t maps = left < maps_per_warp ? static_cast<std::uint32_t>(left) : maps_per_warp;
  device::warp_encoder encoder(base, stages[warp]);
  encoder.compose(changed_source<Source>{source, target}, first, maps,
                  update_guard(terms_for(terms, source), target, faults));
  enter_changed(target, first, maps);
  if constexpr (How == publish::copy_fence) {
    encoder.copy_fence(maps, [&](std::uint32_t i) { return slot_of(target, first + i); });
  } else {
    store_changed(stages[warp], target, first, maps);
    encoder.release();
  }
}

__global__ void __launch_bounds__(update_block_threads)
    share_kernel(const map_batch_ref from, std::uint32_t offset, std::uint32_t* table) {
  const std::uint32_t i = blockIdx.x * update_block_threads + threadIdx.x;
  if (i < from.count) table[i] = offset + from.slot_index(i);
}

/// Eight threads copy a map. They read through the generic proxy, through which the maps were
/// stored. The copies need a release of their own before the copy engine may read them.
__global__ void __launch_bounds__(update_block_threads)
    gather_kernel(const map_batch_ref from, tensor_map* slots, map_status* statuses) {
  const std::uint32_t thread = blockIdx.x * update_block_threads + threadIdx.x;
  const std::uint32_t i = thread / map_chunks;
  const std::uint32_t chunk = thread % map_chunks;
  if (i < from.count) {
    reinterpret_cast<uint4*>(slots + i)[chunk] = reinterpret_cast<const uint4*>(from.slot(i))[chunk];
    if (chunk == 0 && statuses != nullptr) statuses[i] = from.status(i);
  }
  device::warp_encoder<>::release();
}

template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), std::uint64_t threads, cudaStream_t stream,
                   const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = static_cast<std::uint32_t>((threads + update_block_threads - 1) / update_block_threads);
  config.blockDim = update_block_threads;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

/// Launches the kernel for the source that it is called with.
struct update_launch {
  const encode_plan& plan;
  const map_template& base;
  const update_target& target;
  cudaStream_t stream;
  const encode_terms& terms;
  const fault_sink& faults;
  const map_owners& owners;

  cudaError_t operator()(const patch_array& source) const {
    return launch_owned(device::patch_array_reader(source, base.fields));
  }
  cudaError_t operator()(const patch_columns& source) const {
    return launch_owned(device::patch_columns_reader(source, base.fields));
  }
  cudaError_t operator()(const compact_columns& source) const {
    return launch_owned(device::compact_columns_reader(source, base.fields));
  }
  cudaError_t operator()(const ragged_rows&) const { return cudaErrorInvalidValue; }

 private:
  /// Maps of peers are published by stores alone.
  template <class Reader>
  cudaError_t launch_owned(const Reader& reader) const {
    if (owners.ranks != nullptr) return launch_reader<publish::stores>(device::peer_reader<Reader>(reader, owners));
    return plan.published_by == publish::stores ? launch_reader<publish::stores>(reader)
                                                : launch_reader<publish::copy_fence>(reader);
  }

  template <publish How, class Reader>
  cudaError_t launch_reader(const Reader& reader) const {
    const std::uint64_t warps = (target.change_count + plan.maps_per_warp - 1) / plan.maps_per_warp;
    return launch(update_kernel<How, Reader>, warps * device::warp_lanes, stream, base, reader, terms, target,
                  plan.maps_per_warp, faults);
  }
};

template <class Source>
cudaError_t load_update() {
  cudaError_t code = load(update_kernel<publish::stores, Source>);
  if (code == cudaSuccess) code = load(update_kernel<publish::stores, device::peer_reader<Source>>);
  return code == cudaSuccess ? load(update_kernel<publish::copy_fence, Source>) : code;
}

}  // namespace

cudaError_t load_update_kernels() {
  cudaError_t code = load_update<device::patch_array_reader>();
  if (code == cudaSuccess) code = load_update<device::patch_columns_reader>();
  if (code == cudaSuccess) code = load_update<device::compact_columns_reader>();
  if (code == cudaSuccess) code = load(share_kernel);
  if (code == cudaSuccess) code = load(gather_kernel);
  return code;
}

cudaError_t launch_update(const encode_plan& plan, const map_template& base, const tensor_source& source,
                          const update_target& target, cudaStream_t stream, const encode_terms& terms,
                          const fault_sink& faults, const map_owners& owners) {
  return std::visit(update_launch{plan, base, target, stream, terms, faults, owners}, source);
}

cudaError_t launch_share(const map_batch_ref& from, std::uint32_t offset, std::uint32_t* table, cudaStream_t stream) {
  return launch(share_kernel, from.count, stream, from, offset, table);
}

cudaError_t launch_gather(const map_batch_ref& from, tensor_map* slots, map_status* statuses, cudaStream_t stream) {
  return launch(gather_kernel, std::uint64_t{from.count} * map_chunks, stream, from, slots, statuses);
}

}  // namespace tmap::kernels
