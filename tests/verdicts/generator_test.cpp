// SPDX-License-Identifier: Apache-2.0
// Tests the input of the judges: enough of everything, and both sides of every limit.
#include <gtest/gtest.h>

#include <iostream>

#include "support/patch_cases.hpp"
#include "verdicts/populations.hpp"
#include "verdicts/verdict_book.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t blocks = 128;
constexpr std::uint64_t often = 50;

/// Calls `visit(context, item, verdict)` for the items of `blocks` blocks and counts their
/// verdicts.
template <class Population, class Visit>
verdict_book generate(const Visit& visit) {
  verdict_book book;
  for (std::uint64_t block = 0; block < blocks; ++block) {
    block_source<Population> source{block};
    for (std::uint64_t i = 0; i < block_items; ++i) {
      const typename Population::item item = source.next();
      const std::uint64_t verdict = Population::judge(source.shared(), item);
      book.add(verdict);
      visit(source.shared(), item, verdict);
    }
  }
  return book;
}

template <class Population>
std::uint64_t count_judged_apart() {
  std::uint64_t apart = 0;
  generate<Population>([&](const auto& shared, const auto& item, std::uint64_t verdict) {
    apart += verdict != Population::judge_whole(shared, item);
  });
  return apart;
}

template <class Population>
verdict_book expect_shares(std::initializer_list<rule> alone) {
  const verdict_book book = generate<Population>([](const auto&...) {});
  std::cout << book.report(Population::name);
  EXPECT_GE(2 * book.refused(), book.judged()) << "at least half break a rule";
  EXPECT_GE(4 * (book.judged() - book.refused()), book.judged()) << "at least a quarter break none";
  EXPECT_GE(4 * book.broken_alone(), book.judged()) << "at least a quarter break just one";
  for (const rule id : alone) EXPECT_GE(book.alone(id), often) << info(id).name;
  return book;
}

TEST(verdict_generator, patches_break_each_rule_alone) {
  const verdict_book book = expect_shares<patch_population>({rule::t38_address_window});
  for (const rule id : patchable_rules) EXPECT_GE(book.alone(id), often) << info(id).name;
  EXPECT_GE(100 * book.empty(), book.judged());
}

TEST(verdict_generator, tiled_specs_break_each_rule_alone) {
  expect_shares<tiled_population>({rule::t02_element_type,
                                   rule::t03_rank,
                                   rule::t04_interleave_rank,
                                   rule::t05_address_null,
                                   rule::t06_address_multiple_of_16,
                                   rule::t07_address_interleave_32,
                                   rule::t08_address_packed_type,
                                   rule::t09_global_dim_range,
                                   rule::t13_stride_multiple_of_16,
                                   rule::t14_stride_range,
                                   rule::t15_stride_multiple_of_32,
                                   rule::t17_box_dim_range,
                                   rule::t18_inner_box_multiple_of_16,
                                   rule::t20_element_stride_range,
                                   rule::t21_interleave_value,
                                   rule::t22_inner_box_swizzle_32,
                                   rule::t23_inner_box_swizzle_64,
                                   rule::t24_inner_box_swizzle_128,
                                   rule::t25_interleave_32_swizzle,
                                   rule::t26_swizzle_u6,
                                   rule::t27_swizzle_u4,
                                   rule::t28_swizzle_value,
                                   rule::t29_l2_promotion_value,
                                   rule::t30_oob_fill,
                                   rule::t33_address_range,
                                   rule::t34_extent_range,
                                   rule::t36_global_dim_copied,
                                   rule::t37_box_bytes});
}

TEST(verdict_generator, im2col_specs_break_each_rule_alone) {
  expect_shares<im2col_population>(
      {rule::i01_rank, rule::i02_lower_corner_range, rule::i03_upper_corner_range, rule::i04_box_area,
       rule::i05_channels_range, rule::i06_pixels_range, rule::t05_address_null, rule::t18_inner_box_multiple_of_16,
       rule::t25_interleave_32_swizzle, rule::t34_extent_range, rule::t36_global_dim_copied, rule::t37_box_bytes});
}

// The host has two ways to a verdict. One knows what a patch can change and takes short cuts.
TEST(verdict_generator, the_host_judges_alike_in_both_ways) {
  EXPECT_EQ(count_judged_apart<patch_population>(), 0u);
  EXPECT_EQ(count_judged_apart<tiled_population>(), 0u);
  EXPECT_EQ(count_judged_apart<im2col_population>(), 0u);
}

TEST(verdict_generator, a_block_comes_out_the_same_again) {
  block_source<patch_population> first{5};
  block_source<patch_population> again{5};
  for (std::uint64_t i = 0; i < block_items; ++i) {
    const map_patch a = first.next();
    const map_patch b = again.next();
    ASSERT_EQ(std::memcmp(&a, &b, sizeof a), 0) << i;
  }
}

/// Describes one limit, with the specs just inside and just outside of it.
struct edge {
  rule id;
  const char* what;
  bool (*inside)(const tensor_spec&);
  bool (*outside)(const tensor_spec&);
  std::uint64_t legal{};
  std::uint64_t broken{};
};

template <class Numbers, class Value>
bool any_equals(const tensor_spec& spec, const Numbers& numbers, std::uint32_t count, Value value) {
  for (std::uint32_t i = 0; i < count && i < detail::readable_rank(spec); ++i) {
    if (numbers[i] == value) return true;
  }
  return false;
}

template <std::uint64_t Value>
bool has_dim(const tensor_spec& spec) {
  return any_equals(spec, spec.global_dim, max_rank, Value);
}

template <std::uint64_t Value>
bool has_stride(const tensor_spec& spec) {
  return spec.rank > 1 && any_equals(spec, spec.global_stride_bytes, spec.rank - 1, Value);
}

