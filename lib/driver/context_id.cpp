// SPDX-License-Identifier: Apache-2.0
#include "lib/driver/context_id.hpp"

#include "lib/driver/map_driver.hpp"

namespace tmap::driver {

bool says_no_context(CUresult code) {
  return code == CUDA_ERROR_INVALID_CONTEXT || code == CUDA_ERROR_NOT_INITIALIZED ||
         code == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

// The runtime and the driver use the same numbers for the errors that both have.

cudaError_t context_id(CUcontext context, std::uint64_t* id) {
  unsigned long long found = 0;
  const auto function = process_driver().functions().context_id();
  if (!function) return cudaErrorUnknown;
  const CUresult code = (*function)(context, &found);
  *id = found;
  return static_cast<cudaError_t>(code);
}

cudaError_t current_context(std::uint64_t* id) {
  const cudaError_t code = context_id(nullptr, id);
  if (!says_no_context(static_cast<CUresult>(code))) return code;
  *id = 0;
  return cudaSuccess;
}

}  // namespace tmap::driver
