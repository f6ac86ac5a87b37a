// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/reduction_kernels.hpp"

#include "lib/simulator/float_formats.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

// Computes one element, as measured (docs/measurements/copy_engine_semantics.md, section 7).

namespace tmap::simulator {
namespace {

template <class Bits, auto Combine>
void reduce_row(std::byte* memory, const std::byte* tile, std::uint64_t count) {
  for (std::uint64_t done = 0; done < count; done += sizeof(Bits)) {
    Bits m;
    Bits t;
    std::memcpy(&m, memory + done, sizeof m);
    std::memcpy(&t, tile + done, sizeof t);
    m = Combine(m, t);
    std::memcpy(memory + done, &m, sizeof m);
  }
}

template <class Bits>
Bits add(Bits m, Bits t) {
  return m + t;
}
template <class Bits>
Bits smaller(Bits m, Bits t) {
  return t < m ? t : m;
}
template <class Bits>
Bits larger(Bits m, Bits t) {
  return m < t ? t : m;
}
std::uint32_t count_up(std::uint32_t m, std::uint32_t t) {
  return m >= t ? 0 : m + 1;
}
std::uint32_t count_down(std::uint32_t m, std::uint32_t t) {
  return m == 0 || m > t ? t : m - 1;
}
template <class Bits>
Bits bits_and(Bits m, Bits t) {
  return m & t;
}
template <class Bits>
Bits bits_or(Bits m, Bits t) {
  return m | t;
}
template <class Bits>
Bits bits_xor(Bits m, Bits t) {
  return m ^ t;
}

/// A sum of two 16-bit floats in FLOAT32 rounds once more without harm: 24 bits are twice 11 plus
/// 2.
template <auto ToFloat, auto FromFloat>
std::uint16_t add_16(std::uint16_t m, std::uint16_t t) {
  return FromFloat(ToFloat(m) + ToFloat(t));
}

std::uint32_t add_f32(std::uint32_t m, std::uint32_t t) {
  const float sum = std::bit_cast<float>(m) + std::bit_cast<float>(t);
  return std::isnan(sum) ? canonical_nan_32 : std::bit_cast<std::uint32_t>(sum);
}

std::uint32_t add_f32_ftz(std::uint32_t m, std::uint32_t t) {
  return flush_denormal(add_f32(flush_denormal(m), flush_denormal(t)));
}

std::uint64_t add_f64(std::uint64_t m, std::uint64_t t) {
  constexpr std::uint64_t invalid = 0xfff8000000000000;
  if (std::isnan(std::bit_cast<double>(t))) return t;
  if (std::isnan(std::bit_cast<double>(m))) return m;
  const double sum = std::bit_cast<double>(m) + std::bit_cast<double>(t);
  return std::isnan(sum) ? invalid : std::bit_cast<std::uint64_t>(sum);
}

/// Floats as integers of the same order, with -0 below +0.
constexpr std::int32_t order_16(std::uint16_t bits) {
  const std::int32_t magnitude = bits & 0x7fff;
  return (bits & 0x8000) != 0 ? -magnitude - 1 : magnitude;
}

template <std::uint16_t Infinity, bool Larger>
std::uint16_t choose_16(std::uint16_t m, std::uint16_t t) {
  const bool m_is_nan = (m & 0x7fff) > Infinity;
  const bool t_is_nan = (t & 0x7fff) > Infinity;
  if (m_is_nan && t_is_nan) return canonical_nan_16;
  if (m_is_nan || t_is_nan) return m_is_nan ? t : m;
  return (order_16(m) < order_16(t)) == Larger ? t : m;
}

reduction_kernel u32_kernel(reduction operation) {
  using u32 = std::uint32_t;
  switch (operation) {
    case reduction::add: return reduce_row<u32, add<u32>>;
    case reduction::min: return reduce_row<u32, smaller<u32>>;
    case reduction::max: return reduce_row<u32, larger<u32>>;
    case reduction::inc: return reduce_row<u32, count_up>;
    case reduction::dec: return reduce_row<u32, count_down>;
    case reduction::bit_and: return reduce_row<u32, bits_and<u32>>;
    case reduction::bit_or: return reduce_row<u32, bits_or<u32>>;
    case reduction::bit_xor: return reduce_row<u32, bits_xor<u32>>;
  }
  return nullptr;
}

/// Min and max look at the type's sign, the others do not.
reduction_kernel i32_kernel(reduction operation) {
  if (operation == reduction::min) return reduce_row<std::int32_t, smaller<std::int32_t>>;
  if (operation == reduction::max) return reduce_row<std::int32_t, larger<std::int32_t>>;
  return u32_kernel(operation);
}

reduction_kernel u64_kernel(reduction operation) {
  using u64 = std::uint64_t;
  switch (operation) {
    case reduction::add: return reduce_row<u64, add<u64>>;
    case reduction::min: return reduce_row<u64, smaller<u64>>;
    case reduction::max: return reduce_row<u64, larger<u64>>;
    case reduction::bit_and: return reduce_row<u64, bits_and<u64>>;
    case reduction::bit_or: return reduce_row<u64, bits_or<u64>>;
    case reduction::bit_xor: return reduce_row<u64, bits_xor<u64>>;
    default: return nullptr;
  }
}

reduction_kernel i64_kernel(reduction operation) {
  if (operation == reduction::min) return reduce_row<std::int64_t, smaller<std::int64_t>>;
  return reduce_row<std::int64_t, larger<std::int64_t>>;
}

template <std::uint16_t Infinity, auto ToFloat, auto FromFloat>
reduction_kernel kernel_16(reduction operation) {
  using u16 = std::uint16_t;
  if (operation == reduction::add) return reduce_row<u16, add_16<ToFloat, FromFloat>>;
  if (operation == reduction::min) return reduce_row<u16, choose_16<Infinity, false>>;
  return reduce_row<u16, choose_16<Infinity, true>>;
}

}  // namespace

reduction_kernel kernel_for(reduction operation, element_type type) {
  if (!reductions_of(type).contains(operation)) return nullptr;
  switch (type) {
    case element_type::u32: return u32_kernel(operation);
    case element_type::i32: return i32_kernel(operation);
    case element_type::u64: return u64_kernel(operation);
    case element_type::i64: return i64_kernel(operation);
    case element_type::f16: return kernel_16<0x7c00, f16_to_float, float_to_f16>(operation);
    case element_type::bf16: return kernel_16<0x7f80, bf16_to_float, float_to_bf16>(operation);
    case element_type::f64: return reduce_row<std::uint64_t, add_f64>;
    case element_type::f32:
    case element_type::tf32: return reduce_row<std::uint32_t, add_f32>;
    case element_type::f32_ftz:
    case element_type::tf32_ftz: return reduce_row<std::uint32_t, add_f32_ftz>;
    default: return nullptr;
  }
}

}  // namespace tmap::simulator
