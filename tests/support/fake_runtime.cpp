// SPDX-License-Identifier: Apache-2.0
#include "support/fake_runtime.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/driver/entry_points.hpp"

namespace tmap::testing {
namespace {

fake_cuda* current{};

/// The common arguments of all three encodings.
struct given_tensor {
  CUtensorMapDataType type;
  cuuint32_t rank;
  const void* address;
  const cuuint64_t* dims;
  const cuuint64_t* strides;
  const cuuint32_t* element_strides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion l2_promotion;
  CUtensorMapFloatOOBfill oob_fill;
};

tensor_spec spec_of(const given_tensor& given) {
  tensor_spec spec;
  spec.global_address = reinterpret_cast<std::uintptr_t>(given.address);
  spec.type = static_cast<element_type>(given.type);
  spec.rank = given.rank;
  std::copy_n(given.dims, given.rank, spec.global_dim);
  if (given.strides != nullptr) std::copy_n(given.strides, given.rank - 1, spec.global_stride_bytes);
  std::copy_n(given.element_strides, given.rank, spec.element_stride);
  spec.interleave = static_cast<interleave>(given.interleave);
  spec.swizzle = static_cast<swizzle>(given.swizzle);
  spec.l2_promotion = static_cast<l2_promotion>(given.l2_promotion);
  spec.oob_fill = static_cast<oob_fill>(given.oob_fill);
  return spec;
}

CUresult answer(CUtensorMap* map, fake_call call) {
  const std::uint64_t word = call.address;
  call.map_aligned_to_64 = reinterpret_cast<std::uintptr_t>(map) % 64 == 0;
  current->calls.push_back(std::move(call));
  if (!current->answers.empty()) {
    const CUresult code = current->answers.front();
    current->answers.pop_front();
    if (code != CUDA_SUCCESS) return code;
  }
  std::memcpy(map, &word, sizeof word);
  return CUDA_SUCCESS;
}

CUresult answer(const char* function, CUtensorMap* map, const given_tensor& given, im2col_spec rest = {},
                im2col_wide_mode mode = {}) {
  rest.tensor = spec_of(given);
  return answer(map, {.function = function,
                      .address = rest.tensor.global_address,
                      .strides_present = given.strides != nullptr,
                      .given = rest,
                      .wide_mode = mode});
}

CUresult encode_tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                      const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box,
                      const cuuint32_t* element_strides, CUtensorMapInterleave layout, CUtensorMapSwizzle pattern,
                      CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  const CUresult code = answer("cuTensorMapEncodeTiled", map,
                               {type, rank, address, dims, strides, element_strides, layout, pattern, promotion, fill});
  std::copy_n(box, rank, current->calls.back().given.tensor.box_dim);
  return code;
}

CUresult encode_im2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                       const cuuint64_t* dims, const cuuint64_t* strides, const int* lower, const int* upper,
                       cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* element_strides,
                       CUtensorMapInterleave layout, CUtensorMapSwizzle pattern, CUtensorMapL2promotion promotion,
                       CUtensorMapFloatOOBfill fill) {
  im2col_spec rest{.tensor = {}, .channels_per_pixel = channels, .pixels_per_column = pixels};
  std::copy_n(lower, rank - 2, rest.lower_corner);
  std::copy_n(upper, rank - 2, rest.upper_corner);
  return answer("cuTensorMapEncodeIm2col", map,
                {type, rank, address, dims, strides, element_strides, layout, pattern, promotion, fill}, rest);
}

CUresult encode_im2col_wide(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                            const cuuint64_t* dims, const cuuint64_t* strides, int lower, int upper,
                            cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* element_strides,
                            CUtensorMapInterleave layout, CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle pattern,
                            CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  const im2col_spec rest{.tensor = {},
                         .lower_corner = {lower},
                         .upper_corner = {upper},
                         .channels_per_pixel = channels,
                         .pixels_per_column = pixels};
  return answer("cuTensorMapEncodeIm2colWide", map,
                {type, rank, address, dims, strides, element_strides, layout, pattern, promotion, fill}, rest,
                static_cast<im2col_wide_mode>(mode));
}

CUresult replace_address(CUtensorMap* map, void* address) {
  return answer(map, {.function = "cuTensorMapReplaceAddress",
                      .address = reinterpret_cast<std::uintptr_t>(address),
                      .strides_present = true});
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
