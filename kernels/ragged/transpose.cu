// SPDX-License-Identifier: Apache-2.0
// Exchanges dims 0 and 1 of the planned tensors of a batch.
#include "kernels/ragged/transpose_kernel.cuh"
#include "kernels/ragged_launch.hpp"

#include <cstdint>

namespace tmap::kernels {
namespace {

using shape = transpose_shape<transpose_tile_rows, 1, 2, 256, 2>;

}  // namespace

piece_rule transpose_pieces(std::uint32_t element_bytes, std::uint32_t rank) {
  piece_rule rule = transpose_rule(element_bytes, shape::rows, shape::panels);
  rule.map_rank = rank;
  return rule;
}

cudaError_t launch_transpose(const planned_work& work, std::uint32_t element_bytes, const device_shape& device,
                             cudaStream_t stream) {
  switch (element_bytes) {
    case 1: return start_transpose<shape, 1>(work, element_bytes, device.multiprocessors, stream);
    case 2: return start_transpose<shape, 2>(work, element_bytes, device.multiprocessors, stream);
    case 4: return start_transpose<shape, 4>(work, element_bytes, device.multiprocessors, stream);
    case 8: return start_transpose<shape, 8>(work, element_bytes, device.multiprocessors, stream);
    case 16: return start_transpose<shape, 16>(work, element_bytes, device.multiprocessors, stream);
    default: return start_transpose<shape, 0>(work, element_bytes, device.multiprocessors, stream);
  }
}

}  // namespace tmap::kernels
