// SPDX-License-Identifier: Apache-2.0
#include "conformance/fatal_cases.hpp"
#include "simulator/small_tensor.hpp"

#include <algorithm>
#include <set>

// Runs the list of errors that a GPU runs in child processes (tests/device/hardware_facts_test.cu).
// Here each error comes back as a value.

namespace tmap::conformance {
namespace {

constexpr std::uint64_t arena_address = 0x7f0000000000;

error run(const fatal_case& fatal) {
  std::vector<std::byte> arena(arena_bytes);
  std::vector<std::byte> shared(shared_bytes);
  const simulator::memory_window window{arena_address, arena};
  const simulator::copy_engine engine{{&window, 1}};
  const tile_case& tile = fatal.tile;
  const tensor_map map = map_of(fatal, arena_address);
  const cuda::std::span<const std::int32_t> corner{tile.coordinates, fatal.rank()};
  const cuda::std::span<std::byte> room{shared};
  result<void> done;
  if (tile.kind == copy_kind::load) {
    const auto received = engine.load(map, corner, room, tile.shared_offset);
    if (!received) done = failure{received.error()};
  } else if (tile.kind == copy_kind::store) {
    done = engine.store(map, corner, room, tile.shared_offset);
  } else {
    done = engine.reduce(tile.operation, map, corner, room, tile.shared_offset);
  }
  return done ? error{.code = status{}} : done.error();
}

class fatal_copy : public ::testing::TestWithParam<fatal_case> {};

TEST_P(fatal_copy, comes_back_as_an_error) {
  const fatal_case& fatal = GetParam();
  const error found = run(fatal);
  EXPECT_EQ(static_cast<int>(found.code), static_cast<int>(fatal.raises.value_or(status{}))) << to_text(fatal.tile);
}

INSTANTIATE_TEST_SUITE_P(simulator, fatal_copy, ::testing::ValuesIn(fatal_cases()),
                         [](const auto& each) { return each.param.name; });

TEST(fatal_cases, have_names_of_their_own) {
  std::set<std::string> names;
  for (const fatal_case& fatal : fatal_cases()) EXPECT_TRUE(names.insert(fatal.name).second) << fatal.name;
}

fatal_case named(const std::string& name) {
  for (const fatal_case& fatal : fatal_cases()) {
    if (fatal.name == name) return fatal;
  }
  ADD_FAILURE() << "no case " << name;
  return {};
}

TEST(errors, name_the_rule_and_the_values) {
  const error corner = run(named("load_f32_at_2"));
  EXPECT_EQ(corner.first, rule::u09_innermost_coordinate);
  EXPECT_EQ(corner.found, 2u);
  EXPECT_EQ(corner.allowed, 4u);
  const error negative = run(named("store_above_the_tensor"));
  EXPECT_EQ(negative.first, rule::u03_store_corner);
  EXPECT_EQ(negative.axis, 1);
  EXPECT_LT(static_cast<std::int64_t>(negative.found), 0);
  EXPECT_NE(to_string(negative).find("coordinate 1 is -"), std::string::npos) << to_string(negative);
  const error address = run(named("tile_at_64"));
  EXPECT_EQ(address.first, rule::u01_shared_alignment);
  EXPECT_EQ(address.found, 64u);
  EXPECT_EQ(run(named("reduce_add_u8_outside")).first, rule::u06_reduction_type);
  EXPECT_EQ(run(named("instruction_of_rank_3")).first, rule::u07_instruction_rank);
  EXPECT_EQ(run(named("rows_2_31_plus_1")).first, rule::t36_global_dim_copied);
  EXPECT_EQ(run(named("null_base")).found, 0u);
}

/// Changes bits of word `word` in a legal map, loads through it, and returns the error.
error run_changed(const tensor_spec& spec, std::uint32_t word, std::uint64_t cleared, std::uint64_t set) {
  tensor_map map = encode_bits(spec).value_or(tensor_map{});
  map.words[word] = (map.words[word] & ~cleared) | set;
  const std::int32_t corner[] = {0, 0, 0};
  std::byte tile[128];
  const auto loaded = simulator::copy_engine{{}}.load(map, corner, tile);
  return loaded ? error{.code = status{}} : loaded.error();
}

TEST(errors, of_maps_are_not_all_illegal_instructions) {
  tensor_spec wide;
  wide.global_address = arena_address;
  wide.rank = 3;
  std::fill_n(wide.global_dim, 3, 256);
  std::fill_n(wide.global_stride_bytes, 2, 65536);
  wide.global_stride_bytes[0] = 256;
  wide.box_dim[0] = wide.box_dim[1] = 256;
  wide.box_dim[2] = 1;
  const error too_large = run_changed(wide, 7, 0, 3 << 8);  // four planes
  EXPECT_EQ(too_large.code, status::illegal_memory_access);
  EXPECT_EQ(too_large.first, rule::t37_box_bytes);

  tensor_spec interleaved = wide;
  interleaved.interleave = interleave::bytes_32;
  interleaved.swizzle = swizzle::bytes_32;
  interleaved.global_dim[0] = 4;
  interleaved.box_dim[0] = 16;
  const error without_swizzle = run_changed(interleaved, 1, std::uint64_t{3} << 13, 0);
  EXPECT_EQ(without_swizzle.code, status::unsupported);
  EXPECT_EQ(without_swizzle.first, rule::t25_interleave_32_swizzle);

  const error no_such_rank = run_changed(wide, 1, 0, std::uint64_t{7} << 4);
  EXPECT_EQ(no_such_rank.code, status::illegal_instruction);
}

TEST(errors, refuse_a_tile_too_small_for_its_footprint) {
  testing::small_tensor<std::uint32_t> m{element_type::u32, {32, 4}, {4, 4}};
  m.spec.swizzle = swizzle::bytes_128;
  m.tile.resize(tile_footprint_bytes(m.spec) / 4 - 1);
  EXPECT_EQ(m.load({0, 0}), 0u);
  EXPECT_EQ(m.last_error.code, status::invalid_argument);
  EXPECT_STREQ(m.last_error.argument.c_str(), "tile");
  EXPECT_EQ(m.last_error.allowed, 4u * 128) << "four rows of one span, though the box has 64 bytes";
}

}  // namespace
}  // namespace tmap::conformance
