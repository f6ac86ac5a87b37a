// SPDX-License-Identifier: Apache-2.0
#include "lib/driver/device_query.hpp"

#include "lib/support/check.hpp"

namespace tmap::driver {
namespace {

/// Fails with the reason why there is no device. Out-parameters begin at 0 or -1, because without a
/// driver the calls succeed with 0 or leave them untouched.
result<void> check_driver_and_devices(const runtime_calls& calls) {
  int version = 0;
  const cudaError_t asked = calls.driver_version(&version);
  support::clear_last_error(asked);
  if (asked != cudaSuccess || version == 0) return failure{{.code = status::no_driver, .cuda_code = asked}};
  int count = 0;
  const cudaError_t counted = calls.device_count(&count);
  support::clear_last_error(counted);
  if (counted == cudaErrorInsufficientDriver) return failure{{.code = status::driver_too_old, .cuda_code = counted}};
  TMAP_TRY_CUDA(counted);
  if (count <= 0) return failure{{.code = status::no_device}};
  return {};
}

}  // namespace

result<void> require_copy_engine(const device_limits& limits) {
  if (limits.compute_capability >= first_compute_capability) return {};
  return failure{{.code = status::compute_capability_too_low,
                  .found = limits.compute_capability,
                  .allowed = first_compute_capability}};
}

result<int> device_query::current_device() const {
  int device = -1;
  const cudaError_t code = calls_.current_device(&device);
  if (code == cudaSuccess && device >= 0) return device;
  support::clear_last_error(code);
  if (const result<void> usable = check_driver_and_devices(calls_); !usable) return failure{usable.error()};
  TMAP_TRY_CUDA(code);
  return failure{{.code = status::no_device}};
}

result<device_limits> device_query::read(int device) const {
  if (const result<void> usable = check_driver_and_devices(calls_); !usable) return failure{usable.error()};
  int major = 0;
  int minor = 0;
  int shared_memory = 0;
  TMAP_TRY_CUDA(calls_.device_attribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  TMAP_TRY_CUDA(calls_.device_attribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  TMAP_TRY_CUDA(calls_.device_attribute(&shared_memory, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  if (major <= 0 || minor < 0 || shared_memory <= 0) return failure{{.code = status::no_device}};
  return device_limits{static_cast<std::uint32_t>(10 * major + minor), static_cast<std::uint32_t>(shared_memory)};
}

result<device_limits> device_query::read_and_keep(int device) {
  const result<device_limits> limits = read(device);
  if (limits && device < kept_devices) {
    kept_[static_cast<std::size_t>(device)].store(
        std::uint64_t{limits->compute_capability} << 32 | limits->shared_memory_bytes, std::memory_order_relaxed);
  }
  return limits;
}

result<device_limits> device_query::current() {
  const result<int> device = current_device();
  if (device && *device < kept_devices) {
    const std::uint64_t packed = kept_[static_cast<std::size_t>(*device)].load(std::memory_order_relaxed);
    if (packed != 0) {
      return device_limits{static_cast<std::uint32_t>(packed >> 32), static_cast<std::uint32_t>(packed)};
    }
  }
  if (!device) return failure{device.error()};
  return read_and_keep(*device);
}

}  // namespace tmap::driver
