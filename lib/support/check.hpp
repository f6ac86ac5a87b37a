// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace tmap::support {

/// True for the errors by which a kernel that ran earlier broke its context; any later call may
/// answer with them.
bool is_earlier_asynchronous_error(int code);

/// What a failed call means. The runtime and the driver number their shared errors alike.
status status_of(int code);

/// Takes a failed call that answered `code` out of the runtime's "last error", where a check of the
/// user's would find it. Another code there is that of a call of the user's, and stays.
void clear_last_error(cudaError_t code);

/// The error of a failed runtime call. Clears the last error as above.
error runtime_error(cudaError_t code);

/// The error of a failed driver call.
error driver_error(CUresult code);

/// The outcome without the value.
template <class T>
result<void> without_value(const result<T>& outcome) {
  return outcome ? result<void>{} : failure{outcome.error()};
}

}  // namespace tmap::support

/// Every CUDA call of a function that answers with a `result` passes one of these two.
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
