// SPDX-License-Identifier: Apache-2.0
#include "lib/torch/element.hpp"

#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace tmap::pytorch {
namespace {

using element = std::array<unsigned char, 16>;

/// Returns a number as Python prints it.
std::string decimal_text(double value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  const std::string digits(text, end);
  return digits.find_first_not_of("-0123456789") == std::string::npos ? digits + ".0" : digits;
}

template <class T>
element bytes_of(const T& value) {
  element made{};
  std::memcpy(made.data(), &value, sizeof value);
  return made;
}

template <class Float>
element float_bytes(double value, double end, const char* type, const char* name) {
  if (std::isfinite(value) && std::fabs(value) >= end) {
    refuse(std::string(name) + " is " + decimal_text(value) + ": no element of " + type + " holds it");
  }
  return bytes_of(Float(static_cast<float>(value)));
}

template <class Integer>
element integer_bytes(double value, const char* name) {
  using limits = std::numeric_limits<Integer>;
  if (!(std::trunc(value) == value) || !std::isfinite(value)) {
    refuse(std::string(name) + " is " + decimal_text(value) + ": it must be an integer");
  }
  // The value after the largest one is a power of two, which is exact.
  const double least = static_cast<double>(limits::min()), end = 2.0 * static_cast<double>(limits::max() / 2 + 1);
  if (value < least || value >= (sizeof(Integer) == 1 && std::is_same_v<Integer, bool> ? 2.0 : end)) {
    char text[32];
    const auto last = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed).ptr;
    refuse(std::string(name) + " is " + std::string(text, last) + ": it must be from " + std::to_string(limits::min()) +
           " to " + std::to_string(limits::max()));
  }
  return bytes_of(static_cast<Integer>(value));
}

// From here on numbers round to infinity.
constexpr double end_of_f16 = 65520;
constexpr double end_of_f32 = 0x1.ffffffp127;

}  // namespace

element element_bytes(double value, std::int32_t type, const char* name) {
  if (type == types().f32) return float_bytes<float>(value, end_of_f32, "f32", name);
  if (type == types().bf16) return float_bytes<torch::headeronly::BFloat16>(value, end_of_f32, "bf16", name);
  if (type == types().f16) return float_bytes<torch::headeronly::Half>(value, end_of_f16, "f16", name);
  if (type == aoti_torch_dtype_float64()) return bytes_of(value);
  if (type == types().i64) return integer_bytes<std::int64_t>(value, name);
  if (type == types().i32) return integer_bytes<std::int32_t>(value, name);
  if (type == aoti_torch_dtype_int16()) return integer_bytes<std::int16_t>(value, name);
  if (type == aoti_torch_dtype_int8()) return integer_bytes<std::int8_t>(value, name);
  if (type == aoti_torch_dtype_uint8()) return integer_bytes<std::uint8_t>(value, name);
  if (type == aoti_torch_dtype_uint16()) return integer_bytes<std::uint16_t>(value, name);
  if (type == aoti_torch_dtype_uint32()) return integer_bytes<std::uint32_t>(value, name);
  if (type == aoti_torch_dtype_uint64()) return integer_bytes<std::uint64_t>(value, name);
  if (type == aoti_torch_dtype_bool()) return integer_bytes<bool>(value, name);
  refuse("rows that are padded have elements of integers or of floats of 16 to 64 bits, not " + type_name(type));
}

}  // namespace tmap::pytorch
