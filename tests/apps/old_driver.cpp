// SPDX-License-Identifier: Apache-2.0
// A driver of CUDA 12.8 that has nothing but its version: a libcuda.so.1 for the tool to load.
#include <dlfcn.h>

#define TMAP_EXPORT extern "C" __attribute__((visibility("default")))

TMAP_EXPORT int cuDriverGetVersion(int* version);
TMAP_EXPORT int cuInit(unsigned int flags);
TMAP_EXPORT int cuGetProcAddress(const char* name, void** function, int version, unsigned long flags);
TMAP_EXPORT int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long flags, void* status);

int cuDriverGetVersion(int* version) {
  *version = 12080;
  return 0;
}

int cuInit(unsigned int) {
  return 0;
}

int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long, void*) {
  *function = dlsym(RTLD_DEFAULT, name);
  return *function ? 0 : 500;  // CUDA_ERROR_NOT_FOUND
}

int cuGetProcAddress(const char* name, void** function, int version, unsigned long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
