// SPDX-License-Identifier: Apache-2.0
#include "conformance/fatal_cases.hpp"

#include <tmap/decode.hpp>

#include <algorithm>
#include <initializer_list>

namespace tmap::conformance {
namespace {

constexpr auto illegal = status::illegal_instruction;
constexpr auto misaligned = status::misaligned_address;
constexpr auto no_memory = status::illegal_memory_access;
constexpr std::optional<status> fine = std::nullopt;

using corner = std::initializer_list<std::int32_t>;

/// Returns a case with rows of 256 bytes and a box of 4 rows of 64 bytes.
tile_case matrix(element_type type, corner at, copy_kind kind = copy_kind::load) {
  tile_case tile;
  const auto bytes = static_cast<std::uint32_t>(element_bytes(type));
  const std::uint64_t dims[] = {256 / bytes, 16};
  const std::uint32_t box[] = {64 / bytes, 4};
  tile.spec = packed_spec(type, tensor_offset, dims, box);
  tile.kind = kind;
  std::copy(at.begin(), at.end(), tile.coordinates);
  return tile;
}

/// Returns a case of rank 3 whose layout has channel slices.
tile_case slices(interleave layout, corner at, copy_kind kind = copy_kind::load) {
  tile_case tile = matrix(element_type::u16, at, kind);
  tensor_spec& spec = tile.spec;
  spec.rank = 3;
  spec.interleave = layout;
  spec.swizzle = layout == interleave::bytes_32 ? swizzle::bytes_32 : swizzle::none;
  const std::uint64_t dims[] = {8, 4, 4};
  std::copy(std::begin(dims), std::end(dims), spec.global_dim);
  spec.global_stride_bytes[0] = 512;
  spec.global_stride_bytes[1] = 4096;
  for (std::uint32_t& extent : spec.box_dim) extent = 8;
  return tile;
}

tile_case reducing(reduction operation, element_type type, corner at = {0, 0}) {
  tile_case tile = matrix(type, at, copy_kind::reduce);
  tile.operation = operation;
  return tile;
}

tile_case shifted(tile_case tile, std::uint32_t shared_offset) {
  tile.shared_offset = shared_offset;
  return tile;
}

tile_case swizzled(tile_case tile, swizzle mode) {
  tile.spec.swizzle = mode;
  return tile;
}

tile_case with_dim(tile_case tile, std::uint32_t axis, std::uint64_t dim) {
  tile.spec.global_dim[axis] = dim;
  return tile;
}

void add_coordinates(std::vector<fatal_case>& cases) {
  using enum element_type;
  const auto add = [&](const char* name, tile_case tile, std::optional<status> raises) {
    cases.push_back({name, tile, {}, 0, raises});
  };
  add("load_u8_at_16", matrix(u8, {16, 0}), fine);
  add("load_u8_at_8", matrix(u8, {8, 0}), illegal);
  add("load_u16_at_8", matrix(u16, {8, 0}), fine);
  add("load_u16_at_4", matrix(u16, {4, 0}), illegal);
  add("load_f32_at_minus_4", matrix(f32, {-4, 0}), fine);
  add("load_f32_at_1", matrix(f32, {1, 0}), illegal);
  add("load_f32_at_2", matrix(f32, {2, 0}), illegal);
  add("load_f32_at_61", matrix(f32, {61, 0}), illegal);
  add("load_f32_at_minus_1", matrix(f32, {-1, 0}), illegal);
  add("load_f32_at_1_of_a_row_outside", matrix(f32, {1, 100}), illegal);
  add("load_u64_at_2", matrix(u64, {2, 0}), fine);
  add("load_u64_at_1", matrix(u64, {1, 0}), illegal);
  add("load_between_rows", matrix(f32, {0, 1}), fine);
  add("store_f32_at_4", matrix(f32, {4, 0}, copy_kind::store), fine);
  add("store_f32_at_2", matrix(f32, {2, 0}, copy_kind::store), illegal);
  add("reduce_f32_at_2", reducing(reduction::add, f32, {2, 0}), illegal);
  add("load_interleaved_at_1", slices(interleave::bytes_16, {1, 0, 0}), fine);
  add("store_interleaved_at_3", slices(interleave::bytes_32, {3, 1, 0}, copy_kind::store), fine);
  add("store_left_of_the_tensor", matrix(f32, {-4, 0}, copy_kind::store), illegal);
  add("store_above_the_tensor", matrix(f32, {0, -1}, copy_kind::store), illegal);
  add("store_above_and_far_right", matrix(f32, {1000, -1}, copy_kind::store), illegal);
  add("reduce_above_the_tensor", reducing(reduction::add, f32, {0, -1}), illegal);
  add("store_interleaved_at_minus_1", slices(interleave::bytes_16, {-1, 0, 0}, copy_kind::store), illegal);
  add("store_slice_minus_1", slices(interleave::bytes_16, {0, -1, 0}, copy_kind::store), illegal);
  add("store_far_right_and_below", matrix(f32, {0x7ffffff0, 0x7fffffff}, copy_kind::store), fine);
  add("load_far_left_and_above", matrix(f32, {-0x7fffffff - 1, -0x7fffffff - 1}), fine);
}

void add_alignment(std::vector<fatal_case>& cases) {
  using enum element_type;
  const auto add = [&](const char* name, tile_case tile, std::vector<word_edit> edits, std::optional<status> raises) {
    cases.push_back({name, tile, std::move(edits), 0, raises});
  };
  add("tile_at_128", shifted(matrix(u32, {0, 0}), 128), {}, fine);
  add("tile_at_64", shifted(matrix(u32, {0, 0}), 64), {}, misaligned);
  add("tile_at_16", shifted(matrix(u32, {0, 0}), 16), {}, misaligned);
  add("stored_tile_at_64", shifted(matrix(u32, {0, 0}, copy_kind::store), 64), {}, misaligned);
  add("swizzled_tile_at_64", shifted(swizzled(matrix(u32, {0, 0}), swizzle::bytes_64), 64), {}, misaligned);
  add("swizzled_tile_at_128", shifted(swizzled(matrix(u32, {0, 0}), swizzle::bytes_128), 128), {}, fine);
  add("base_plus_4", matrix(u32, {0, 0}), {{0, 15, 4}}, misaligned);
  add("base_plus_8_stored", matrix(u32, {0, 0}, copy_kind::store), {{0, 15, 8}}, misaligned);
  add("base_plus_16_interleaved_32", slices(interleave::bytes_32, {0, 0, 0}), {{0, 31, 16}}, misaligned);
  // An illegal instruction takes precedence over a misaligned address, and that over an illegal
  // address.
  add("bad_corner_and_bad_tile_address", shifted(matrix(u32, {1, 0}), 16), {}, illegal);
  add("bad_corner_and_bad_base", matrix(u32, {1, 0}), {{0, 15, 4}}, illegal);
  add("bad_tile_address_and_no_memory", shifted(matrix(u32, {0, 0}), 16), {{0, ~0ull, 0}}, misaligned);
}

void add_maps(std::vector<fatal_case>& cases) {
  const auto matrix_u32 = matrix(element_type::u32, {0, 0});
  const auto add = [&](const char* name, tile_case tile, std::vector<word_edit> edits, std::optional<status> raises) {
    cases.push_back({name, tile, std::move(edits), 0, raises});
  };
  const auto every_word = [](std::uint64_t value) {
    std::vector<word_edit> edits;
    for (std::uint32_t word = 0; word < 16; ++word) edits.push_back({word, ~0ull, value});
    return edits;
  };
  add("map_of_zeros", matrix_u32, every_word(0), illegal);
  add("map_of_ones", matrix_u32, every_word(~0ull), illegal);
  add("rank_6", matrix_u32, {{1, 7 << 4, 5 << 4}}, illegal);
  add("type_code_11", matrix_u32, {{1, 15 << 7, 11 << 7}}, illegal);
  add("tf32_bit_on_u32", matrix_u32, {{1, 1 << 16, 1 << 16}}, illegal);
  add("nan_fill_of_u32", matrix_u32, {{1, 1 << 15, 1 << 15}}, illegal);
  add("interleave_with_rank_2", matrix_u32, {{1, 3 << 11, 1 << 11}}, illegal);
  add("interleave_code_3", slices(interleave::bytes_16, {0, 0, 0}), {{1, 3 << 11, 3 << 11}}, illegal);
  add("im2col_bit", matrix_u32, {{1, 1, 1}}, illegal);
  add("inner_box_of_12_bytes", matrix_u32, {{6, 0xffull << 56, 2ull << 56}}, illegal);
  add("inner_box_wider_than_swizzle", matrix_u32, {{1, 3 << 13, 1 << 13}}, illegal);
  add("stride_of_16_interleaved_32", slices(interleave::bytes_32, {0, 0, 0}), {{1, 0xffull << 32, 33ull << 32}},
      illegal);
  std::vector<word_edit> notes;
  for (std::uint32_t word = 8; word < 16; ++word) notes.push_back({word, ~0ull, ~0ull});
  add("words_8_to_15_of_ones", matrix_u32, notes, fine);
  add("idle_bits_of_word_1", matrix_u32, {{1, 0xfff8000e, 0xfff8000e}}, fine);
  for (const std::uint32_t rank : {1u, 3u}) {
    cases.push_back({"instruction_of_rank_" + std::to_string(rank), matrix_u32, {}, rank, illegal});
  }
}

void add_extents(std::vector<fatal_case>& cases) {
  constexpr std::uint64_t most = std::uint64_t{1} << 31;
  const auto matrix_u32 = matrix(element_type::u32, {0, 0});
  const auto outside = matrix(element_type::u32, {0, -5});
  const auto add = [&](const char* name, tile_case tile, std::vector<word_edit> edits, std::optional<status> raises) {
    cases.push_back({name, tile, std::move(edits), 0, raises});
  };
  // The map stores each dim minus one in the low (0, 2) or high (1, 3) half of words 4 to 6.
  const auto rows = [](std::uint64_t dim) { return std::vector<word_edit>{{4, 0xffffffffull << 32, (dim - 1) << 32}}; };
  add("rows_2_31", with_dim(matrix_u32, 1, most), {}, fine);
  add("rows_2_31_plus_1", matrix_u32, rows(most + 1), illegal);
  add("rows_2_32_less_1", matrix_u32, rows(2 * most - 1), illegal);
  add("rows_2_32", matrix_u32, rows(2 * most), illegal);
  add("rows_replaced_by_0", matrix_u32, {{4, 0xffffffffull << 32, 0xffffffffull << 32}}, illegal);
  add("rows_2_32_box_outside", outside, rows(2 * most), illegal);
  add("columns_2_31", with_dim(matrix_u32, 0, most), {}, fine);
  add("columns_2_31_plus_1", matrix_u32, {{4, 0xffffffffull, most}}, illegal);
  add("safe_empty_map", with_dim(with_dim(matrix_u32, 0, 1), 1, 1), {}, fine);
  add("stride_0", matrix_u32, {{1, 0xffffffffull << 32, 0}}, fine);
}

void add_memory(std::vector<fatal_case>& cases) {
  const auto inside = matrix(element_type::u32, {0, 0});
  const auto outside = matrix(element_type::u32, {0, 100});
  const auto add = [&](const char* name, tile_case tile, std::vector<word_edit> edits, std::optional<status> raises) {
    cases.push_back({name, tile, std::move(edits), 0, raises});
  };
  const word_edit null_base{0, ~0ull, 0};
  // The step from row to row becomes 2^39 bytes. Word 1 holds its bits 4 to 35, and word 3 the
  // rest.
  const std::vector<word_edit> far_rows = {{1, 0xffffffffull << 32, 0}, {3, 0xfull << 32, 8ull << 32}};
  add("null_base", inside, {null_base}, no_memory);
  add("null_base_box_outside", outside, {null_base}, no_memory);
  tile_case stored = outside;
  stored.kind = copy_kind::store;
  add("null_base_stored_outside", stored, {null_base}, fine);
  add("rows_past_the_allocation", inside, far_rows, no_memory);
  add("rows_past_the_allocation_box_outside", outside, far_rows, fine);
}

void add_reductions(std::vector<fatal_case>& cases) {
  for (std::uint32_t type = 0; type < hopper_element_type_count; ++type) {
    const auto element = static_cast<element_type>(type);
    for (std::uint32_t op = 0; op < 8; ++op) {
      const auto operation = static_cast<reduction>(op);
      if (reductions_of(element).contains(operation)) continue;
      const std::string name = std::string{"reduce_"} + conformance::name(operation) + "_" + tmap::name(element);
      cases.push_back({name, reducing(operation, element), {}, 0, illegal});
    }
  }
  cases.push_back({"reduce_add_u8_outside", reducing(reduction::add, element_type::u8, {0, 100}), {}, 0, illegal});
}

}  // namespace

std::vector<fatal_case> fatal_cases() {
  std::vector<fatal_case> cases;
  add_coordinates(cases);
  add_alignment(cases);
  add_maps(cases);
  add_extents(cases);
  add_memory(cases);
  add_reductions(cases);
  return cases;
}

tensor_map map_of(const fatal_case& fatal, std::uint64_t arena_address) {
  tensor_spec spec = fatal.tile.spec;
  spec.global_address += arena_address;
  tensor_map map = encode_bits(spec).value_or(tensor_map{});
  for (const word_edit& edit : fatal.edits) map.words[edit.word] = (map.words[edit.word] & ~edit.mask) | edit.value;
  return map;
}

}  // namespace tmap::conformance
