// SPDX-License-Identifier: Apache-2.0
// What encoding a batch of maps costs, beside its floor and its peers. Prints Markdown.
// CUDA events around one launch, median of 51; the host's way by the host's clock.
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/patch_source.cuh>
#include <tmap/encode_batch.hpp>

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "bench/timing.hpp"

namespace tmap::bench {
namespace {

constexpr std::uint32_t block_warps = 4;
constexpr std::uint32_t block_threads = block_warps * device::warp_lanes;
constexpr std::uint64_t sizes[] = {1, 256, 4096, 65536, 1048576};

/// Everything one measurement needs, on the device.
struct batch {
  map_template base;
  patch_array source;
  tensor_map* slots;
  std::uint64_t count;
};

__global__ void empty_kernel() {}

/// The floor: reads what the encoder reads and stores 128 bytes a map, coalesced; the bytes mean nothing.
__global__ void __launch_bounds__(block_threads)
    floor_kernel(const __grid_constant__ device::patch_array_reader source, uint4* out, std::uint64_t count) {
  const std::uint64_t first = (std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32 * 32;
  const std::uint32_t lane = threadIdx.x % 32;
  if (first >= count) return;
  map_patch patch{};
  if (first + lane < count) patch = source(first + lane);
  const uint4* const words = reinterpret_cast<const uint4*>(&patch);
  uint4 mixed{};
  for (std::uint32_t i = 0; i < sizeof(map_patch) / sizeof(uint4); ++i) {
    mixed = {mixed.x ^ words[i].x, mixed.y ^ words[i].y, mixed.z ^ words[i].z, mixed.w ^ words[i].w};
  }
  for (std::uint64_t at = first * 8 + lane; at < std::min(count, first + 32) * 8; at += 32) out[at] = mixed;
}

template <bool Stores, class Stage>
__global__ void __launch_bounds__(block_threads)
    variant_kernel(const __grid_constant__ map_template base, const __grid_constant__ device::patch_array_reader source,
                   tensor_map* slots, std::uint64_t count, std::uint32_t maps_per_warp) {
  __shared__ Stage stages[block_warps];
  const std::uint64_t first = (std::uint64_t{blockIdx.x} * block_warps + threadIdx.x / 32) * maps_per_warp;
  if (first >= count) return;
  const auto maps = static_cast<std::uint32_t>(std::min<std::uint64_t>(count - first, maps_per_warp));
  device::warp_encoder<Stage> encoder(base, stages[threadIdx.x / 32]);
  encoder.compose(source, first, maps, device::trusted_patches{});
  if constexpr (Stores) {
    encoder.store(slots + first, maps);
    encoder.release();
  } else {
    encoder.copy_and_release(slots + first, maps);
  }
}

/// As the CUDA programming guide does it: one warp, one map, one lane that edits.
__global__ void guide_kernel(const __grid_constant__ map_template base,
                             const __grid_constant__ device::patch_array_reader source, tensor_map* slots) {
  __shared__ device::warp_stage stage;
  device::encode_warp(base, source, slots, blockIdx.x, 1, stage, device::trusted_patches{});
}

template <int Axis>
__device__ void replace_axis_in_global(tensor_map* map, const map_patch& patch, patch_fields fields) {
  namespace ptx = cuda::ptx;
  constexpr ptx::n32_t<Axis> axis{};
  const std::uint32_t step = patch.element_stride[Axis];
  if (fields & patch_dim(Axis)) {
    ptx::tensormap_replace_global_dim(ptx::space_global, map, axis, static_cast<std::uint32_t>(patch.global_dim[Axis]));
  }
  if constexpr (Axis < 4) {
    if (fields & patch_stride(Axis)) {
      ptx::tensormap_replace_global_stride(ptx::space_global, map, axis, patch.global_stride_bytes[Axis]);
    }
  }
  if (fields & patch_box(Axis)) ptx::tensormap_replace_box_dim(ptx::space_global, map, axis, patch.box_dim[Axis]);
  if (fields & patch_element_stride(Axis)) ptx::tensormap_replace_element_stride(ptx::space_global, map, axis, step);
}

/// One thread a map, edited where it lies.
__global__ void replace_in_global_kernel(const __grid_constant__ map_template base,
                                         const __grid_constant__ device::patch_array_reader source, tensor_map* slots,
                                         std::uint64_t count) {
  namespace ptx = cuda::ptx;
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const map_patch patch = source(i);
  tensor_map* const map = slots + i;
  *map = base.map;
  if (base.fields & patch_address) {
    ptx::tensormap_replace_global_address(ptx::space_global, map, patch.global_address);
  }
  replace_axis_in_global<0>(map, patch, base.fields);
  replace_axis_in_global<1>(map, patch, base.fields);
  replace_axis_in_global<2>(map, patch, base.fields);
  replace_axis_in_global<3>(map, patch, base.fields);
  replace_axis_in_global<4>(map, patch, base.fields);
  ptx::fence_proxy_tensormap_generic(ptx::sem_release, ptx::scope_gpu);
}

std::uint32_t blocks_for(std::uint64_t count, std::uint64_t maps_per_block) {
  return static_cast<std::uint32_t>((count + maps_per_block - 1) / maps_per_block);
}

template <bool Stores, class Stage>
double measure_variant(const batch& b, std::uint32_t maps_per_warp) {
  const std::uint32_t blocks = blocks_for(b.count, std::uint64_t{block_warps} * maps_per_warp);
  const device::patch_array_reader reader(b.source, b.base.fields);
  return median_microseconds([&] {
    variant_kernel<Stores, Stage><<<blocks, block_threads>>>(b.base, reader, b.slots, b.count, maps_per_warp);
  });
}

double measure_floor(const batch& b) {
  const device::patch_array_reader reader(b.source, b.base.fields);
  return median_microseconds([&] {
    floor_kernel<<<blocks_for(b.count, block_threads), block_threads>>>(reader, reinterpret_cast<uint4*>(b.slots),
                                                                        b.count);
  });
}

double measure_guide(const batch& b) {
  const device::patch_array_reader reader(b.source, b.base.fields);
  return median_microseconds(
      [&] { guide_kernel<<<static_cast<std::uint32_t>(b.count), 32>>>(b.base, reader, b.slots); });
}

double measure_replace_in_global(const batch& b) {
  const device::patch_array_reader reader(b.source, b.base.fields);
  return median_microseconds([&] {
    replace_in_global_kernel<<<blocks_for(b.count, block_threads), block_threads>>>(b.base, reader, b.slots, b.count);
  });
}

double measure_tmap(const batch& b, const encode_options& options) {
  return median_microseconds([&] {
    const cuda::stream_ref stream{cudaStream_t{}};
    require(encode_batch_async(b.base, b.source, b.slots, b.count, stream, options).has_value());
  });
}

/// The host's way: one driver call a map, then one copy to the device.
double measure_host(const batch& b) {
  void* symbol = nullptr;
  cudaDriverEntryPointQueryResult found{};
  require(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &symbol, 12000, 0, &found) == cudaSuccess);
  const auto encode_tiled = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(symbol);
  CUtensorMap* maps = nullptr;
  require(cudaMallocHost(&maps, b.count * sizeof(CUtensorMap)) == cudaSuccess);
  const tensor_spec& spec = b.base.spec;
  const double time = median_host_microseconds([&] {
    for (std::uint64_t i = 0; i < b.count; ++i) {
      encode_tiled(&maps[i], CU_TENSOR_MAP_DATA_TYPE_FLOAT32, spec.rank, reinterpret_cast<void*>(4096 * (i + 1)),
                   reinterpret_cast<const cuuint64_t*>(spec.global_dim),
                   reinterpret_cast<const cuuint64_t*>(spec.global_stride_bytes), spec.box_dim, spec.element_stride,
                   CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    }
    cudaMemcpyAsync(b.slots, maps, b.count * sizeof(CUtensorMap), cudaMemcpyHostToDevice);
    cudaStreamSynchronize(nullptr);
  });
  require(cudaFreeHost(maps) == cudaSuccess);
  return time;
}

batch make_batch(std::uint32_t rank, patch_fields fields, std::uint64_t count) {
  const std::uint64_t dims[] = {64, 8, 4, 3, 2};
  const std::uint32_t box[] = {16, 4, 2, 1, 1};
  batch b{};
  const result<map_template> base =
      make_template(packed_spec(element_type::f32, 1 << 20, {dims, rank}, {box, rank}), fields);
  require(base.has_value());
  b.base = *base;
  b.base.spec = packed_spec(element_type::f32, 1 << 20, {dims, rank}, {box, rank});
  b.count = count;
  std::vector<map_patch> patches(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    patches[i].global_address = 4096 * (i + 1);
    for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
      patches[i].global_dim[axis] = 1 + (i * 7 + axis) % 1000;
      if (axis + 1 < max_rank) patches[i].global_stride_bytes[axis] = 16 * (1 + (i + axis) % 999);
      patches[i].box_dim[axis] = box[axis];
      patches[i].element_stride[axis] = 1;
    }
  }
  b.source.patches = on_device(patches);
  require(cudaMalloc(&b.slots, count * sizeof(tensor_map)) == cudaSuccess);
  return b;
}

void release(const batch& b) {
  cudaFree(const_cast<map_patch*>(b.source.patches));
  cudaFree(b.slots);
}

using column = std::pair<std::string, std::function<double(const batch&)>>;

const std::vector<column> main_columns = {
    {"**tmap**", [](const batch& b) { return measure_tmap(b, {}); }},
    {"tmap, trusted", [](const batch& b) { return measure_tmap(b, {.trusted = true}); }},
    {"floor", measure_floor},
    {"empty kernel", [](const batch&) { return median_microseconds([] { empty_kernel<<<1, 32>>>(); }); }},
    {"one warp, one map (guide)", measure_guide},
    {"replace in global memory", measure_replace_in_global},
    {"host loop + copy", measure_host},
};

std::vector<column> sweep_columns() {
  using device::warp_stage;
  using padded = device::basic_warp_stage<144>;
  std::vector<column> columns;
  for (const std::uint32_t maps : {1u, 2u, 4u, 8u, 16u, 32u}) {
    const std::string label = std::to_string(maps);
    columns.push_back({"copy " + label, [=](const batch& b) { return measure_variant<false, warp_stage>(b, maps); }});
    columns.push_back({"store " + label, [=](const batch& b) { return measure_variant<true, warp_stage>(b, maps); }});
    columns.push_back({"padded " + label, [=](const batch& b) { return measure_variant<true, padded>(b, maps); }});
  }
  return columns;
}

void print_table(const char* title, const std::vector<column>& columns) {
  std::printf("\n%s\n\n| maps |", title);
  for (const column& c : columns) std::printf(" %s |", c.first.c_str());
  std::printf("\n|---|");
  for (std::size_t i = 0; i < columns.size(); ++i) std::printf("---|");
  for (const std::uint64_t count : sizes) {
    const batch all = make_batch(5, patch_everything(5), count);
    const batch few = make_batch(2, patch_extents(2), count);
    std::printf("\n| %llu |", static_cast<unsigned long long>(count));
    for (const column& c : columns) std::printf(" %.1f / %.1f |", c.second(all), c.second(few));
    release(all);
    release(few);
  }
  std::printf("\n");
}

}  // namespace
}  // namespace tmap::bench

int main(int argc, char** argv) {
  using namespace tmap::bench;
  print_device();
  print_table("Microseconds for one batch: all 23 fields of rank 5 / address, two dims and one stride of rank 2.",
              main_columns);
  if (argc > 1 && std::string(argv[1]) == "--sweep") {
    print_table(
        "By publish path (copy: one cp_fenceproxy a map; store: coalesced stores, one fence a warp; padded: "
        "stores, maps 144 bytes apart in shared memory) and maps a warp composes at once.",
        sweep_columns());
  }
  return 0;
}
