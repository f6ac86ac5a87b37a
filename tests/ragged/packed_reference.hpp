// SPDX-License-Identifier: Apache-2.0
#pragma once

// A slow implementation of packed sides, from the documentation of `pack` and `unpack` in
// ragged.hpp.

#include "ragged/plan_reference.hpp"

namespace tmap::testing {

inline plain_side packed_side(plain_side shape, std::uint64_t address, std::uint32_t element) {
  shape.address = address;
  wide extent = element;
  for (std::size_t k = 1; k < shape.dim.size(); ++k) {
    extent = std::min<wide>(extent * shape.dim[k - 1], ~0ull);
    shape.stride[k - 1] = static_cast<std::uint64_t>(extent);
  }
  return shape;
}

/// Returns the bytes from the beginning of the tensor to the next one. `shape` is its side that is
/// not packed.
inline std::uint64_t packed_step(const plain_side& shape, const planning_rules& rules, bool unpacks,
                                 std::uint64_t alignment) {
  const bool is_bad = slow::faults(shape, rules.source_element, unpacks, rules) != 0;
  const wide bytes = slow::has_zero(shape) || is_bad ? 0 : slow::product(shape.dim) * rules.source_element;
  return static_cast<std::uint64_t>((bytes + alignment - 1) / alignment * alignment);
}

}  // namespace tmap::testing
