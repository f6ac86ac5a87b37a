// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/pad/dtype.hpp"

#include <limits>

namespace tmap::tool {
namespace {

constexpr dtype_info table[] = {
    {dtype::boolean, "bool", 1, "|b1", "BOOL", false},
    {dtype::u8, "u8", 1, "|u1", "U8", false},
    {dtype::i8, "i8", 1, "|i1", "I8", false},
    {dtype::f8_e4m3, "f8_e4m3", 1, "|u1", "F8_E4M3", true},
    {dtype::f8_e5m2, "f8_e5m2", 1, "|u1", "F8_E5M2", true},
    {dtype::u16, "u16", 2, "<u2", "U16", false},
    {dtype::i16, "i16", 2, "<i2", "I16", false},
    {dtype::f16, "f16", 2, "<f2", "F16", false},
    {dtype::bf16, "bf16", 2, "<u2", "BF16", true},
    {dtype::u32, "u32", 4, "<u4", "U32", false},
    {dtype::i32, "i32", 4, "<i4", "I32", false},
    {dtype::f32, "f32", 4, "<f4", "F32", false},
    {dtype::u64, "u64", 8, "<u8", "U64", false},
    {dtype::i64, "i64", 8, "<i8", "I64", false},
    {dtype::f64, "f64", 8, "<f8", "F64", false},
    {dtype::c64, "c64", 8, "<c8", "C64", false},
};

}  // namespace

const dtype_info& info(dtype type) {
  return table[static_cast<std::size_t>(type)];
}

std::optional<dtype> dtype_of_npy(std::string_view descr) {
  for (const dtype_info& row : table) {
    if (!row.npy_is_bits && descr == row.npy) return row.type;
  }
  return std::nullopt;
}

std::optional<dtype> dtype_of_safetensors(std::string_view name) {
  for (const dtype_info& row : table) {
    if (name == row.safetensors) return row.type;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> dense_bytes(std::span<const std::uint64_t> shape, dtype type) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  std::uint64_t total = bytes(type);
  for (const std::uint64_t dim : shape) {
    if (dim == 0) return 0;
  }
  for (const std::uint64_t dim : shape) {
    if (dim > most / total) return std::nullopt;
    total *= dim;
  }
  return total;
}

}  // namespace tmap::tool
