// SPDX-License-Identifier: Apache-2.0
// Tests tile types on the host: the map that they describe, and their elements after a load by the
// simulator.
#include <tmap/decode.hpp>
#include <tmap/make_typed_maps.hpp>
#include <tmap/simulator.hpp>
#include <tmap/tile.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

namespace tmap::testing {
namespace {

using whole_rows = tile<float, swizzle::bytes_128, 32, 24>;
using narrow_rows = tile<std::uint8_t, swizzle::bytes_64, 48, 5>;
using planes = tile<__half, swizzle::none, 24, 3, 2>;
using five_dims = tile<double, swizzle::bytes_32, 2, 3, 2, 3, 2>;
using channels = basic_tile<std::uint16_t, element_type::bf16, interleave::bytes_16, swizzle::bytes_64, 8, 4, 1, 2>;

static_assert(whole_rows::rank == 2 && whole_rows::type == element_type::f32);
static_assert(whole_rows::bytes == 32 * 24 * 4 && sizeof(whole_rows) == 3 * 1024);
static_assert(whole_rows::alignment == 1024 && alignof(whole_rows) == 1024);
static_assert(narrow_rows::bytes == 48 * 5, "what a load brings");
static_assert(sizeof(narrow_rows) == 512, "rows of 64 bytes, up to a whole repeat");
static_assert(planes::rank == 3 && planes::bytes == 24 * 3 * 2 * 2 && alignof(planes) == 128);
static_assert(channels::rank == 4 && channels::bytes == 8 * 4 * 2 * 16 && channels::elements == 8 * 4 * 2 * 8);
static_assert(std::is_trivially_copyable_v<whole_rows> && std::is_trivially_default_constructible_v<whole_rows>);

static_assert(element_of<char> == element_type::u8 && element_of<bool> == element_type::u8);
static_assert(element_of<__nv_fp8_e4m3> == element_type::u8 && element_of<std::int16_t> == element_type::u16);
static_assert(element_of<long> == element_type::i64 && element_of<unsigned long long> == element_type::u64);
static_assert(element_of<__nv_bfloat16> == element_type::bf16 && element_of<std::int32_t> == element_type::i32);
struct no_number {};
static_assert(element_bits(element_of<no_number>) == 0);

// A box that no map moves is not a tile.
template <element_type Type, interleave Interleave, swizzle Swizzle, std::uint32_t... Extents>
constexpr rule_set faults = detail::tile_faults(detail::tile_spec<Type, Interleave, Swizzle, Extents...>());
constexpr auto f32 = element_type::f32;
constexpr auto none = interleave::none;
static_assert(faults<f32, none, swizzle::bytes_128, 32, 24>.empty());
static_assert(faults<f32, none, swizzle::none>.contains(rule::t03_rank));
static_assert(faults<f32, none, swizzle::none, 4, 1, 1, 1, 1, 1>.contains(rule::t03_rank));
static_assert(faults<f32, none, swizzle::none, 4, 257>.contains(rule::t17_box_dim_range));
static_assert(faults<f32, none, swizzle::none, 4, 0>.contains(rule::t17_box_dim_range));
static_assert(faults<f32, none, swizzle::none, 6, 8>.contains(rule::t18_inner_box_multiple_of_16));
static_assert(faults<f32, none, swizzle::bytes_32, 12, 8>.contains(rule::t22_inner_box_swizzle_32));
static_assert(faults<f32, none, swizzle::bytes_64, 20, 8>.contains(rule::t23_inner_box_swizzle_64));
static_assert(faults<f32, none, swizzle::bytes_128, 36, 8>.contains(rule::t24_inner_box_swizzle_128));
static_assert(faults<f32, none, swizzle::bytes_128_atom_32, 32, 8>.contains(rule::t28_swizzle_value));
static_assert(faults<f32, interleave::bytes_16, swizzle::none, 8, 1>.contains(rule::t04_interleave_rank));
static_assert(faults<f32, interleave::bytes_32, swizzle::none, 8, 1, 1>.contains(rule::t25_interleave_32_swizzle));
static_assert(faults<f32, none, swizzle::none, 256, 256>.contains(rule::t37_box_bytes));
static_assert(faults<element_type::u4_align8, none, swizzle::none, 32>.contains(rule::t02_element_type));

// A tile takes as many coordinates as dims.
static_assert(std::is_invocable_v<whole_rows&, int, int>);
static_assert(!std::is_invocable_v<whole_rows&, int>);
static_assert(!std::is_invocable_v<whole_rows&, int, int, int>);
static_assert(std::is_same_v<decltype(std::declval<const whole_rows&>()(0, 0)), const float&>);

/// Loads the tile at the origin of a tensor of its own size. Returns the number of elements in
/// wrong places.
template <class Tile>
std::uint32_t misplaced() {
  using T = typename Tile::element;
  constexpr std::uint64_t base = 0x10000;
  tensor_spec spec = Tile::spec();
  spec.global_address = base;
  std::uint64_t stride = spec.interleave == interleave::none ? sizeof(T) : 16;
  for (std::uint32_t axis = 0; axis < spec.rank; ++axis) {
    spec.global_dim[axis] = spec.box_dim[axis];
    stride *= spec.box_dim[axis];
    if (axis + 1 < spec.rank) spec.global_stride_bytes[axis] = stride;
  }
  std::vector<unsigned char> memory(Tile::bytes);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<unsigned char>(i % 251);
  const simulator::memory_window window{base, {reinterpret_cast<std::byte*>(memory.data()), memory.size()}};
  const auto loaded = std::make_unique<Tile>();
  const std::int32_t corner[Tile::rank]{};
  const auto map = encode_bits(spec);
  if (!map) return Tile::elements;
  const auto received = simulator::copy_engine{{&window, 1}}.load(
      *map, corner, {reinterpret_cast<std::byte*>(loaded.get()), sizeof(Tile)});
  EXPECT_EQ(received.value_or(0), Tile::bytes);
  std::uint32_t wrong = 0;
  for (std::uint32_t i = 0; i < Tile::elements; ++i) {
    wrong += std::memcmp(&(*loaded)[i], memory.data() + i * sizeof(T), sizeof(T)) == 0 ? 0 : 1;
  }
  return wrong;
}

TEST(tile, finds_its_elements) {
  EXPECT_EQ(misplaced<whole_rows>(), 0u);
  EXPECT_EQ(misplaced<narrow_rows>(), 0u);
  EXPECT_EQ(misplaced<planes>(), 0u);
  EXPECT_EQ(misplaced<five_dims>(), 0u);
  EXPECT_EQ(misplaced<channels>(), 0u);
}

TEST(tile, takes_coordinates_innermost_first) {
  auto numbers = std::make_unique<whole_rows>();
  for (std::uint32_t i = 0; i < whole_rows::elements; ++i) (*numbers)[i] = static_cast<float>(i);
  EXPECT_EQ((*numbers)(5, 2), 2.0f * 32 + 5);
  auto counted = std::make_unique<five_dims>();
  for (std::uint32_t i = 0; i < five_dims::elements; ++i) (*counted)[i] = i;
  EXPECT_EQ((*counted)(1, 2, 0, 1, 1), 1.0 + 2 * 2 + 0 * 6 + 1 * 12 + 1 * 36);
}

/// Returns the error of a result; "" if there is none.
template <class Answer>
std::string fault_of(const Answer& answer) {
  if (answer) return "";
  const error& e = answer.error();
  EXPECT_EQ(e.code, status::invalid_argument);
  EXPECT_FALSE(e.argument.empty());
  return std::string(e.argument.view()) + ": " + std::to_string(e.found) + ", " + std::to_string(e.allowed);
}

void expect_same_map(const tensor_spec& made, const tensor_spec& expected) {
  const auto bits = encode_bits(made);
  ASSERT_TRUE(bits) << to_string(bits.error());
  EXPECT_EQ(*bits, encode_bits(expected).value());
}

TEST(packed_specs, take_the_type_from_a_pointer_and_the_rank_from_the_dims) {
  alignas(16) static const float values[64]{};
  const std::uint64_t dims[] = {100, 20, 7};
  const std::uint32_t box[] = {32, 4, 2};
  tensor_spec expected = packed_spec(element_type::f32, reinterpret_cast<std::uintptr_t>(values), dims, box);
  expect_same_map(packed_spec(values, {100, 20, 7}, {32, 4, 2}), expected);
  expected.swizzle = swizzle::bytes_128;
  expect_same_map(packed_spec(values, {100, 20, 7}, {32, 4, 2}, swizzle::bytes_128), expected);
}

TEST(packed_specs, take_type_box_and_swizzle_from_a_tile) {
  const std::uint64_t dims[] = {96, 1000};
  const std::uint32_t box[] = {32, 24};
  tensor_spec expected = packed_spec(element_type::f32, 1 << 20, dims, box);
  expected.swizzle = swizzle::bytes_128;
  expect_same_map(packed_spec<whole_rows>(1 << 20, {96, 1000}), expected);
}

TEST(typed_maps, are_refused_by_the_first_field_that_differs) {
  const tensor_map* const slots = nullptr;
  const auto fault = [&](const tensor_spec& spec, patch_fields fields = patch_address) {
    return fault_of(typed_maps_of<planes>(map_template{{}, spec, fields}, slots, 7));
  };
  const tensor_spec right = planes::spec();
  EXPECT_EQ(fault(right), "");
  EXPECT_EQ(fault(right, patch_extents(3)), "") << "fields that a tile does not set may differ";

  tensor_spec spec = right;
  spec.type = element_type::bf16;
  EXPECT_EQ(fault(spec), "element type of the maps: 9, 6");
  spec = right;
  spec.rank = 2;
  EXPECT_EQ(fault(spec), "rank of the maps: 2, 3");
  spec = right;
  spec.interleave = interleave::bytes_16;
  EXPECT_EQ(fault(spec), "interleave of the maps: 1, 0");
  spec = right;
  spec.swizzle = swizzle::bytes_64;
  EXPECT_EQ(fault(spec), "swizzle of the maps: 2, 0");
  const char* const boxes[] = {"box_dim[0] of the maps: 25, 24", "box_dim[1] of the maps: 4, 3",
                               "box_dim[2] of the maps: 3, 2"};
  for (std::uint32_t axis = 0; axis < 3; ++axis) {
    spec = right;
    ++spec.box_dim[axis];
    EXPECT_EQ(fault(spec), boxes[axis]);
  }
}

TEST(typed_maps, are_refused_where_each_map_has_its_own_box) {
  const tensor_spec spec = planes::spec();
  for (const patch_fields field : {patch_box(1), patch_element_stride(1)}) {
    const auto maps = typed_maps_of<planes>(map_template{{}, spec, patch_address | field}, map_batch_ref{});
    EXPECT_EQ(fault_of(maps), "box_dim[1] of the maps: 0, 3");
  }
}

TEST(typed_maps, count_the_steps_of_a_box_with_element_strides) {
  tensor_spec spec = planes::spec();
  spec.box_dim[1] = 5;
  spec.element_stride[1] = 2;
  EXPECT_EQ(fault_of(typed_maps_of<planes>(map_template{{}, spec, {}}, map_batch_ref{})), "");
  spec.element_stride[1] = 3;
  EXPECT_EQ(fault_of(typed_maps_of<planes>(map_template{{}, spec, {}}, map_batch_ref{})),
            "box_dim[1] of the maps: 2, 3");
}

TEST(typed_maps, have_the_slots_they_were_made_from) {
  const tensor_map slots[3]{};
  const auto maps = typed_maps_of<planes>(map_template{{}, planes::spec(), patch_address}, slots, 3);
  ASSERT_TRUE(maps.has_value());
  EXPECT_EQ(maps->count(), 3u);
  EXPECT_EQ(maps->ref().slot(2), slots + 2);
  EXPECT_EQ(typed_maps<planes>{}.count(), 0u);
}

TEST(typed_map, is_refused_before_the_driver_is_asked) {
  tensor_spec spec = planes::spec();
  spec.swizzle = swizzle::bytes_32;
  EXPECT_EQ(fault_of(typed_map_of<planes>(spec)), "swizzle of the maps: 1, 0");
  const auto without_strides = typed_map_of<planes>(planes::spec());
  ASSERT_FALSE(without_strides.has_value());
  EXPECT_EQ(without_strides.error().code, status::rule_broken) << "a spec of this tile without strides";
}

}  // namespace
}  // namespace tmap::testing
