// SPDX-License-Identifier: Apache-2.0
#include "conformance/contents.hpp"

#include "support/random_spec.hpp"

#include <cstring>

namespace tmap::conformance {
namespace {

using corners = std::vector<std::uint64_t>;

corners integer_corners(std::uint32_t bits) {
  const std::uint64_t top = std::uint64_t{1} << (bits - 1);
  const std::uint64_t all = top | (top - 1);
  return {0, 1, 2, 3, 7, 8, top - 2, top - 1, top, top + 1, all - 1, all, 100, all - 100, 0x55, 0xaa};
}

/// Returns zeros, denormals, the smallest and largest normal numbers, one, infinities, and quiet
/// and signalling NaNs, in both signs.
corners float_corners(std::uint32_t bits, std::uint32_t mantissa_bits) {
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
  const std::uint64_t normal = std::uint64_t{1} << mantissa_bits;
  const std::uint64_t infinity = (sign - 1) & ~(normal - 1);
  const std::uint64_t one = (infinity >> 1) & ~(normal - 1);
  corners values = {0,
                    1,
                    normal - 1,
                    normal,
                    normal + 1,
                    one,
                    one + 1,
                    one + normal,
                    one >> 1,
                    infinity,
                    infinity - 1,
                    infinity + 1,
                    infinity | (normal >> 1)};
  const std::size_t positive = values.size();
  for (std::size_t i = 0; i < positive; ++i) values.push_back(values[i] | sign);
  values.push_back(sign - 1);
  values.push_back(sign | (sign - 1));
  return values;
}

corners corners_of(element_type type) {
  const std::uint32_t bits = element_bits(type);
  switch (type) {
    case element_type::f16: return float_corners(bits, 10);
    case element_type::bf16: return float_corners(bits, 7);
    case element_type::f64: return float_corners(bits, 52);
    case element_type::f32:
    case element_type::f32_ftz:
    case element_type::tf32:
    case element_type::tf32_ftz: return float_corners(bits, 23);
    default: return integer_corners(bits);
  }
}

}  // namespace

std::vector<std::byte> contents(element_type type, std::uint64_t seed, std::uint64_t bytes) {
  const corners values = corners_of(type);
  const std::uint64_t size = element_bytes(type);
  testing::random_source random{seed * 1000 + static_cast<std::uint32_t>(type)};
  std::vector<std::byte> data(bytes);
  for (std::uint64_t at = 0; at + size <= bytes; at += size) {
    const std::uint64_t value = random.one_in(2) ? values[random.below(values.size())] : random.bits();
    std::memcpy(data.data() + at, &value, size);
  }
  return data;
}

std::uint64_t digest(std::uint64_t so_far, const std::byte* data, std::uint64_t count) {
  std::uint64_t lanes[4] = {so_far, so_far + 1, so_far + 2, so_far + 3};
  std::uint64_t word = 0;
  for (std::uint64_t at = 0; at < count; at += 8) {
    std::memcpy(&word, data + at, count - at < 8 ? count - at : 8);
    std::uint64_t& lane = lanes[at / 8 % 4];
    lane = (lane ^ word) * 0x9e3779b97f4a7c15;
    lane ^= lane >> 32;
  }
  std::uint64_t mixed = count;
  for (const std::uint64_t lane : lanes) mixed = (mixed ^ lane) * 0xbf58476d1ce4e5b9 ^ mixed >> 29;
  return mixed;
}

}  // namespace tmap::conformance
