// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_spec.hpp>

#include <cstdint>
#include <iterator>
#include <optional>

// The codes in a tensor map of the enumerators whose bits differ from their driver value. A field
// of two parts (layout.hpp) holds its upper part, here after a `|`, in separate bits.

namespace tmap::codec {

/// Element format | conversion to TF32 << 4. The last three are documented only.
inline constexpr std::uint32_t element_codes[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 7 | 16, 8 | 16, 11, 12, 13};
static_assert(std::size(element_codes) == element_type_count);

/// Pattern | size of its atom << 2. The last three are documented only.
inline constexpr std::uint32_t swizzle_codes[] = {0, 1, 2, 3, 3 | 4, 3 | 8, 3 | 12};

template <class Enum, std::size_t Count>
constexpr std::optional<Enum> find_code(const std::uint32_t (&codes)[Count], std::uint64_t code) {
  for (std::uint32_t value = 0; value < Count; ++value) {
    if (codes[value] == code) return static_cast<Enum>(value);
  }
  return std::nullopt;
}

constexpr std::optional<element_type> element_type_of(std::uint64_t code) {
  return find_code<element_type>(element_codes, code);
}

constexpr std::optional<swizzle> swizzle_of(std::uint64_t code) {
  return find_code<swizzle>(swizzle_codes, code);
}

constexpr std::optional<interleave> interleave_of(std::uint64_t code) {
  if (code > static_cast<std::uint64_t>(interleave::bytes_32)) return std::nullopt;
  return static_cast<interleave>(code);
}

}  // namespace tmap::codec
