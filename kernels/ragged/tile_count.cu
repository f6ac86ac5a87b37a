// SPDX-License-Identifier: Apache-2.0
#include "kernels/launch.hpp"
#include "kernels/running_sum.cuh"

#include <tmap/device/tile_walk.cuh>
#include <tmap/encode_batch.hpp>

namespace tmap::kernels {
namespace {

template <std::uint32_t Rank>
struct tile_counter {
  counted_tensors tensors;
  tile_shape shape;

  __device__ std::uint64_t operator()(std::uint64_t i) const {
    if (tensors.source_statuses != nullptr && tensors.source_statuses[i].is_bad()) return 0;
    if (tensors.destination_statuses != nullptr && !tensors.destination_statuses[i].is_good()) return 0;
    return device::count_tiles<Rank>(tensors.extents[i], shape.box_dim);
  }
};
static_assert(max_batch <= ~std::uint64_t{0} / device::max_walked_tiles, "no sum of tiles wraps");

}  // namespace

cudaError_t launch_tile_count(const counted_tensors& tensors, const tile_shape& shape, std::uint64_t* tile_ends,
                              void* scratch, std::size_t scratch_bytes, cudaStream_t stream) {
  const auto launch = [&](const auto& counter) {
    return launch_inclusive_sum(counter, tile_ends, tensors.count, scratch, scratch_bytes, stream);
  };
  switch (shape.rank) {
    case 1: return launch(tile_counter<1>{tensors, shape});
    case 2: return launch(tile_counter<2>{tensors, shape});
    case 3: return launch(tile_counter<3>{tensors, shape});
    case 4: return launch(tile_counter<4>{tensors, shape});
    default: return launch(tile_counter<5>{tensors, shape});
  }
}

}  // namespace tmap::kernels
