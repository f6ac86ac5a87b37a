// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/element_type.hpp>

namespace tmap {

/// What a copy does to the bytes in global memory (PTX ISA, cp.reduce.async.bulk.tensor). The element type comes from
/// the tensor map.
enum class reduction : std::uint32_t { add, min, max, inc, dec, bit_and, bit_or, bit_xor };

/// The operations of a set, one bit each: bit `op` is the reduction `op`.
using reduction_mask = std::uint32_t;

TMAP_HOST_DEVICE constexpr reduction_mask operation_bit(reduction op) {
  return static_cast<std::uint32_t>(op) < 32 ? 1u << static_cast<std::uint32_t>(op) : 0u;
}

/// Every operation the copy engine has for a type; any other is an illegal instruction (measured,
/// docs/measurements/copy_engine_semantics.md).
TMAP_HOST_DEVICE constexpr reduction_mask reductions_of(element_type type) {
  const reduction_mask add = operation_bit(reduction::add);
  const reduction_mask order = operation_bit(reduction::min) | operation_bit(reduction::max);
  const reduction_mask count = operation_bit(reduction::inc) | operation_bit(reduction::dec);
  const reduction_mask bits =
      operation_bit(reduction::bit_and) | operation_bit(reduction::bit_or) | operation_bit(reduction::bit_xor);
  switch (type) {
    case element_type::u32: return add | order | count | bits;
    case element_type::i32:
    case element_type::u64: return add | order | bits;
    case element_type::i64: return order;
    case element_type::f16:
    case element_type::bf16: return add | order;
    case element_type::f32:
    case element_type::f32_ftz:
    case element_type::tf32:
    case element_type::tf32_ftz:
    case element_type::f64: return add;
    default: return 0;
  }
}

}  // namespace tmap
