// SPDX-License-Identifier: Apache-2.0
#include "lib/encode/device.hpp"

#include <tmap/device_limits.hpp>

#include "kernels/has_kernels.hpp"
#include "lib/driver/map_driver.hpp"
#include "lib/support/check.hpp"

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace tmap {

result<std::uint32_t> multiprocessor_count() {
  static std::array<std::atomic<int>, 64> kept;  // every encode asks, and the number never changes
  int device = 0;
  TMAP_TRY_CUDA(cudaGetDevice(&device));
  const auto place = static_cast<std::size_t>(device);
  int count = place < kept.size() ? kept[place].load(std::memory_order_relaxed) : 0;
  if (count == 0) {
    TMAP_TRY_CUDA(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    if (place < kept.size()) kept[place].store(count, std::memory_order_relaxed);
  }
  return static_cast<std::uint32_t>(count);
}

result<shared_memory_limits> query_shared_memory() {
  int device = 0;
  int per_block = 0;
  int per_multiprocessor = 0;
  TMAP_TRY_CUDA(cudaGetDevice(&device));
  TMAP_TRY_CUDA(cudaDeviceGetAttribute(&per_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  TMAP_TRY_CUDA(cudaDeviceGetAttribute(&per_multiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  return shared_memory_limits{static_cast<std::uint32_t>(per_block), static_cast<std::uint32_t>(per_multiprocessor)};
}

result<void> require_kernels() {
  if (kernels::has_kernels()) return {};
  return failure{error{.code = status::no_kernel_image,
                       .reason = "this build of tmap has no kernels: it was built without nvcc, or with "
                                 "TMAP_BUILD_KERNELS=OFF"}};
}

result<void> require_start(const map_template& base) {
  if (base.map != tensor_map{}) return {};
  const result<device_limits> limits = driver::process_driver().query_limits();
  if (!limits) return failure{limits.error()};
  if (limits->compute_capability <= detail::last_zeroed_compute_capability) return {};
  return failure{error{.code = status::unsupported,
                       .found = limits->compute_capability,
                       .allowed = detail::last_zeroed_compute_capability,
                       .argument = "base.map",
                       .reason = "is zero, which a map may begin as on compute capability {allowed} alone; this GPU "
                                 "has {found}: take make_template"}};
}

}  // namespace tmap
