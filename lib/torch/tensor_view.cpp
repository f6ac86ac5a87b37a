// SPDX-License-Identifier: Apache-2.0
#include "lib/torch/tensor_view.hpp"

#include <tmap/c/status.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace tmap::pytorch {

const element_types& types() {
  static const element_types known;
  return known;
}

tensor_view view_of(const Tensor& tensor) {
  tensor_view view{};
  view.handle = tensor.get();
  std::int64_t *sizes = nullptr, *strides = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dim(view.handle, &view.rank));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_sizes(view.handle, &sizes));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_strides(view.handle, &strides));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(view.handle, &view.type));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(view.handle, &view.device_type));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(view.handle, &view.device));
  view.sizes = sizes;
  view.strides = strides;
  return view;
}

std::optional<tensor_view> view_of(const std::optional<Tensor>& tensor) {
  if (!tensor) return std::nullopt;
  return view_of(*tensor);
}

bool tensor_view::has_shape(std::initializer_list<std::int64_t> shape) const {
  return std::equal(sizes, sizes + rank, shape.begin(), shape.end());
}

std::int64_t tensor_view::elements() const {
  std::int64_t product = 1;
  for (std::int64_t axis = 0; axis < rank; ++axis) product *= sizes[axis];
  return product;
}

bool tensor_view::is_packed() const {
  if (elements() == 0) return true;
  std::int64_t step = 1;
  for (std::int64_t axis = rank - 1; axis >= 0; --axis) {
    if (sizes[axis] != 1 && strides[axis] != step) return false;
    step *= sizes[axis];
  }
  return true;
}

const void* tensor_view::pointer() const {
  void* address = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_data_ptr(handle, &address));
  return address;
}

std::string type_name(std::int32_t type) {
  const std::pair<std::int32_t, const char*> names[] = {
      {types().bf16, "bfloat16"},
      {types().f16, "float16"},
      {types().f32, "float32"},
      {aoti_torch_dtype_float64(), "float64"},
      {types().e4m3, "float8_e4m3fn"},
      {types().e5m2, "float8_e5m2"},
      {aoti_torch_dtype_float8_e4m3fnuz(), "float8_e4m3fnuz"},
      {aoti_torch_dtype_float8_e5m2fnuz(), "float8_e5m2fnuz"},
      {aoti_torch_dtype_uint8(), "uint8"},
      {aoti_torch_dtype_uint16(), "uint16"},
      {aoti_torch_dtype_uint32(), "uint32"},
      {aoti_torch_dtype_uint64(), "uint64"},
      {aoti_torch_dtype_int8(), "int8"},
      {aoti_torch_dtype_int16(), "int16"},
      {types().i32, "int32"},
      {types().i64, "int64"},
      {aoti_torch_dtype_bool(), "bool"},
      {aoti_torch_dtype_complex32(), "complex32"},
      {aoti_torch_dtype_complex64(), "complex64"},
      {aoti_torch_dtype_complex128(), "complex128"},
  };
  for (const auto& [number, name] : names) {
    if (number == type) return std::string("torch.") + name;
  }
  return "torch's type " + std::to_string(type);
}

std::string device_name(const tensor_view& of) {
  if (of.device_type == aoti_torch_device_type_cuda()) return "cuda:" + std::to_string(of.device);
  if (of.device_type == aoti_torch_device_type_cpu()) return "cpu";
  if (of.device_type == aoti_torch_device_type_meta()) return "meta";
  return "torch's device " + std::to_string(of.device_type);
}

namespace {

std::string tuple_text(const std::int64_t* begin, const std::int64_t* end) {
  std::string text = "(";
  for (const std::int64_t* each = begin; each != end; ++each) {
    text += (each == begin ? "" : ", ") + std::to_string(*each);
  }
  return text + (end - begin == 1 ? ",)" : ")");
}

}  // namespace

std::string shape_text(const tensor_view& of) {
  return tuple_text(of.sizes, of.sizes + of.rank);
}

std::string shape_text(std::initializer_list<std::int64_t> shape) {
  return tuple_text(shape.begin(), shape.end());
}

void refuse(const std::string& reason) {
  throw std::invalid_argument(reason);
}

void check(int status) {
  if (status == TMAP_OK) return;
  std::size_t length = 0;
  tmap_last_message(nullptr, 0, &length);
  std::string words(length + 1, '\0');
  tmap_last_message(words.data(), words.size(), &length);
  words.resize(length);
  throw std::runtime_error(words);
}

}  // namespace tmap::pytorch
