// SPDX-License-Identifier: Apache-2.0
#include "kernels/launch.hpp"

#include <tmap/device/tile_walk.cuh>
#include <tmap/encode_batch.hpp>

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/device/device_scan.cuh>

namespace tmap::kernels {
namespace {

struct tile_counter {
  counted_tensors tensors;
  tile_shape shape;

  __host__ __device__ std::uint64_t operator()(std::uint64_t i) const {
    if (tensors.source_statuses != nullptr && tensors.source_statuses[i].is_bad()) return 0;
    if (tensors.destination_statuses != nullptr && !tensors.destination_statuses[i].is_good()) return 0;
    const map_patch& extents = tensors.extents[i];
    switch (shape.rank) {
      case 1: return device::count_tiles<1>(extents, shape.box_dim);
      case 2: return device::count_tiles<2>(extents, shape.box_dim);
      case 3: return device::count_tiles<3>(extents, shape.box_dim);
      case 4: return device::count_tiles<4>(extents, shape.box_dim);
      default: return device::count_tiles<5>(extents, shape.box_dim);
    }
  }
};
static_assert(max_batch <= ~std::uint64_t{0} / device::max_walked_tiles, "no sum of tiles wraps");

cudaError_t scan(void* scratch, std::size_t& scratch_bytes, const counted_tensors& tensors, const tile_shape& shape,
                 std::uint64_t* tile_ends, cudaStream_t stream) {
  const thrust::counting_iterator<std::uint64_t> indices{0};
  const auto counts = thrust::make_transform_iterator(indices, tile_counter{tensors, shape});
  return cub::DeviceScan::InclusiveSum(scratch, scratch_bytes, counts, tile_ends,
                                       static_cast<std::int32_t>(tensors.count), stream);
}

}  // namespace

cudaError_t tile_count_scratch(std::uint64_t count, std::size_t* bytes) {
  return scan(nullptr, *bytes, {nullptr, nullptr, nullptr, count}, tile_shape{}, nullptr, nullptr);
}

cudaError_t launch_tile_count(const counted_tensors& tensors, const tile_shape& shape, std::uint64_t* tile_ends,
                              void* scratch, std::size_t scratch_bytes, cudaStream_t stream) {
  return scan(scratch, scratch_bytes, tensors, shape, tile_ends, stream);
}

}  // namespace tmap::kernels
