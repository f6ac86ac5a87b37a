// SPDX-License-Identifier: Apache-2.0
#include "lib/driver/entry_points.hpp"

#include "lib/support/check.hpp"

namespace tmap::driver {
namespace {

/// The runtime answers with an error when asked for a version above the driver's.
status status_of_failed_query(const runtime_calls& calls, unsigned int wanted) {
  int version = 0;
  const cudaError_t asked = calls.driver_version(&version);
  support::clear_last_error(asked);
  if (asked != cudaSuccess || version == 0) return status::no_driver;
  return static_cast<unsigned int>(version) < wanted ? status::driver_too_old : status::cuda_failure;
}

/// Success alone says nothing: the pointer may be null, and without a driver neither out-parameter
/// is touched.
result<void*> look_up(const runtime_calls& calls, const char* symbol, unsigned int version) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t code = calls.entry_point(symbol, &function, version, cudaEnableDefault, &found);
  if (code != cudaSuccess) {
    error e = support::runtime_error(code);
    if (e.code != status::earlier_asynchronous_error) e.code = status_of_failed_query(calls, version);
    return failure{e};
  }
  if (found == cudaDriverEntryPointVersionNotSufficent) return failure{{.code = status::driver_too_old}};
  if (found != cudaDriverEntryPointSuccess || function == nullptr) return failure{{.code = status::symbol_missing}};
  return function;
}

}  // namespace

template <class Function>
result<Function> entry_points::find(kept_pointer& kept, const char* symbol, unsigned int version) {
  void* function = kept.load(std::memory_order_acquire);
  if (function == nullptr) {
    const result<void*> found = look_up(calls_, symbol, version);
    if (!found) return failure{found.error()};
    function = *found;
    kept.store(function, std::memory_order_release);
  }
  return reinterpret_cast<Function>(function);
}

result<encode_tiled_function> entry_points::encode_tiled() {
  return find<encode_tiled_function>(encode_tiled_, "cuTensorMapEncodeTiled", 12000);
}

result<encode_im2col_function> entry_points::encode_im2col() {
  return find<encode_im2col_function>(encode_im2col_, "cuTensorMapEncodeIm2col", 12000);
}

result<encode_im2col_wide_function> entry_points::encode_im2col_wide() {
  return find<encode_im2col_wide_function>(encode_im2col_wide_, "cuTensorMapEncodeIm2colWide", 12080);
}

result<replace_address_function> entry_points::replace_address() {
  return find<replace_address_function>(replace_address_, "cuTensorMapReplaceAddress", 12000);
}

result<context_id_function> entry_points::context_id() {
  return find<context_id_function>(context_id_, "cuCtxGetId", 12000);
}

result<get_device_function> entry_points::get_device() {
  return find<get_device_function>(get_device_, "cuDeviceGet", 12000);
}

result<primary_state_function> entry_points::primary_state() {
  return find<primary_state_function>(primary_state_, "cuDevicePrimaryCtxGetState", 12000);
}

result<primary_retain_function> entry_points::primary_retain() {
  return find<primary_retain_function>(primary_retain_, "cuDevicePrimaryCtxRetain", 12000);
}

result<primary_release_function> entry_points::primary_release() {
  return find<primary_release_function>(primary_release_, "cuDevicePrimaryCtxRelease", 12000);
}

result<event_query_function> entry_points::event_query() {
  return find<event_query_function>(event_query_, "cuEventQuery", 12000);
}

}  // namespace tmap::driver
