// SPDX-License-Identifier: Apache-2.0
// Prints two tables. The first compares kernels by graph time. The second compares ways without a
// kernel by the host's clock.
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/patch_source.cuh>

#include <cuda/ptx>

#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "apps/bench/common/table.hpp"
#include "apps/bench/encode/batches.hpp"
#include "apps/bench/encode/host_peers.hpp"
#include "apps/bench/encode/tables.hpp"
#include "apps/support/progress.hpp"

namespace tmap::apps::bench {
namespace {

constexpr std::uint32_t peer_lanes = 32;
constexpr std::uint32_t block_threads = 128;
constexpr std::uint64_t most_by_host = 65536;  // larger batches take the host too long

/// Follows the CUDA programming guide, "Encoding a tensor map on device": a warp makes one map. One
/// thread composes it in shared memory, then all copy and release it.
template <std::uint32_t FieldBits>
__global__ void __launch_bounds__(peer_lanes)
    guide_kernel(const __grid_constant__ map_template base, const __grid_constant__ device::patch_array_reader source,
                 tensor_map* slots) {
  namespace ptx = cuda::ptx;
  constexpr patch_fields fields{FieldBits};
  __shared__ tensor_map map;
  if (threadIdx.x == 0) {
    map = base.map;
    device::apply_patch(&map, patched_spec(base.spec, fields, source(blockIdx.x)), fields);
  }
  __syncwarp();
  ptx::tensormap_cp_fenceproxy(ptx::sem_release, ptx::scope_gpu, slots + blockIdx.x, &map,
                               ptx::n32_t<tensor_map_bytes>{});
}

template <int Axis, patch_fields Fields>
__device__ void replace_axis_in_global(tensor_map* map, const map_patch& patch) {
  namespace ptx = cuda::ptx;
  constexpr ptx::n32_t<Axis> axis{};
  if constexpr (has_any(Fields, patch_dim(Axis))) {
    ptx::tensormap_replace_global_dim(ptx::space_global, map, axis, static_cast<std::uint32_t>(patch.global_dim[Axis]));
  }
  if constexpr (Axis + 1 < static_cast<int>(max_rank) && has_any(Fields, patch_stride(Axis))) {
    ptx::tensormap_replace_global_stride(ptx::space_global, map, axis, patch.global_stride_bytes[Axis]);
  }
  if constexpr (has_any(Fields, patch_box(Axis))) {
    ptx::tensormap_replace_box_dim(ptx::space_global, map, axis, patch.box_dim[Axis]);
  }
  if constexpr (has_any(Fields, patch_element_stride(Axis))) {
    const std::uint32_t step = patch.element_stride[Axis];
    ptx::tensormap_replace_element_stride(ptx::space_global, map, axis, step);
  }
}

/// Edits each map in place, one thread per map.
template <std::uint32_t FieldBits>
__global__ void __launch_bounds__(block_threads)
    replace_in_global_kernel(const __grid_constant__ map_template base,
                             const __grid_constant__ device::patch_array_reader source, tensor_map* slots,
                             std::uint64_t count) {
  namespace ptx = cuda::ptx;
  constexpr patch_fields fields{FieldBits};
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const map_patch patch = source(i);
  tensor_map* const map = slots + i;
  *map = base.map;
  ptx::tensormap_replace_global_address(ptx::space_global, map, patch.global_address);
  replace_axis_in_global<0, fields>(map, patch);
  replace_axis_in_global<1, fields>(map, patch);
  replace_axis_in_global<2, fields>(map, patch);
  replace_axis_in_global<3, fields>(map, patch);
  replace_axis_in_global<4, fields>(map, patch);
  ptx::fence_proxy_tensormap_generic(ptx::sem_release, ptx::scope_gpu);
}

/// Times in microseconds; a field without a measurement is empty.
struct peer_figures {
  patch_case shape;
  std::uint64_t count;
  double tmap;
  double guide;
  double in_global;
  double tmap_end_to_end;
  std::optional<double> host;
  std::optional<double> host_from_device;
};

/// Returns the maps that `encode` writes.
template <class Encode>
std::vector<tensor_map> maps_of(const batch& b, const Encode& encode) {
  std::vector<tensor_map> maps(b.count());
  require(cudaMemset(b.slots(), 0xff, maps.size() * sizeof(tensor_map)));
  encode(cudaStream_t{});
  require(cudaMemcpy(maps.data(), b.slots(), maps.size() * sizeof(tensor_map), cudaMemcpyDeviceToHost));
  return maps;
}

void measure_host(const timer& clock, const patch_case& shape, const std::vector<map_patch>& patches, const batch& b,
                  const std::vector<tensor_map>& maps, peer_figures& f) {
  const host_encoder on_host(shape, patches);
  const auto host = [&](cudaStream_t stream) { on_host.encode(b.slots(), stream); };
  const auto from_device = [&](cudaStream_t stream) { on_host.encode_from(b.source().patches, b.slots(), stream); };
  require(maps_of(b, host) == maps);
  require(maps_of(b, from_device) == maps);
  f.host = clock.end_to_end_microseconds(host);
  f.host_from_device = clock.end_to_end_microseconds(from_device);
}

template <patch_fields Fields>
peer_figures measure_peer(const timer& clock, const patch_case& shape, const std::vector<map_patch>& patches) {
  const batch b(shape, patches);
  const device::patch_array_reader source(b.source(), Fields);
  const auto blocks = static_cast<std::uint32_t>((b.count() + block_threads - 1) / block_threads);
  const auto tmap = [&](cudaStream_t stream) { b.encode(stream); };
  const auto guide = [&](cudaStream_t stream) {
    guide_kernel<bits_of(Fields)>
        <<<static_cast<std::uint32_t>(b.count()), peer_lanes, 0, stream>>>(b.base(), source, b.slots());
    require(cudaGetLastError());
  };
  const auto in_global = [&](cudaStream_t stream) {
    replace_in_global_kernel<bits_of(Fields)>
        <<<blocks, block_threads, 0, stream>>>(b.base(), source, b.slots(), b.count());
    require(cudaGetLastError());
  };
  // The comparison is fair only if all ways write the same bytes.
  const std::vector<tensor_map> maps = maps_of(b, tmap);
  require(maps_of(b, guide) == maps);
  require(maps_of(b, in_global) == maps);
  peer_figures f{shape,
                 b.count(),
                 clock.graph_microseconds(tmap),
                 clock.graph_microseconds(guide),
                 clock.graph_microseconds(in_global),
                 clock.end_to_end_microseconds(tmap),
                 {},
                 {}};
  if (b.count() <= most_by_host) measure_host(clock, shape, patches, b, maps, f);
  return f;
}

std::vector<peer_figures> measure_peers(const timer& clock) {
  progress bar{"peers", 2 * std::size(sizes)};
  std::vector<peer_figures> all;
  for (const std::uint64_t count : sizes) {
    const std::vector<map_patch> patches = make_patches(count);
    all.push_back(measure_peer<few.fields>(clock, few, patches));
    bar.advance(1);
    all.push_back(measure_peer<everything.fields>(clock, everything, patches));
    bar.advance(1);
  }
  return all;
}

std::string cell(std::uint64_t count, const std::optional<double>& microseconds) {
  if (!microseconds) return "-";
  return text(*microseconds) + " (" + rate_text(count, *microseconds) + ")";
}

std::string ratio(const std::optional<double>& peer, double own) {
  return peer ? text(*peer / own, 1) : "-";
}

}  // namespace

void print_peers(const timer& clock) {
  const std::vector<peer_figures> all = measure_peers(clock);
  table kernels("Peers on the device: microseconds as one of a hundred nodes of a graph, and maps made at that rate.",
                {"patches", "maps", "**tmap**", "one warp, one map (guide)", "replace in global memory", "guide / tmap",
                 "in global / tmap"});
  table hosts("Peers on the host: microseconds from the call until the maps are in their slots, by the host's clock.",
              {"patches", "maps", "**tmap**", "driver loop and copy, shapes on the host",
               "the same, shapes on the device", "loop / tmap", "loop from device / tmap"});
  for (const peer_figures& f : all) {
    kernels.add({f.shape.name, count_text(f.count), cell(f.count, f.tmap), cell(f.count, f.guide),
                 cell(f.count, f.in_global), ratio(f.guide, f.tmap), ratio(f.in_global, f.tmap)});
    hosts.add({f.shape.name, count_text(f.count), cell(f.count, f.tmap_end_to_end), cell(f.count, f.host),
               cell(f.count, f.host_from_device), ratio(f.host, f.tmap_end_to_end),
               ratio(f.host_from_device, f.tmap_end_to_end)});
  }
  kernels.print();
  hosts.print();
}

}  // namespace tmap::apps::bench
