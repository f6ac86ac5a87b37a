// SPDX-License-Identifier: Apache-2.0
// Tests which route a tensor takes and why: every reason, every boundary of a size, and that no
// arithmetic wraps.
#include <tmap/detail/choose_route.hpp>
#include <tmap/ragged.hpp>
#include <tmap/route.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <type_traits>

#include "ragged/route_cases.hpp"
#include "support/refusal.hpp"

namespace tmap {

static void PrintTo(const route_choice& choice, std::ostream* out) {
  *out << name(choice.way) << " (" << name(choice.why) << ")";
}
static bool operator==(const route_choice& a, const route_choice& b) {
  return a.way == b.way && a.why == b.why;
}

namespace testing {
namespace {

static_assert(!std::is_convertible_v<std::uint32_t, route_set> && !std::is_convertible_v<route_set, bool>);
static_assert(all_routes.without(route::bulk) ==
              (route_bit(route::tensor_map) | route_bit(route::ldgsts) | route_bit(route::plain)));

constexpr std::uint64_t base = 1 << 20;

/// Returns a matrix of rows of `row_bytes` bytes, `pitch` apart, with elements of one byte.
tensor_layout rows_of(std::uint64_t row_bytes, std::uint64_t rows, std::uint64_t pitch, std::uint64_t address = base) {
  return {address, 1, 2, {row_bytes, rows}, {pitch}};
}

route_choice chosen(route way, route_reason why) {
  return {way, why};
}

TEST(choose_route, long_rows_go_in_bulk) {
  EXPECT_EQ(choose_route(rows_of(1024, 9, 2048)), chosen(route::bulk, route_reason::best));
  EXPECT_EQ(choose_route(rows_of(1029, 9, 2048)), chosen(route::bulk, route_reason::best));
}

TEST(choose_route, a_tensor_without_gaps_is_one_row) {
  EXPECT_EQ(choose_route(rows_of(8, 128, 8)), chosen(route::bulk, route_reason::best));
  EXPECT_EQ(choose_route(tensor_layout{base, 3, 4, {3, 5, 7, 11}, {9, 45, 315}}),
            chosen(route::bulk, route_reason::best));
}

TEST(choose_route, an_axis_of_one_element_may_have_any_stride) {
  EXPECT_EQ(choose_route(tensor_layout{base, 4, 3, {64, 1, 64}, {7, 256}}), chosen(route::bulk, route_reason::best));
  EXPECT_EQ(choose_route(tensor_layout{base, 4, 3, {64, 1, 64}, {7, 512}}),
            chosen(route::tensor_map, route_reason::best));
}

TEST(choose_route, shorter_rows_with_gaps_take_a_map) {
  EXPECT_EQ(choose_route(rows_of(1023, 9, 2048)), chosen(route::tensor_map, route_reason::best));
  EXPECT_EQ(choose_route(rows_of(64, 32, 80)), chosen(route::tensor_map, route_reason::best));
}

TEST(choose_route, more_bytes_than_a_number_holds_are_not_few) {
  constexpr std::uint64_t most = std::uint64_t{1} << 31;
  EXPECT_EQ(choose_route(tensor_layout{base, 1, 3, {64, most, most}, {128, std::uint64_t{1} << 39}}),
            chosen(route::tensor_map, route_reason::best));
}

TEST(choose_route, too_small_for_a_map) {
  EXPECT_EQ(choose_route(rows_of(64, 31, 80)), chosen(route::ldgsts, route_reason::too_small));
  EXPECT_EQ(choose_route(rows_of(60, 1000, 80)), chosen(route::ldgsts, route_reason::too_small));
}

TEST(choose_route, too_small_for_anything_of_the_copy_engine) {
  EXPECT_EQ(choose_route(tensor_layout{base, 4, 1, {255}, {}}), chosen(route::ldgsts, route_reason::too_small));
  EXPECT_EQ(choose_route(tensor_layout{base, 1, 1, {255}, {}}), chosen(route::plain, route_reason::too_small));
}

TEST(choose_route, misaligned) {
  EXPECT_EQ(choose_route(rows_of(2000, 9, 2048, base + 4)), chosen(route::ldgsts, route_reason::misaligned));
  EXPECT_EQ(choose_route(rows_of(2000, 9, 2052)), chosen(route::ldgsts, route_reason::misaligned));
  EXPECT_EQ(choose_route(rows_of(2000, 9, 2050)), chosen(route::plain, route_reason::misaligned));
  EXPECT_EQ(choose_route(rows_of(2001, 9, 2052)), chosen(route::plain, route_reason::misaligned));
  EXPECT_EQ(choose_route(rows_of(2000, 9, 2048, base + 1)), chosen(route::plain, route_reason::misaligned));
}

TEST(choose_route, elements_without_maps) {
  for (const std::uint32_t bytes : {3u, 12u, 16u}) {
    const tensor_layout tensor{base, bytes, 2, {16, 100}, {512}};
    EXPECT_EQ(choose_route(tensor), chosen(route::ldgsts, route_reason::misaligned)) << bytes;
  }
}

TEST(choose_route, extents_that_no_map_holds) {
  constexpr std::uint64_t two_31 = std::uint64_t{1} << 31;
  constexpr std::uint64_t two_40 = std::uint64_t{1} << 40;
  EXPECT_EQ(choose_route(rows_of(512, two_31, 1024)), chosen(route::tensor_map, route_reason::best));
  EXPECT_EQ(choose_route(rows_of(512, two_31 + 1, 1024)), chosen(route::ldgsts, route_reason::extent_too_large));
  EXPECT_EQ(choose_route(rows_of(512, 9, two_40 - 16)), chosen(route::tensor_map, route_reason::best));
  EXPECT_EQ(choose_route(rows_of(512, 9, two_40)), chosen(route::ldgsts, route_reason::extent_too_large));
}

TEST(choose_route, disabled_by_policy_only_where_the_copy_engine_would_have_been_chosen) {
  const route_options disabled{route_policy::disable, all_routes};
  EXPECT_EQ(choose_route(rows_of(2048, 9, 4096), disabled), chosen(route::ldgsts, route_reason::disabled_by_policy));
  EXPECT_EQ(choose_route(rows_of(512, 9, 4096), disabled), chosen(route::ldgsts, route_reason::disabled_by_policy));
  EXPECT_EQ(choose_route(rows_of(2048, 9, 4098), disabled), chosen(route::plain, route_reason::misaligned));
  EXPECT_EQ(choose_route(rows_of(60, 2, 64), disabled), chosen(route::ldgsts, route_reason::too_small));
}

TEST(choose_route, force_looks_at_no_sizes_of_gain) {
  const route_options forced{route_policy::force, all_routes};
  EXPECT_EQ(choose_route(rows_of(4, 3, 16), forced), chosen(route::tensor_map, route_reason::best));
  EXPECT_EQ(choose_route(tensor_layout{base, 3, 2, {6, 3}, {32}}, forced),
            chosen(route::bulk, route_reason::misaligned));
  EXPECT_EQ(choose_route(tensor_layout{base, 3, 2, {5, 3}, {32}}, forced),
            chosen(route::plain, route_reason::misaligned));
  EXPECT_EQ(choose_route(rows_of(2048, 3, 4096), forced), chosen(route::bulk, route_reason::best));
}

TEST(choose_route, allowed_routes_only) {
  const auto allow = [](route way) { return route_options{route_policy::enable, route_bit(way)}; };
  const tensor_layout tensor = rows_of(2048, 9, 4096);
  EXPECT_EQ(choose_route(tensor, allow(route::bulk)), chosen(route::bulk, route_reason::best));
  EXPECT_EQ(choose_route(tensor, allow(route::tensor_map)), chosen(route::tensor_map, route_reason::not_allowed));
  EXPECT_EQ(choose_route(tensor, allow(route::ldgsts)), chosen(route::ldgsts, route_reason::not_allowed));
  EXPECT_EQ(choose_route(tensor, allow(route::plain)), chosen(route::plain, route_reason::not_allowed));
  EXPECT_EQ(choose_route(tensor, {route_policy::enable, {}}), chosen(route::plain, route_reason::not_allowed));
}

TEST(choose_route, a_spec_is_its_layout) {
  const std::uint64_t dims[] = {100, 30};
  const std::uint32_t box[] = {16, 8};
  tensor_spec spec = packed_spec(element_type::f32, base, dims, box);
  EXPECT_EQ(choose_route(spec), chosen(route::bulk, route_reason::best));
  spec.global_stride_bytes[0] = 416;
  EXPECT_EQ(choose_route(spec), chosen(route::tensor_map, route_reason::best));
  spec.global_stride_bytes[0] = 404;
  EXPECT_EQ(choose_route(spec), chosen(route::ldgsts, route_reason::misaligned));
  tensor_spec fours = packed_spec(element_type::u4_align8, base, dims, box);
  fours.global_stride_bytes[0] = 2048;
  for (const std::uint64_t columns : {1024, 2046}) {
    fours.global_dim[0] = columns;
    EXPECT_EQ(choose_route(fours), chosen(route::tensor_map, route_reason::best))
        << "rows of " << columns / 2 << " bytes";
  }
  fours.global_dim[0] = detail::bulk_row_bytes * 2;
  EXPECT_EQ(choose_route(fours), chosen(route::bulk, route_reason::best));
}

/// Returns the facts of a map of one side, with rows of `columns` elements.
detail::route_facts map_facts(std::uint64_t columns, bool is_destination, std::uint64_t element_bytes = 4,
                              std::uint64_t pitch = 4096, std::uint64_t address = base) {
  const std::uint64_t dim[max_rank] = {columns, 30, 1, 1, 1};
  const std::uint64_t stride[max_rank - 1] = {pitch};
  detail::route_facts facts;
  detail::add_map_facts(facts, address, element_bytes, dim, stride, is_destination);
  return facts;
}

TEST(route_facts, rows_of_a_destination_are_whole_units) {
  const auto is_aligned = [](const detail::route_facts& facts) { return facts.map_bits % detail::bulk_unit == 0; };
  EXPECT_TRUE(is_aligned(map_facts(100, false)));
  EXPECT_TRUE(is_aligned(map_facts(100, true)));
  EXPECT_TRUE(is_aligned(map_facts(101, false))) << "a load ends anywhere";
  EXPECT_FALSE(is_aligned(map_facts(101, true))) << "a store would go on to the next unit";
  EXPECT_FALSE(is_aligned(map_facts(100, false, 4, 4100)));
  EXPECT_FALSE(is_aligned(map_facts(100, false, 4, 4096, base + 4)));
}

TEST(route_facts, what_a_map_holds) {
  for (const std::uint64_t bytes : {1, 2, 4, 8}) EXPECT_TRUE(map_facts(16, false, bytes).has_map_element) << bytes;
  for (const std::uint64_t bytes : {0, 3, 6, 12, 16})
    EXPECT_FALSE(map_facts(16, false, bytes).has_map_element) << bytes;
  EXPECT_TRUE(map_facts(detail::max_copied_dim, false, 1).has_map_extents);
  EXPECT_FALSE(map_facts(detail::max_copied_dim + 1, false, 1).has_map_extents) << "axis 0, too";
  EXPECT_TRUE(map_facts(16, false, 4, detail::global_stride_limit - 16).has_map_extents);
  EXPECT_FALSE(map_facts(16, false, 4, detail::global_stride_limit).has_map_extents);
}

/// Both orders are tested, because each side may be the worse one.
TEST(route_facts, of_two_sides_hold_for_both) {
  detail::route_facts good;
  good.row_bytes = 4096;
  good.bytes = 8192;
  good.has_map_element = good.has_map_extents = true;
  detail::route_facts bad;
  bad.row_bytes = 64;
  bad.bytes = 128;
  bad.folded_bits = 1;
  bad.row_bits = 2;
  bad.map_bits = 4;
  for (const bool is_first : {false, true}) {
    const detail::route_facts both = is_first ? join(bad, good) : join(good, bad);
    EXPECT_EQ(both.row_bytes, 64u);
    EXPECT_EQ(both.bytes, 128u);
    EXPECT_EQ(both.folded_bits, 1u);
    EXPECT_EQ(both.row_bits, 2u);
    EXPECT_EQ(both.map_bits, 4u);
    EXPECT_FALSE(both.has_map_element);
    EXPECT_FALSE(both.has_map_extents);
  }
  EXPECT_TRUE(join(good, good).has_map_element);
  EXPECT_TRUE(join(good, good).has_map_extents);
}

using dims = std::array<std::uint64_t, max_rank>;

/// Returns the folded dims of a tensor that has only the given gaps on both sides. Keeps its lowest
/// `kept` axes.
dims folded(const dims& of, std::uint32_t kept, std::uint64_t source_gap = 0, std::uint64_t destination_gap = 0) {
  detail::two_sided t{{}, {}, {}, 4, 8};
  std::uint64_t elements = 1;
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    t.dim[axis] = of[axis];
    elements *= of[axis];
    if (axis + 1 == max_rank) break;
    t.source_stride[axis] = elements * 4 + (axis == 1 ? source_gap : 0);
    t.destination_stride[axis] = elements * 8 + (axis == 1 ? destination_gap : 0);
  }
  detail::fold(t, kept);
  dims left{};
  std::copy(t.dim, t.dim + max_rank, left.begin());
  return left;
}

TEST(fold, joins_what_follows_without_a_gap_on_both_sides) {
  EXPECT_EQ(folded({8, 4, 2, 3, 5}, 0), (dims{960, 1, 1, 1, 1}));
  EXPECT_EQ(folded({8, 1, 1, 3, 1}, 0), (dims{24, 1, 1, 1, 1}));
  EXPECT_EQ(folded({8, 4, 2, 1, 1}, 0, 16), (dims{32, 2, 1, 1, 1})) << "a gap in the source";
  EXPECT_EQ(folded({8, 4, 2, 1, 1}, 0, 0, 16), (dims{32, 2, 1, 1, 1})) << "a gap in the destination";
}

TEST(fold, leaves_the_kept_axes_as_they_are) {
  EXPECT_EQ(folded({8, 4, 2, 3, 5}, 1), (dims{8, 120, 1, 1, 1}));
  EXPECT_EQ(folded({8, 4, 2, 3, 5}, 2), (dims{8, 4, 30, 1, 1}));
  EXPECT_EQ(folded({8, 1, 2, 3, 1}, 2), (dims{8, 1, 6, 1, 1})) << "a kept axis of one element";
  EXPECT_EQ(folded({1, 1, 1, 1, 1}, 2), (dims{1, 1, 1, 1, 1}));
  EXPECT_EQ(folded({8, 4, 1, 3, 1}, 2), (dims{8, 4, 3, 1, 1})) << "and one that is not kept";
}

/// For a layout of random bits, the result must at least be an allowed route with an alignment that
/// it supports.
TEST(choose_route, any_bits_get_a_route_that_can_move_them) {
  random_source random(31);
  std::uint64_t taken[route_count]{};
  for (int trial = 0; trial < 300000; ++trial) {
    const route_case each = random_route_case(random);
    const route_choice choice = choose_route(each.tensor, each.options);
    ++taken[static_cast<std::uint32_t>(choice.way)];
    if (choice.way == route::plain) continue;
    ASSERT_TRUE(each.options.allowed.contains(choice.way));
    ASSERT_EQ(each.tensor.address % (choice.way == route::ldgsts ? 4 : 16), 0u);
    const bool is_engine = choice.way != route::ldgsts;
    ASSERT_FALSE(is_engine && each.options.policy == route_policy::disable);
  }
  for (const std::uint64_t count : taken) EXPECT_GT(count, 1000u);
}

TEST(choose_route, names) {
  EXPECT_STREQ(name(route::tensor_map), "tensor_map");
  EXPECT_STREQ(name(route::bulk), "bulk");
  EXPECT_STREQ(name(route::ldgsts), "ldgsts");
  EXPECT_STREQ(name(route::plain), "plain");
  EXPECT_STREQ(name(static_cast<route>(9)), "invalid");
  EXPECT_STREQ(name(route_reason::too_small), "too small");
  EXPECT_STREQ(name(route_reason::extent_too_large), "extent too large");
  EXPECT_STREQ(name(static_cast<route_reason>(9)), "invalid");
}

class policy : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const setting = std::getenv("TMAP_POLICY");
    had_ = setting != nullptr;
    before_ = had_ ? setting : "";
  }
  void TearDown() override {
    if (had_) setenv("TMAP_POLICY", before_.c_str(), 1);
    if (!had_) unsetenv("TMAP_POLICY");
  }

