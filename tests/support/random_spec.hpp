// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_spec.hpp>
#include <tmap/validate.hpp>

#include <cstdint>
#include <initializer_list>
#include <iterator>

// Random specs that visit the corners of every rule more often than uniform ones would. The same
// seed gives the same specs on every machine.

namespace tmap::testing {

/// A splitmix64 generator: small and, unlike the distributions of <random>, the same on every
/// machine.
class random_source {
 public:
  explicit random_source(std::uint64_t seed) : state_{seed} {}

  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  /// Returns one of 0 .. count - 1.
  std::uint64_t below(std::uint64_t count) { return bits() % count; }
  std::uint32_t below32(std::uint32_t count) { return static_cast<std::uint32_t>(below(count)); }
  bool one_in(std::uint64_t chance) { return below(chance) == 0; }

  /// Returns 0 to 2^max_bits - 1. Each number of bits is equally likely.
  std::uint64_t of_random_length(std::uint32_t max_bits) {
    const std::uint64_t length = below(max_bits + 1);
    return length == 0 ? 0 : bits() >> (64 - length);
  }

  template <class T>
  T pick(std::initializer_list<T> values) {
    return *std::next(values.begin(), static_cast<std::ptrdiff_t>(below(values.size())));
  }

 private:
  std::uint64_t state_;
};

/// Makes specs for a Hopper GPU.
class random_spec_source {
 public:
  explicit random_spec_source(std::uint64_t seed) : random_{seed} {}

  /// Returns a tiled spec that breaks no rule of severity `error`.
  tensor_spec legal() {
    for (;;) {
      const tensor_spec spec = likely_legal();
      if (broken_rules(spec).empty()) return spec;
    }
  }

  /// Returns an im2col spec that breaks no rule of severity `error`.
  im2col_spec legal_im2col() {
    for (;;) {
      const im2col_spec spec = likely_legal_im2col();
      if (broken_rules(spec).empty()) return spec;
    }
  }

  /// Returns a spec that may break a few rules or none. It is a legal one with some fields drawn
  /// again, without regard to any rule. Values may be invalid enumerators.
  tensor_spec any() {
    tensor_spec spec = legal();
    for (std::uint32_t changes = random_.below32(4); changes > 0; --changes) disturb(spec);
    return spec;
  }

  /// Does the same for im2col.
  im2col_spec any_im2col() {
    im2col_spec spec = legal_im2col();
    for (std::uint32_t changes = random_.below32(4); changes > 0; --changes) disturb(spec);
    return spec;
  }

  /// Returns a spec with these modes, type and rank, and numbers that mostly break no rule.
  tensor_spec with_modes_of(tensor_spec spec) {
    choose_extents(spec, spec.interleave == interleave::bytes_32 ? 32 : 16);
    choose_box(spec);
    return spec;
  }

  random_source& random() { return random_; }

 private:
  tensor_spec likely_legal();
  im2col_spec likely_legal_im2col();
  void disturb(tensor_spec& spec);
  void disturb(im2col_spec& spec);

  void choose_modes(tensor_spec& spec);
  void choose_extents(tensor_spec& spec, std::uint64_t alignment);
  void choose_box(tensor_spec& spec);
  std::uint64_t dim(std::uint32_t size_class);
  std::uint64_t stride(std::uint32_t size_class, std::uint64_t alignment);
  std::uint32_t inner_box(const tensor_spec& spec);
  std::int32_t corner(std::int32_t lowest);

  random_source random_;
};

inline void random_spec_source::choose_modes(tensor_spec& spec) {
  spec.type = static_cast<element_type>(random_.below(hopper_element_type_count));
  spec.rank = 1 + random_.below32(max_rank);
  spec.interleave = spec.rank < 3 || random_.one_in(2) ? interleave::none : static_cast<interleave>(random_.below(3));
  spec.swizzle = spec.interleave == interleave::bytes_32 ? swizzle::bytes_32 : static_cast<swizzle>(random_.below(4));
  spec.l2_promotion = static_cast<l2_promotion>(random_.below(4));
  spec.oob_fill = is_floating_point(spec.type) ? static_cast<oob_fill>(random_.below(2)) : oob_fill::zero;
}

/// Size class 0 is small, 1 ordinary, 2 reaches the limits. A whole spec uses one class, because
/// otherwise nearly every tensor of high rank would be too large for the address space.
inline std::uint64_t random_spec_source::dim(std::uint32_t size_class) {
  if (random_.one_in(4)) return 1;
  if (size_class == 2 && random_.one_in(2)) {
    return random_.pick<std::uint64_t>({1ull << 31, (1ull << 31) - 1, (1ull << 30) + 1});
  }
  if (random_.one_in(4)) return random_.pick<std::uint64_t>({2, 15, 16, 17, 255, 256, 257});
  return 1 + random_.of_random_length(size_class == 0 ? 5 : size_class == 1 ? 14 : 31);
}

inline std::uint64_t random_spec_source::stride(std::uint32_t size_class, std::uint64_t alignment) {
  if (random_.one_in(8)) return 0;
  if (random_.one_in(8)) return alignment;
  if (size_class == 2 && random_.one_in(4)) {
    return random_.pick<std::uint64_t>({(1ull << 40) - alignment, 1ull << 39, 1ull << 36, (1ull << 36) - alignment});
  }
  return alignment * random_.of_random_length(size_class == 0 ? 6 : size_class == 1 ? 20 : 35);
}

inline void random_spec_source::choose_extents(tensor_spec& spec, std::uint64_t alignment) {
  const std::uint32_t size_class = random_.below32(3);
  spec.global_address = alignment * random_.of_random_length(42);
  if (spec.global_address == 0) spec.global_address = alignment;
  std::uint64_t packed = element_bytes(spec.type);
  const bool is_packed_layout = random_.one_in(2);
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
    spec.global_dim[axis] = dim(size_class);
    packed = (packed * spec.global_dim[axis] + alignment - 1) / alignment * alignment;
    if (axis + 1 < spec.rank) {
      const bool fits = packed < detail::global_stride_limit;
      spec.global_stride_bytes[axis] = is_packed_layout && fits ? packed : stride(size_class, alignment);
      packed = spec.global_stride_bytes[axis];
    }
  }
}

