// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/element_type.hpp>

namespace tmap {

/// The operation of a reducing copy on global memory (PTX ISA, cp.reduce.async.bulk.tensor). The
/// element type comes from the tensor map.
enum class reduction : std::uint32_t { add, min, max, inc, dec, bit_and, bit_or, bit_xor };

/// A set of operations: bit `op` stands for the reduction `op`. No integer converts to it.
class reduction_mask {
 public:
  constexpr reduction_mask() = default;
  TMAP_HOST_DEVICE constexpr explicit reduction_mask(std::uint32_t bits) : bits_{bits} {}

  TMAP_HOST_DEVICE constexpr std::uint32_t bits() const { return bits_; }
  /// False for a value that is no reduction.
  TMAP_HOST_DEVICE constexpr bool contains(reduction op) const {
    return static_cast<std::uint32_t>(op) < 32 && (bits_ >> static_cast<std::uint32_t>(op) & 1) != 0;
  }
  friend TMAP_HOST_DEVICE constexpr reduction_mask operator|(reduction_mask a, reduction_mask b) {
    return reduction_mask{a.bits_ | b.bits_};
  }
  friend TMAP_HOST_DEVICE constexpr reduction_mask operator|(reduction_mask a, reduction b) {
    return a | reduction_mask{1u << static_cast<std::uint32_t>(b)};
  }

 private:
  std::uint32_t bits_{};
};

/// Returns every operation that the copy engine has for a type. Any other is an illegal instruction
/// (measured, docs/measurements/copy_engine_semantics.md).
TMAP_HOST_DEVICE constexpr reduction_mask reductions_of(element_type type) {
  constexpr reduction_mask none;
  constexpr reduction_mask add = none | reduction::add;
  constexpr reduction_mask order = none | reduction::min | reduction::max;
  constexpr reduction_mask count = none | reduction::inc | reduction::dec;
  constexpr reduction_mask bits = none | reduction::bit_and | reduction::bit_or | reduction::bit_xor;
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
    default: return none;
  }
}

}  // namespace tmap
