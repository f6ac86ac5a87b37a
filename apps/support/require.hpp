// SPDX-License-Identifier: Apache-2.0
#pragma once

// For programs that have no one to hand an error to: they say where they failed, and end.

#include <tmap/error.hpp>

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <utility>

namespace tmap::apps {

[[noreturn]] inline void fail(const char* reason, const std::source_location& at) {
  std::fprintf(stderr, "%s:%u: failed: %s\n", at.file_name(), static_cast<unsigned>(at.line()), reason);
  std::exit(1);
}

inline void require(bool holds, const std::source_location& at = std::source_location::current()) {
  if (!holds) fail("a check does not hold", at);
}

inline void require(cudaError_t code, const std::source_location& at = std::source_location::current()) {
  if (code != cudaSuccess) fail(cudaGetErrorString(code), at);
}

template <class T>
void require(const result<T>& answer, const std::source_location& at = std::source_location::current()) {
  if (!answer) fail(to_string(answer.error()).c_str(), at);
}

template <class T>
T value_of(result<T>&& answer, const std::source_location& at = std::source_location::current()) {
  require(answer, at);
  return std::move(*answer);
}

}  // namespace tmap::apps
