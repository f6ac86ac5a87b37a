// SPDX-License-Identifier: Apache-2.0
#include "kernels/launch.hpp"

#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>

namespace tmap::kernels {
namespace {

// The initial value's type makes CUB add in 64 bits, so that 32-bit sizes may sum up to more.
template <class Offset>
cudaError_t scan(void* scratch, std::size_t& scratch_bytes, const Offset* sizes, std::int64_t* begins,
                 std::uint64_t count, cudaStream_t stream) {
  return cub::DeviceScan::ExclusiveScan(scratch, scratch_bytes, sizes, begins, cuda::std::plus<>{}, std::int64_t{0},
                                        static_cast<std::int32_t>(count), stream);
}

}  // namespace

template <class Offset>
cudaError_t running_sum_scratch(std::uint64_t count, std::size_t* bytes) {
  return scan<Offset>(nullptr, *bytes, nullptr, nullptr, count, nullptr);
}

template <class Offset>
cudaError_t launch_running_sum(const Offset* sizes, std::int64_t* begins, std::uint64_t count, void* scratch,
                               std::size_t scratch_bytes, cudaStream_t stream) {
  return scan(scratch, scratch_bytes, sizes, begins, count, stream);
}

template cudaError_t running_sum_scratch<std::int32_t>(std::uint64_t, std::size_t*);
template cudaError_t running_sum_scratch<std::int64_t>(std::uint64_t, std::size_t*);
template cudaError_t launch_running_sum(const std::int32_t*, std::int64_t*, std::uint64_t, void*, std::size_t,
                                        cudaStream_t);
template cudaError_t launch_running_sum(const std::int64_t*, std::int64_t*, std::uint64_t, void*, std::size_t,
                                        cudaStream_t);

}  // namespace tmap::kernels
