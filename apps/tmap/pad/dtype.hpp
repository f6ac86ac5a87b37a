// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tmap::tool {

/// The element types that files bring, and how each is written.
enum class dtype : std::uint8_t {
  boolean,
  u8,
  i8,
  f8_e4m3,
  f8_e5m2,
  u16,
  i16,
  f16,
  bf16,
  u32,
  i32,
  f32,
  u64,
  i64,
  f64,
  c64,
};
inline constexpr std::uint8_t dtype_count = static_cast<std::uint8_t>(dtype::c64) + 1;

struct dtype_info {
  dtype type;
  const char* name;         ///< in reports and file names
  std::uint32_t bytes;      ///< of an element
  const char* npy;          ///< how numpy writes it, or the plain type of the same width
  const char* safetensors;  ///< how safetensors writes it
  bool npy_is_bits;         ///< numpy has no such type: a .npy file holds its bits as unsigned numbers
};

const dtype_info& info(dtype type);

inline std::uint64_t bytes(dtype type) {
  return info(type).bytes;
}

/// Returns the type that a .npy file's `descr` names. Empty if it is not supported.
std::optional<dtype> dtype_of_npy(std::string_view descr);

/// Returns the type that a safetensors header names. Empty if it is not supported.
std::optional<dtype> dtype_of_safetensors(std::string_view name);

/// Returns the bytes of a dense tensor. Empty if the number does not fit 63 bits.
std::optional<std::uint64_t> dense_bytes(std::span<const std::uint64_t> shape, dtype type);

}  // namespace tmap::tool
