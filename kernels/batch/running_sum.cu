// SPDX-License-Identifier: Apache-2.0
#include "kernels/batch/running_sum.cuh"

#include "kernels/launch.hpp"

namespace tmap::kernels {
namespace {

/// Returns the size of tensor i - 1, so that the sum up to i is the sum of the sizes before i. It
/// has 64 bits, so that the sum of 32-bit sizes may be larger.
template <class Offset>
struct size_before {
  const Offset* sizes;

  __device__ std::uint64_t operator()(std::uint64_t i) const {
    return i == 0 ? 0 : static_cast<std::uint64_t>(std::int64_t{sizes[i - 1]});
  }
};

template <class Offset>
cudaError_t launch_sum(const row_offsets& sizes, std::int64_t* begins, std::uint64_t count, void* scratch,
                       std::size_t scratch_bytes, cudaStream_t stream) {
  return launch_inclusive_sum(size_before<Offset>{static_cast<const Offset*>(sizes.values)},
                              reinterpret_cast<std::uint64_t*>(begins), count, scratch, scratch_bytes, stream);
}

}  // namespace

cudaError_t launch_running_sum(const row_offsets& sizes, std::int64_t* begins, std::uint64_t count, void* scratch,
                               std::size_t scratch_bytes, cudaStream_t stream) {
  return sizes.bytes == sizeof(std::int32_t)
             ? launch_sum<std::int32_t>(sizes, begins, count, scratch, scratch_bytes, stream)
             : launch_sum<std::int64_t>(sizes, begins, count, scratch, scratch_bytes, stream);
}

cudaError_t load_running_sum_kernels() {
  const cudaError_t code = load_inclusive_sum<size_before<std::int32_t>>();
  return code == cudaSuccess ? load_inclusive_sum<size_before<std::int64_t>>() : code;
}

}  // namespace tmap::kernels
