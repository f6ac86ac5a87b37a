// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>

#include "apps/tmap/pad/outcome.hpp"

#include <cuda_runtime_api.h>

#include <string>
#include <utility>

namespace tmap::tool {

/// Returns the value, or what failed on the GPU as a sentence.
template <class T>
outcome<T> told(const std::string& action, result<T>&& done) {
  if (!done) {
    const error& e = done.error();
    const char* const cause = cudaGetErrorString(static_cast<cudaError_t>(e.cuda_code));
    return refuse("{} failed on the GPU: {}{}", action, to_string(e),
                  e.cuda_code == 0 ? std::string{} : fmt::format(": {}", cause));
  }
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return std::move(*done);
  }
}

}  // namespace tmap::tool
