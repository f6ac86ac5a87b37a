// SPDX-License-Identifier: Apache-2.0
#include "lib/driver/entry_points.hpp"

#include "lib/support/check.hpp"

namespace tmap::driver {
namespace {

/// The runtime returns an error for a version above the driver's.
status status_of_failed_query(const runtime_calls& calls, unsigned int wanted) {
  int version = 0;
  const cudaError_t asked = calls.driver_version(&version);
  support::clear_last_error(asked);
  if (asked != cudaSuccess || version == 0) return status::no_driver;
  return static_cast<unsigned int>(version) < wanted ? status::driver_too_old : status::cuda_failure;
}

/// Success alone is not enough: the pointer may be null, and without a driver neither out-parameter
/// is set.
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

result<void*> entry_points::find(kept_pointer& kept) const {
  if (void* const known = kept.function.load(std::memory_order_acquire); known != nullptr) return known;
  const result<void*> found = look_up(calls_, kept.symbol, kept.version);
  if (found) kept.function.store(*found, std::memory_order_release);
  return found;
}

}  // namespace tmap::driver
