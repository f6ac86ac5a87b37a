// SPDX-License-Identifier: Apache-2.0
#pragma once

// Properties of tensors of PyTorch, as the C functions of its stable interface return them.

#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace tmap::pytorch {

using torch::stable::Tensor;

/// The numbers that PyTorch has for element types. They are read once.
struct element_types {
  std::int32_t bf16 = aoti_torch_dtype_bfloat16();
  std::int32_t f16 = aoti_torch_dtype_float16();
  std::int32_t f32 = aoti_torch_dtype_float32();
  std::int32_t e4m3 = aoti_torch_dtype_float8_e4m3fn();
  std::int32_t e5m2 = aoti_torch_dtype_float8_e5m2();
  std::int32_t i32 = aoti_torch_dtype_int32();
  std::int32_t i64 = aoti_torch_dtype_int64();
};
const element_types& types();

/// Sizes and strides are those of the tensor, which must outlive the view. Strides count elements.
struct tensor_view {
  AtenTensorHandle handle;
  std::int64_t rank;
  const std::int64_t* sizes;
  const std::int64_t* strides;
  std::int32_t type;
  std::int32_t device_type;
  std::int32_t device;

  bool is_on_device_of(const tensor_view& other) const {
    return device_type == other.device_type && device == other.device;
  }
  bool is_on_cuda() const { return device_type == aoti_torch_device_type_cuda(); }
  bool has_shape(std::initializer_list<std::int64_t> shape) const;
  std::int64_t elements() const;
  /// True if the elements follow each other in order.
  bool is_packed() const;
  const void* pointer() const;
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(pointer()); }
};
tensor_view view_of(const Tensor& tensor);
std::optional<tensor_view> view_of(const std::optional<Tensor>& tensor);

/// Returns an extent or a stride, which is not negative.
inline std::uint64_t unsigned_of(std::int64_t extent) {
  return static_cast<std::uint64_t>(extent);
}

// Words as Python prints them.
inline std::string number_text(std::int64_t value) {
  return std::to_string(value);
}
std::string type_name(std::int32_t type);
std::string device_name(const tensor_view& of);
std::string shape_text(const tensor_view& of);
std::string shape_text(std::initializer_list<std::int64_t> shape);

/// Throws what becomes a `ValueError` in Python.
[[noreturn]] void refuse(const std::string& reason);
/// Throws the library's own words if it has refused a call.
void check(int status);

}  // namespace tmap::pytorch
