// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_map.hpp>

#include <array>
#include <cstdint>
#include <utility>

// The bit positions of each field of a tensor map. Only this file knows them: decode, encode_bits,
// describe and diff read this table. Rows of tiled maps were measured with driver 580 on compute
// capability 9.0. These fields are documented only:
//
// - the rows of im2col maps: corners of rank 3 to 5 as in TensorRT-LLM's tmaDescriptor.h
//   (Apache-2.0),
// - the atomicity bits of `swizzle`: as ptxas 13.0 writes them,
// - `large_tensor`: as CUTLASS, CCCL and Triton clear it.
//
// Bit 22, which ptxas sets for the 96-byte swizzle of compute capability 10.3, counts as unknown:
// CUDA 13.0 has no enumerator for that swizzle.

namespace tmap::codec {

/// A range of `width` bits of one 64-bit word; may be empty.
struct bit_range {
  std::uint32_t word;
  std::uint32_t shift;
  std::uint32_t width;

  constexpr std::uint64_t mask() const { return ((std::uint64_t{1} << (width - 1) << 1) - 1) << shift; }
};

/// The layouts of the second half of a map. A field has the set of those in which it exists.
enum layout : std::uint32_t { tiled = 1, im2col_rank_3 = 2, im2col_rank_4 = 4, im2col_rank_5 = 8 };
inline constexpr std::uint32_t im2col = im2col_rank_3 | im2col_rank_4 | im2col_rank_5;
inline constexpr std::uint32_t always = ~0u;

/// The notation of a value for a person.
enum class notation {
  number,
  signed_number,
  address,
  yes_no,
  map_kind,
  element_type,
  interleave,
  swizzle,
  oob_fill,
  l2_promotion,
};

/// One field: `low` holds its lower bits and `high` those above. value = (bits << scale) + bias;
/// `axis` is -1 for a field that belongs to no dimension.
struct field {
  const char* name;
  std::int32_t axis;
  bit_range low;
  bit_range high;
  std::uint32_t bias;
  std::uint32_t scale;
  std::uint32_t layouts;
  notation text;
};

inline constexpr bit_range no_bits{0, 0, 0};

constexpr field plain(const char* name, bit_range bits, notation text = notation::number,
                      std::uint32_t layouts = always) {
  return {name, -1, bits, no_bits, 0, 0, layouts, text};
}
constexpr field split(const char* name, bit_range low, bit_range high, notation text) {
  return {name, -1, low, high, 0, 0, always, text};
}
constexpr field extent(const char* name, std::int32_t axis, bit_range bits, std::uint32_t layouts = always) {
  return {name, axis, bits, no_bits, 1, 0, layouts, notation::number};
}
/// Strides are stored in units of 16 bytes; `axis` is the dimension that a stride steps along.
constexpr field stride(const char* name, std::int32_t axis, bit_range low, bit_range high) {
  return {name, axis, low, high, 0, 4, always, notation::number};
}
constexpr field corner(const char* name, bit_range bits, std::uint32_t layouts) {
  return {name, -1, bits, no_bits, 0, 0, layouts, notation::signed_number};
}

inline constexpr field table[] = {
    plain("kind", {1, 0, 1}, notation::map_kind),
    plain("version", {1, 1, 3}),
    extent("rank", -1, {1, 4, 3}),
    split("element_type", {1, 7, 4}, {1, 16, 1}, notation::element_type),
    plain("interleave", {1, 11, 2}, notation::interleave),
    split("swizzle", {1, 13, 2}, {1, 19, 2}, notation::swizzle),
    plain("oob_fill", {1, 15, 1}, notation::oob_fill),
    plain("l2_promotion", {1, 17, 2}, notation::l2_promotion),
    plain("large_tensor", {1, 21, 1}, notation::yes_no),
    plain("global_address", {0, 0, 64}, notation::address),
    extent("global_dim[0]", 0, {4, 0, 32}),
    extent("global_dim[1]", 1, {4, 32, 32}),
    extent("global_dim[2]", 2, {5, 0, 32}),
    extent("global_dim[3]", 3, {5, 32, 32}),
    extent("global_dim[4]", 4, {6, 0, 32}),
    stride("global_stride_bytes[0]", 1, {1, 32, 32}, {3, 32, 4}),
    stride("global_stride_bytes[1]", 2, {2, 0, 32}, {3, 36, 4}),
    stride("global_stride_bytes[2]", 3, {2, 32, 32}, {3, 40, 4}),
    stride("global_stride_bytes[3]", 4, {3, 0, 32}, {3, 44, 4}),
    extent("box_dim[0]", 0, {6, 56, 8}, tiled),
    extent("box_dim[1]", 1, {7, 0, 8}, tiled),
    extent("box_dim[2]", 2, {7, 8, 8}, tiled),
    extent("box_dim[3]", 3, {7, 16, 8}, tiled),
    extent("box_dim[4]", 4, {7, 24, 8}, tiled),
    extent("element_stride[0]", 0, {6, 32, 3}),
    extent("element_stride[1]", 1, {6, 35, 3}),
    extent("element_stride[2]", 2, {6, 38, 3}),
    extent("element_stride[3]", 3, {6, 41, 3}),
    extent("element_stride[4]", 4, {6, 44, 3}),
    extent("channels_per_pixel", -1, {6, 56, 8}, im2col),
    extent("pixels_per_column", -1, {7, 32, 10}, im2col),
    corner("lower_corner[0]", {7, 0, 16}, im2col_rank_3),
    corner("upper_corner[0]", {7, 16, 16}, im2col_rank_3),
    corner("lower_corner[0]", {7, 0, 8}, im2col_rank_4),
    corner("lower_corner[1]", {7, 8, 8}, im2col_rank_4),
    corner("upper_corner[0]", {7, 16, 8}, im2col_rank_4),
    corner("upper_corner[1]", {7, 24, 8}, im2col_rank_4),
    corner("lower_corner[0]", {7, 0, 5}, im2col_rank_5),
    corner("lower_corner[1]", {7, 5, 5}, im2col_rank_5),
    corner("lower_corner[2]", {7, 10, 5}, im2col_rank_5),
    corner("upper_corner[0]", {7, 16, 5}, im2col_rank_5),
    corner("upper_corner[1]", {7, 21, 5}, im2col_rank_5),
    corner("upper_corner[2]", {7, 26, 5}, im2col_rank_5),
    plain("noted_box_bytes", {8, 0, 64}),
    plain("noted_shared_alignment", {9, 0, 64}),
};

/// Finds a row when the program is compiled: a name that is not in the table does not compile.
consteval const field& row(const char* name, std::uint32_t layouts = always) {
  for (const field& candidate : table) {
    const char* a = candidate.name;
    const char* b = name;
    while (*a != 0 && *a == *b) ++a, ++b;
    if (*a == *b && (candidate.layouts & layouts) != 0) return candidate;
  }
  throw "no such field";
}

constexpr std::uint64_t read_bits(const tensor_map& map, bit_range range) {
  return range.width == 0 ? 0 : (map.words[range.word] & range.mask()) >> range.shift;
}

/// Returns the field's value; a signed one in two's complement.
constexpr std::uint64_t read(const tensor_map& map, const field& f) {
  const std::uint64_t raw = read_bits(map, f.low) | (read_bits(map, f.high) << (f.low.width % 64));
  if (f.text == notation::signed_number) {
    const std::uint64_t sign = std::uint64_t{1} << (f.low.width - 1);
    return (raw ^ sign) - sign;
  }
  return (raw << f.scale) + f.bias;
}

constexpr void write_bits(tensor_map& map, bit_range range, std::uint64_t value) {
  if (range.width != 0) map.words[range.word] |= (value << range.shift) & range.mask();
}

/// Writes a value to bits that are zero. Bits that do not fit are dropped, as by
/// `tensormap.replace`.
constexpr void write(tensor_map& map, const field& f, std::uint64_t value) {
  const std::uint64_t raw = (value - f.bias) >> f.scale;
  write_bits(map, f.low, raw);
  if (f.high.width != 0) write_bits(map, f.high, raw >> f.low.width);
}

/// Returns the layout of a map; 0 for an im2col map of impossible rank, of which only the common
/// fields are known.
constexpr std::uint32_t layout_of(const tensor_map& map) {
  if (read(map, row("kind")) == 0) return tiled;
  switch (read(map, row("rank"))) {
    case 3: return im2col_rank_3;
    case 4: return im2col_rank_4;
    case 5: return im2col_rank_5;
    default: return 0;
  }
}

constexpr bool exists_in(const field& f, std::uint32_t layout) {
  return f.layouts == always || (f.layouts & layout) != 0;
}

struct word_masks {
  std::uint64_t words[16];
};

consteval word_masks masks_of(std::uint32_t layouts) {
  word_masks known{};
  for (const field& f : table) {
    if (!exists_in(f, layouts)) continue;
    known.words[f.low.word] |= f.low.mask();
    if (f.high.width != 0) known.words[f.high.word] |= f.high.mask();
  }
  return known;
}

/// One entry for each set of layouts.
template <std::uint32_t... Layouts>
consteval std::array<word_masks, sizeof...(Layouts)> all_masks(std::integer_sequence<std::uint32_t, Layouts...>) {
  return {masks_of(Layouts)...};
}
inline constexpr auto known_masks = all_masks(std::make_integer_sequence<std::uint32_t, 16>{});

/// Returns the bits of one word that belong to a field of any of these layouts.
constexpr std::uint64_t known_bits(std::uint32_t word, std::uint32_t layouts) {
  return known_masks[layouts].words[word];
}

}  // namespace tmap::codec
