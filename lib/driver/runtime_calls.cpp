// SPDX-License-Identifier: Apache-2.0
#include "lib/driver/runtime_calls.hpp"

namespace tmap::driver {

const runtime_calls& real_runtime() {
  static constexpr runtime_calls calls{
      [](int* version) { return cudaDriverGetVersion(version); },
      [](int* count) { return cudaGetDeviceCount(count); },
      [](int* device) { return cudaGetDevice(device); },
      [](int device) { return cudaSetDevice(device); },
      [](int* value, cudaDeviceAttr attribute, int device) { return cudaDeviceGetAttribute(value, attribute, device); },
      [](const char* symbol, void** function, unsigned int cuda_version, unsigned long long flags,
         cudaDriverEntryPointQueryResult* found) {
        return cudaGetDriverEntryPointByVersion(symbol, function, cuda_version, flags, found);
      },
  };
  return calls;
}

}  // namespace tmap::driver