template <std::uint32_t Value>
bool has_box(const tensor_spec& spec) {
  return any_equals(spec, spec.box_dim, max_rank, Value);
}

template <std::uint32_t Value>
bool has_element_stride(const tensor_spec& spec) {
  return any_equals(spec, spec.element_stride, max_rank, Value);
}

template <swizzle Mode, std::uint32_t Bytes>
bool has_inner_box(const tensor_spec& spec) {
  return spec.swizzle == Mode && spec.interleave == interleave::none &&
         element_bytes(spec.type, spec.box_dim[0]) == Bytes;
}

std::uint64_t end_of(const tensor_spec& spec) {
  return detail::saturate(spec.global_address + detail::reach_bytes(spec, detail::readable_rank(spec)));
}

std::vector<edge> edges() {
  using spec = const tensor_spec&;
  constexpr std::uint64_t top = detail::address_limit;
  return {
      {rule::t03_rank, "rank 1 and 0", [](spec s) { return s.rank == 1; }, [](spec s) { return s.rank == 0; }},
      {rule::t03_rank, "rank 5 and 6", [](spec s) { return s.rank == 5; }, [](spec s) { return s.rank == 6; }},
      {rule::t06_address_multiple_of_16, "a multiple of 16 and of 8",
       [](spec s) { return s.global_address % 32 == 16; }, [](spec s) { return s.global_address % 16 == 8; }},
      {rule::t33_address_range, "address", [](spec s) { return s.global_address >= top - 4096; },
       [](spec s) { return s.global_address == top; }},
      {rule::t34_extent_range, "end", [](spec s) { return end_of(s) == top; },
       [](spec s) { return end_of(s) > top && end_of(s) <= top + 16; }},
      {rule::t09_global_dim_range, "dim 1 and 0", has_dim<1>, has_dim<0>},
      {rule::t36_global_dim_copied, "dim 2^31", has_dim<1ull << 31>, has_dim<(1ull << 31) + 1>},
      {rule::t09_global_dim_range, "dim 2^32 + 1", has_dim<(1ull << 31) - 1>, has_dim<(1ull << 32) + 1>},
      {rule::t36_global_dim_copied, "dim 2^32", has_dim<1ull << 31>, has_dim<1ull << 32>},
      {rule::t14_stride_range, "stride", has_stride<(1ull << 40) - 16>, has_stride<1ull << 40>},
      {rule::t17_box_dim_range, "box 1 and 0", has_box<1>, has_box<0>},
      {rule::t17_box_dim_range, "box 256 and 257", has_box<256>, has_box<257>},
      {rule::t20_element_stride_range, "step 1 and 0", has_element_stride<1>, has_element_stride<0>},
      {rule::t20_element_stride_range, "step 8 and 9", has_element_stride<8>, has_element_stride<9>},
      {rule::t22_inner_box_swizzle_32, "32 bytes", has_inner_box<swizzle::bytes_32, 32>,
       has_inner_box<swizzle::bytes_32, 48>},
      {rule::t23_inner_box_swizzle_64, "64 bytes", has_inner_box<swizzle::bytes_64, 64>,
       has_inner_box<swizzle::bytes_64, 80>},
      {rule::t24_inner_box_swizzle_128, "128 bytes", has_inner_box<swizzle::bytes_128, 128>,
       has_inner_box<swizzle::bytes_128, 144>},
      {rule::t37_box_bytes, "228 KiB", [](spec s) { return counted_box_bytes(s) == detail::max_box_bytes; },
       [](spec s) { return counted_box_bytes(s) == detail::max_box_bytes / 57 * 58; }},
  };
}

/// A patch can change all but modes and ranks.
template <class Population>
void expect_both_sides(bool with_rank) {
  std::vector<edge> all = edges();
  generate<Population>([&](const auto& shared, const auto& item, std::uint64_t verdict) {
    const tensor_spec& spec = Population::question(shared, item);
    for (edge& each : all) {
      rule_set alone;
      alone.insert(each.id);
      const bool is_empty = verdict == map_status::empty_bit && each.id == rule::t09_global_dim_range;
      each.legal += verdict == 0 && each.inside(spec);
      each.broken += (verdict == alone.bits || is_empty) && each.outside(spec);
    }
  });
  for (const edge& each : all) {
    if (each.id == rule::t03_rank && !with_rank) continue;
    EXPECT_GE(each.legal, often) << info(each.id).name << ", " << each.what;
    EXPECT_GE(each.broken, often) << info(each.id).name << ", " << each.what;
  }
}

TEST(verdict_generator, patches_stand_on_both_sides_of_each_limit) {
  expect_both_sides<patch_population>(false);
}

TEST(verdict_generator, tiled_specs_stand_on_both_sides_of_each_limit) {
  expect_both_sides<tiled_population>(true);
}

TEST(verdict_generator, patches_stand_on_both_sides_of_their_window) {
  std::uint64_t touch = 0;
  std::uint64_t cross = 0;
  generate<patch_population>([&](const auto& shared, const auto& item, std::uint64_t verdict) {
    if (shared.window_count != 1) return;
    const std::uint64_t end = (end_of(patch_population::question(shared, item)) + 15) / 16 * 16;
    const std::uint64_t limit = shared.windows[0].end;
    rule_set outside;
    outside.insert(rule::t38_address_window);
    touch += verdict == 0 && end <= limit && limit < end + 16;
    cross += verdict == outside.bits && end > limit && end <= limit + 16;
  });
  EXPECT_GE(touch, often);
  EXPECT_GE(cross, often);
}

}  // namespace
}  // namespace tmap::testing
