// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace tmap::support {

/// Whether an earlier kernel has broken its context with this error. Any later call may return it.
bool is_earlier_asynchronous_error(int code);

/// Returns the status for a failed call. The runtime and the driver use the same numbers for the
/// errors that both have.
status status_of(int code);

/// Removes `code` of a failed call of ours from the runtime's "last error", where a user's check
/// would find it. Any other code there comes from a user's call and stays.
void clear_last_error(cudaError_t code);

/// Returns the error of a failed runtime call. Clears the last error as above.
error runtime_error(cudaError_t code);

/// Returns the error of a failed driver call.
error driver_error(CUresult code);

/// Returns the outcome without the value.
template <class T>
[[nodiscard]] result<void> without_value(const result<T>& outcome) {
  return outcome ? result<void>{} : failure{outcome.error()};
}

}  // namespace tmap::support

/// Functions that return a `result` make every CUDA call through one of these two.
#define TMAP_TRY_CUDA(call)                                               \
  do {                                                                    \
    if (const cudaError_t tmap_code = (call); tmap_code != cudaSuccess) { \
      return ::tmap::failure{::tmap::support::runtime_error(tmap_code)};  \
    }                                                                     \
  } while (false)

#define TMAP_TRY_DRIVER(call)                                           \
  do {                                                                  \
    if (const CUresult tmap_code = (call); tmap_code != CUDA_SUCCESS) { \
      return ::tmap::failure{::tmap::support::driver_error(tmap_code)}; \
    }                                                                   \
  } while (false)
