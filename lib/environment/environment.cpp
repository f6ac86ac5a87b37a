// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <tmap/encode.hpp>
#include <tmap/environment.hpp>

#include "kernels/launch.hpp"
#include "lib/driver/map_driver.hpp"
#include "lib/encode/device.hpp"
#include "lib/support/check.hpp"
#include "lib/support/without_throwing.hpp"

namespace tmap {
namespace {

constexpr const char* on_gpu = "everything that runs on a GPU";

std::string cuda_version(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

result<void> as_result(cudaError_t code) {
  TMAP_TRY_CUDA(code);
  return {};
}

/// Returns the oldest driver that works. A runtime needs a driver of its own major version.
std::string oldest_driver(int runtime) {
  const int major = runtime / 1000;
  return cuda_version(major * 1000) + (major == 13 ? " (580)" : "");
}

environment_item runtime_item() {
  int version = 0;
  const result<void> state = as_result(cudaRuntimeGetVersion(&version));
  const std::string detail =
      fmt::format("{}, for drivers of CUDA {} and newer", cuda_version(version), oldest_driver(version));
  return {"CUDA runtime", detail, on_gpu, true, state};
}

/// Without a driver the call succeeds and returns 0.
environment_item driver_item() {
  int version = 0;
  result<void> state = as_result(cudaDriverGetVersion(&version));
  const std::string detail = version == 0 ? "" : "for CUDA " + cuda_version(version);
  if (state && version == 0) state = failure{error{.code = status::no_driver}};
  if (state && version / 1000 < CUDART_VERSION / 1000) state = failure{error{.code = status::driver_too_old}};
  return {"CUDA driver", detail, on_gpu, true, state};
}

result<std::string> gpu_detail() {
  int device = 0;
  cudaDeviceProp properties{};
  TMAP_TRY_CUDA(cudaGetDevice(&device));
  TMAP_TRY_CUDA(cudaGetDeviceProperties(&properties, device));
  return fmt::format("{}, compute capability {}.{}", properties.name, properties.major, properties.minor);
}

environment_item gpu_item() {
  const auto limits = query_device_limits();
  if (!limits) return {"GPU", "", on_gpu, true, support::without_value(limits)};
  const result<std::string> detail = gpu_detail();
  if (!detail) return {"GPU", "", on_gpu, true, support::without_value(detail)};
  return {"GPU", *detail, on_gpu, true, driver::require_copy_engine(*limits)};
}

/// A look-up succeeds even without a driver, so check the driver first.
template <class Function>
environment_item entry_point(const char* name, const char* used_for, const result<void>& has_driver,
                             const result<Function>& function) {
  return {name, "", used_for, true, has_driver ? support::without_value(function) : has_driver};
}

void add_entry_points(std::vector<environment_item>& items, const result<void>& has_driver) {
  driver::entry_points& functions = driver::process_driver().functions();
  items.push_back(
      entry_point("cuTensorMapEncodeTiled", "tiled maps and templates", has_driver, functions.encode_tiled()));
  items.push_back(entry_point("cuTensorMapEncodeIm2col", "im2col maps", has_driver, functions.encode_im2col()));
  items.push_back(
      entry_point("cuTensorMapReplaceAddress", "moving a map on the host", has_driver, functions.replace_address()));
  items.push_back(entry_point("cuTensorMapEncodeIm2colWide", "im2col-wide maps (compute capability 10)", has_driver,
                              functions.encode_im2col_wide()));
  items.back().is_required = false;
}

environment_item kernel_item(const char* name, const char* used_for, cudaError_t (*load)()) {
  const result<void> has_kernels = require_kernels();
  return {name, "", used_for, true, has_kernels ? as_result(load()) : has_kernels};
}

void add_kernels(std::vector<environment_item>& items) {
  items.push_back(kernel_item("encode kernel", "maps made on the GPU", kernels::load_encode_kernels));
  items.push_back(kernel_item("moving kernel", "ragged batches moved", kernels::load_move_kernel));
}

std::vector<environment_item> all_items() {
  const environment_item driver = driver_item();
  std::vector<environment_item> items{runtime_item(), driver, gpu_item()};
  add_entry_points(items, driver.state);
  add_kernels(items);
  return items;
}

}  // namespace

std::vector<environment_item> query_environment() {
  return support::without_throwing(all_items);
}

}  // namespace tmap
