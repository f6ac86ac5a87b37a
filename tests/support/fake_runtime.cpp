// SPDX-License-Identifier: Apache-2.0
#include "support/fake_runtime.hpp"

#include <cstring>

#include "lib/driver/entry_points.hpp"

namespace tmap::testing {
namespace {

fake_cuda* current{};

CUresult answer(const char* function, CUtensorMap* map, const void* address, bool strides_present) {
  const auto place = reinterpret_cast<std::uintptr_t>(map);
  current->calls.push_back({function, reinterpret_cast<std::uintptr_t>(address), strides_present, place % 64 == 0, {}});
  if (!current->answers.empty()) {
    const CUresult code = current->answers.front();
    current->answers.pop_front();
    if (code != CUDA_SUCCESS) return code;
  }
  const std::uint64_t word = reinterpret_cast<std::uintptr_t>(address);
  std::memcpy(map, &word, sizeof word);
  return CUDA_SUCCESS;
}

CUresult encode_tiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t, void* address, const cuuint64_t*,
                      const cuuint64_t* strides, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                      CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  return answer("cuTensorMapEncodeTiled", map, address, strides != nullptr);
}

CUresult encode_im2col(CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank, void* address, const cuuint64_t*,
                       const cuuint64_t* strides, const int* lower, const int* upper, cuuint32_t, cuuint32_t,
                       const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                       CUtensorMapFloatOOBfill) {
  const CUresult code = answer("cuTensorMapEncodeIm2col", map, address, strides != nullptr);
  std::vector<std::int32_t>& corners = current->calls.back().corners;
  corners.assign(lower, lower + rank - 2);
  corners.insert(corners.end(), upper, upper + rank - 2);
  return code;
}

CUresult encode_im2col_wide(CUtensorMap* map, CUtensorMapDataType, cuuint32_t, void* address, const cuuint64_t*,
                            const cuuint64_t* strides, int lower, int upper, cuuint32_t, cuuint32_t, const cuuint32_t*,
                            CUtensorMapInterleave, CUtensorMapIm2ColWideMode, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  const CUresult code = answer("cuTensorMapEncodeIm2colWide", map, address, strides != nullptr);
  current->calls.back().corners = {lower, upper};
  return code;
}

CUresult replace_address(CUtensorMap* map, void* address) {
  return answer("cuTensorMapReplaceAddress", map, address, true);
}

void* function_named(const std::string& symbol) {
  if (symbol == "cuTensorMapEncodeTiled") return reinterpret_cast<void*>(&encode_tiled);
  if (symbol == "cuTensorMapEncodeIm2col") return reinterpret_cast<void*>(&encode_im2col);
  if (symbol == "cuTensorMapEncodeIm2colWide") return reinterpret_cast<void*>(&encode_im2col_wide);
  if (symbol == "cuTensorMapReplaceAddress") return reinterpret_cast<void*>(&replace_address);
  return nullptr;
}

cudaError_t driver_version(int* version) {
  if (current->version_code == cudaSuccess) *version = current->version;
  return current->version_code;
}

cudaError_t device_count(int* count) {
  if (current->devices_code == cudaSuccess) *count = current->devices;
  return current->devices_code;
}

cudaError_t current_device(int* device) {
  if (current->current_device_code == cudaSuccess) *device = 0;
  return current->current_device_code;
}

cudaError_t set_device(int) {
  ++current->set_device_calls;
  return current->set_device_code;
}

cudaError_t device_attribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = current->major; return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor: *value = current->minor; return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 232448; return cudaSuccess;
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t entry_point(const char* symbol, void** function, unsigned int version, unsigned long long,
                        cudaDriverEntryPointQueryResult* found) {
  current->lookups.push_back(symbol);
  if (!current->symbol.touches_outputs) return current->symbol.code;
  if (static_cast<int>(version) > current->version) return cudaErrorInvalidValue;
  *found = current->symbol.found;
  *function = current->symbol.has_pointer ? function_named(symbol) : nullptr;
  return current->symbol.code;
}

}  // namespace

fake_cuda::fake_cuda() {
  current = this;
}

fake_cuda::~fake_cuda() {
  current = nullptr;
}

const driver::runtime_calls& fake_runtime() {
  static constexpr driver::runtime_calls calls{driver_version, device_count,     current_device,
                                               set_device,     device_attribute, entry_point};
  return calls;
}

void remove_driver(fake_cuda& cuda) {
  cuda.version = 0;
  cuda.devices_code = cudaErrorInsufficientDriver;
  cuda.current_device_code = cudaErrorInsufficientDriver;
  cuda.symbol = {cudaErrorInsufficientDriver, cudaDriverEntryPointSuccess, false, false};
}

}  // namespace tmap::testing