 private:
  bool had_{};
  std::string before_;
};

TEST_F(policy, of_the_environment) {
  unsetenv("TMAP_POLICY");
  EXPECT_EQ(policy_from_environment().value(), route_policy::enable);
  setenv("TMAP_POLICY", "enable", 1);
  EXPECT_EQ(policy_from_environment().value(), route_policy::enable);
  setenv("TMAP_POLICY", "disable", 1);
  EXPECT_EQ(policy_from_environment().value(), route_policy::disable);
  setenv("TMAP_POLICY", "force", 1);
  EXPECT_EQ(policy_from_environment().value(), route_policy::force);
}

TEST_F(policy, is_read_for_rows_on_the_host) {
  setenv("TMAP_POLICY", "on", 1);
  const std::int32_t row = 0;
  const float from[4]{1, 2, 3, 4};
  float to[4]{};
  const ragged::row_matrix source{from, 1, 16, 16};
  const ragged::row_matrix destination{to, 1, 16, 16};
  const ragged::row_index index{&row, 1, 4};
  expect_refused(ragged::gather_rows(source, index, destination, {on_host{}}), "TMAP_POLICY", "gather");
  expect_refused(ragged::scatter_rows(source, index, destination, {on_host{}}), "TMAP_POLICY", "scatter");
  EXPECT_EQ(to[0], 0);
}

TEST_F(policy, other_words_are_refused) {
  for (const char* const word : {"", "Enable", "on", "force "}) {
    setenv("TMAP_POLICY", word, 1);
    const result<route_policy> answer = policy_from_environment();
    expect_refused(answer, "TMAP_POLICY", word);
  }
}

}  // namespace
}  // namespace testing
}  // namespace tmap
