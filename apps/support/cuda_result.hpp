// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>

#include <cuda_runtime_api.h>

namespace tmap::apps {

/// Turns what the CUDA runtime returned into a result; clears the error that it remembers.
[[nodiscard]] inline result<void> as_result(cudaError_t code) {
  if (code == cudaSuccess) return {};
  static_cast<void>(cudaGetLastError());
  error made;
  made.code = code == cudaErrorMemoryAllocation ? status::out_of_memory : status::cuda_failure;
  made.cuda_code = code;
  return failure(made);
}

}  // namespace tmap::apps