inline std::uint32_t random_spec_source::inner_box(const tensor_spec& spec) {
  const auto bytes = static_cast<std::uint32_t>(element_bytes(spec.type));
  const std::uint32_t step = bytes < 16 ? 16 / bytes : 1;
  const bool spans = spec.swizzle != swizzle::none && spec.interleave == interleave::none;
  const std::uint32_t most = spans ? swizzle_span_bytes(spec.swizzle) / bytes : 256;
  const std::uint32_t largest = most / step;
  return step * (random_.one_in(3) ? largest : 1 + random_.below32(largest));
}

/// Returns the box's bytes as the driver counts them for its limit (T37).
inline std::uint64_t counted_box_bytes(const tensor_spec& spec) {
  std::uint64_t bytes = element_bytes(spec.type);
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) bytes *= spec.box_dim[axis] / spec.element_stride[axis];
  return bytes;
}

inline void random_spec_source::choose_box(tensor_spec& spec) {
  const bool strided = random_.one_in(2);
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
    const bool at_corner = random_.one_in(4);
    spec.box_dim[axis] = at_corner ? random_.pick({1u, 2u, 8u, 255u, 256u}) : 1 + random_.below32(256);
    spec.element_stride[axis] = strided ? 1 + random_.below32(8) : 1;
  }
  spec.box_dim[0] = inner_box(spec);
  while (spec.rank > 1 && counted_box_bytes(spec) > detail::max_box_bytes) {
    std::uint32_t& extent = spec.box_dim[1 + random_.below32(spec.rank - 1)];
    extent = (extent + 1) / 2;
  }
}

inline tensor_spec random_spec_source::likely_legal() {
  tensor_spec spec;
  choose_modes(spec);
  choose_extents(spec, spec.interleave == interleave::bytes_32 ? 32 : 16);
  choose_box(spec);
  return spec;
}

inline std::int32_t random_spec_source::corner(std::int32_t lowest) {
  if (random_.one_in(3)) return random_.pick({lowest, -1, 0, 1, -lowest - 1});
  return lowest + static_cast<std::int32_t>(random_.below32(static_cast<std::uint32_t>(-2 * lowest)));
}

inline im2col_spec random_spec_source::likely_legal_im2col() {
  im2col_spec spec;
  do choose_modes(spec.tensor);
  while (spec.tensor.rank < 3);
  choose_extents(spec.tensor, spec.tensor.interleave == interleave::bytes_32 ? 32 : 16);
  choose_box(spec.tensor);
  constexpr std::int32_t lowest[] = {-32768, -128, -16};
  for (std::uint32_t axis = 0; axis + 2 < spec.tensor.rank; ++axis) {
    spec.lower_corner[axis] = corner(lowest[spec.tensor.rank - 3]);
    spec.upper_corner[axis] = corner(lowest[spec.tensor.rank - 3]);
  }
  spec.channels_per_pixel = spec.tensor.box_dim[0];
  for (std::uint32_t& extent : spec.tensor.box_dim) extent = 0;
  spec.pixels_per_column = random_.one_in(4) ? random_.pick({1u, 255u, 256u, 1024u}) : 1 + random_.below32(1024);
  return spec;
}

inline void random_spec_source::disturb(tensor_spec& spec) {
  const std::uint32_t axis = random_.below32(max_rank);
  switch (random_.below(11)) {
    case 0: spec.global_address = random_.of_random_length(64); break;
    case 1: spec.type = static_cast<element_type>(random_.of_random_length(5)); break;
    case 2: spec.rank = random_.below32(8); break;
    case 3: spec.global_dim[axis] = random_.of_random_length(64); break;
    case 4: spec.global_stride_bytes[axis % (max_rank - 1)] = random_.of_random_length(64); break;
    case 5: spec.box_dim[axis] = random_.below32(300); break;
    case 6: spec.element_stride[axis] = random_.below32(11); break;
    case 7: spec.interleave = static_cast<interleave>(random_.of_random_length(3)); break;
    case 8: spec.swizzle = static_cast<swizzle>(random_.of_random_length(4)); break;
    case 9: spec.l2_promotion = static_cast<l2_promotion>(random_.of_random_length(4)); break;
    default: spec.oob_fill = static_cast<oob_fill>(random_.of_random_length(2)); break;
  }
}

inline void random_spec_source::disturb(im2col_spec& spec) {
  const std::uint32_t axis = random_.below32(3);
  switch (random_.below(5)) {
    case 0: spec.lower_corner[axis] = static_cast<std::int32_t>(random_.of_random_length(32)); break;
    case 1: spec.upper_corner[axis] = -static_cast<std::int32_t>(random_.of_random_length(31)); break;
    case 2: spec.channels_per_pixel = random_.below32(300); break;
    case 3: spec.pixels_per_column = random_.below32(1200); break;
    default: disturb(spec.tensor); break;
  }
}

}  // namespace tmap::testing
