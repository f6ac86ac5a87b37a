// SPDX-License-Identifier: Apache-2.0
#include "kernels/launch.hpp"

#include <tmap/device/tile_walk.cuh>

#include <thrust/iterator/transform_iterator.h>
#include <cub/device/device_scan.cuh>

namespace tmap::kernels {
namespace {

struct tile_counter {
  tile_shape shape;

  __host__ __device__ std::uint64_t operator()(const map_patch& extents) const {
    switch (shape.rank) {
      case 1: return device::count_tiles<1>(extents, shape.box_dim);
      case 2: return device::count_tiles<2>(extents, shape.box_dim);
      case 3: return device::count_tiles<3>(extents, shape.box_dim);
      case 4: return device::count_tiles<4>(extents, shape.box_dim);
      default: return device::count_tiles<5>(extents, shape.box_dim);
    }
  }
};

cudaError_t scan(void* scratch, std::size_t& scratch_bytes, const map_patch* extents, const tile_shape& shape,
                 std::uint64_t* tile_ends, std::uint64_t count, cudaStream_t stream) {
  const auto counts = thrust::make_transform_iterator(extents, tile_counter{shape});
  return cub::DeviceScan::InclusiveSum(scratch, scratch_bytes, counts, tile_ends, static_cast<std::int32_t>(count),
                                       stream);
}

}  // namespace

cudaError_t tile_count_scratch(std::uint64_t count, std::size_t* bytes) {
  return scan(nullptr, *bytes, nullptr, tile_shape{}, nullptr, count, nullptr);
}

cudaError_t launch_tile_count(const map_patch* extents, const tile_shape& shape, std::uint64_t* tile_ends,
                              std::uint64_t count, void* scratch, std::size_t scratch_bytes, cudaStream_t stream) {
  return scan(scratch, scratch_bytes, extents, shape, tile_ends, count, stream);
}

}  // namespace tmap::kernels
