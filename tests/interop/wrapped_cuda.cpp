// SPDX-License-Identifier: Apache-2.0
#include "interop/wrapped_cuda.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

namespace tmap::testing {
namespace {

struct plan {
  std::uint64_t failing{};
  bool all_after{};
  std::uint64_t made{};
  std::string failed{};
};
plan now;
cudaError_t last_error{cudaSuccess};
cudaStreamCaptureMode mode{cudaStreamCaptureModeGlobal};
alignas(256) unsigned char symbols[1 << 16];  // of the device; fault records are read from here

bool fails(const char* name) {
  const std::uint64_t n = ++now.made;
  const bool does = now.failing != 0 && (n == now.failing || (now.all_after && n > now.failing));
  if (does && now.failed.empty()) now.failed = name;
  return does;
}

/// Does `what` unless the call must fail.
template <class What>
cudaError_t call(const char* name, const What& what) {
  if (fails(name)) return last_error = cudaErrorMemoryAllocation;
  what();
  return cudaSuccess;
}

cudaError_t call(const char* name) {
  return call(name, [] {});
}

struct gpu_facts {
  int major;
  int minor;
  int multiprocessors;
  int block_shared_kib;
};
constexpr gpu_facts facts[] = {{9, 0, 132, 227}, {10, 0, 148, 227}, {12, 0, 188, 99}, {8, 0, 108, 163}};
int current{};

int attribute_of(const gpu_facts& gpu, cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: return gpu.major;
    case cudaDevAttrComputeCapabilityMinor: return gpu.minor;
    case cudaDevAttrMultiProcessorCount: return gpu.multiprocessors;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return 1024 * gpu.block_shared_kib;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return 1024 * (gpu.block_shared_kib + 1);
    default: return 0;
  }
}

// The functions below replace the driver's.

CUresult driver_call(const char* name) {
  return fails(name) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult context_id(CUcontext, unsigned long long* id) {
  *id = 1;
  return driver_call("cuCtxGetId");
}

/// Makes a map with an address, and on GPUs after Hopper with the mark of large tensors.
CUresult make_map(const char* name, CUtensorMap* map) {
  const CUresult code = driver_call(name);
  if (code != CUDA_SUCCESS) return code;
  const std::uint64_t words[16] = {4096, facts[current].major > 9 ? std::uint64_t{1} << 21 : 0};
  static_assert(sizeof words == sizeof *map);
  std::memcpy(map, words, sizeof words);
  return code;
}

CUresult encode_tiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                      const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                      CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  return make_map("cuTensorMapEncodeTiled", map);
}

CUresult encode_im2col(CUtensorMap* map, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                       const int*, const int*, cuuint32_t, cuuint32_t, const cuuint32_t*, CUtensorMapInterleave,
                       CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  return make_map("cuTensorMapEncodeIm2col", map);
}

CUresult encode_im2col_wide(CUtensorMap* map, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                            const cuuint64_t*, int, int, cuuint32_t, cuuint32_t, const cuuint32_t*,
                            CUtensorMapInterleave, CUtensorMapIm2ColWideMode, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  return make_map("cuTensorMapEncodeIm2colWide", map);
}

CUresult replace_address(CUtensorMap* map, void*) {
  return make_map("cuTensorMapReplaceAddress", map);
}

void* function_named(const std::string& symbol) {
  if (symbol == "cuCtxGetId") return reinterpret_cast<void*>(&context_id);
  if (symbol == "cuTensorMapEncodeTiled") return reinterpret_cast<void*>(&encode_tiled);
  if (symbol == "cuTensorMapEncodeIm2col") return reinterpret_cast<void*>(&encode_im2col);
  if (symbol == "cuTensorMapEncodeIm2colWide") return reinterpret_cast<void*>(&encode_im2col_wide);
  if (symbol == "cuTensorMapReplaceAddress") return reinterpret_cast<void*>(&replace_address);
  return nullptr;
}

bool is_symbol(const void* data) {
  return data >= symbols && data < symbols + sizeof symbols;
}

}  // namespace

void use_gpu(wrapped_gpu gpu) {
  current = static_cast<int>(gpu);
}

void fail_cuda_call(std::uint64_t n, bool all_after) {
  now.failing = n;
  now.all_after = all_after;
  if (n == 0) return;
  now.made = 0;
  now.failed.clear();
}

std::uint64_t cuda_calls_made() {
  return now.made;
}

const std::string& failed_cuda_call() {
  return now.failed;
}

extern "C" {

cudaError_t __wrap_cudaPeekAtLastError() {
  return last_error;
}
cudaError_t __wrap_cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}
cudaError_t __wrap_cudaDriverGetVersion(int* version) {
  return call("cudaDriverGetVersion", [&] { *version = CUDART_VERSION; });
}
cudaError_t __wrap_cudaRuntimeGetVersion(int* version) {
  return call("cudaRuntimeGetVersion", [&] { *version = CUDART_VERSION; });
}
cudaError_t __wrap_cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", [&] { *count = static_cast<int>(std::size(facts)); });
}
cudaError_t __wrap_cudaGetDevice(int* device) {
  return call("cudaGetDevice", [&] { *device = current; });
}
cudaError_t __wrap_cudaSetDevice(int) {
  return call("cudaSetDevice");
}
cudaError_t __wrap_cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call("cudaDeviceGetAttribute", [&] { *value = attribute_of(facts[device], attribute); });
}
cudaError_t __wrap_cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call("cudaGetDeviceProperties", [&] {
    *properties = {};
    properties->major = facts[device].major;
  });
}
cudaError_t __wrap_cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int,
                                                    unsigned long long, cudaDriverEntryPointQueryResult* found) {
  return call(symbol, [&] {
    *function = function_named(symbol);
    *found = *function == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  });
}
cudaError_t __wrap_cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  return call("cudaFuncGetAttributes", [&] { *attributes = {}; });
}
cudaError_t __wrap_cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return call("cudaFuncSetAttribute");
}
cudaError_t __wrap_cudaOccupancyMaxActiveClusters(int* clusters, const void*, const cudaLaunchConfig_t*) {
  return call("cudaOccupancyMaxActiveClusters", [&] { *clusters = 1; });
}
cudaError_t __wrap_cudaGetSymbolAddress(void** address, const void*) {
  return call("cudaGetSymbolAddress", [&] { *address = symbols; });
}
cudaError_t __wrap_cudaHostAlloc(void** data, std::size_t bytes, unsigned int) {
  return call("cudaHostAlloc", [&] { *data = std::calloc(1, bytes); });
}
cudaError_t __wrap_cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  return call("cudaMemcpyAsync", [&] {
    if (is_symbol(from)) std::memcpy(to, from, bytes);
  });
}
cudaError_t __wrap_cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t) {
  return call("cudaMemsetAsync", [&] {
    if (is_symbol(data)) std::memset(data, value, bytes);
  });
}
cudaError_t __wrap_cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void*) {
  return call("cudaPointerGetAttributes", [&] { *attributes = {}; });
}
cudaError_t __wrap_cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int) {
  return call("cudaStreamCreateWithFlags", [&] { *stream = reinterpret_cast<cudaStream_t>(symbols); });
}
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t) {
  return call("cudaStreamSynchronize");
}
cudaError_t __wrap_cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  return call("cudaStreamIsCapturing", [&] { *status = cudaStreamCaptureStatusNone; });
}
cudaError_t __wrap_cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* other) {
  return call("cudaThreadExchangeStreamCaptureMode", [&] { std::swap(*other, mode); });
}
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void*, void**) {
  return call("cudaLaunchKernelExC");
}
cudaError_t __wrap___cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return call("__cudaLaunchKernel");
}

}  // extern "C"

}  // namespace tmap::testing
