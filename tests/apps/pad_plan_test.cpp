// SPDX-License-Identifier: Apache-2.0
// Tests the plan of a batch against numbers worked out by hand.
#include "apps/tmap/pad/plan.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "apps/tmap/pad/report.hpp"

namespace tmap::tool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t plan_budget = std::uint64_t{1} << 33;

tensor shaped(dtype type, shape_t shape) {
  tensor made;
  made.type = type;
  made.shape = std::move(shape);
  return made;
}

outcome<batch_plan> plan_all(dtype type, const std::vector<shape_t>& shapes, plan_options options = {}) {
  std::vector<tensor> tensors;
  std::vector<std::size_t> members;
  for (const shape_t& shape : shapes) {
    members.push_back(tensors.size());
    tensors.push_back(shaped(type, shape));
  }
  if (options.most_bytes == 0) options.most_bytes = plan_budget;
  return plan_batch(tensors, members, options);
}

std::vector<std::uint64_t> dims(const batch_plan& plan, std::size_t member) {
  const map_patch& source = plan.sources[member];
  return {source.global_dim, source.global_dim + plan.rank()};
}

std::vector<std::uint64_t> strides(const batch_plan& plan, std::size_t member) {
  const map_patch& source = plan.sources[member];
  return {source.global_stride_bytes, source.global_stride_bytes + plan.rank() - 1};
}

std::vector<std::uint64_t> dense_dims(const batch_plan& plan) {
  const dense_batch batch = plan.batch_at(0);
  return {batch.dim, batch.dim + plan.rank()};
}

TEST(group, equal_type_and_rank_and_pictures_apart) {
  std::vector<tensor> tensors{shaped(dtype::f32, {2, 3}), shaped(dtype::f16, {2, 3}), shaped(dtype::f32, {9}),
                              shaped(dtype::f32, {5, 1}), shaped(dtype::f32, {}),     shaped(dtype::f32, {8, 8})};
  tensors.back().picture = true;
  EXPECT_THAT(group(tensors), ElementsAre(ElementsAre(0, 3), ElementsAre(1), ElementsAre(2, 4), ElementsAre(5)));
}

TEST(batch_shape, largest_smallest_or_asked) {
  const std::vector<shape_t> shapes{{4, 9, 3}, {7, 2, 3}};
  plan_options options;
  EXPECT_THAT(batch_shape(shapes, options), ElementsAre(7, 9, 3));
  options.crop = {5, 5};
  EXPECT_THAT(batch_shape(shapes, options), ElementsAre(7, 9, 3)) << "a crop for another rank has no effect";
  options.crop = {8, 1, 3};
  EXPECT_THAT(batch_shape(shapes, options), ElementsAre(8, 1, 3));
  options.crop = {};
  options.crop_to_smallest = true;
  EXPECT_THAT(batch_shape(shapes, options), ElementsAre(4, 2, 3));
}

TEST(fold, equal_axes_join_the_axis_outside) {
  EXPECT_THAT(fold({{4, 9, 3}, {7, 2, 3}}, {7, 9, 3}), ElementsAre(axis_run{0, 0}, axis_run{1, 2}));
  EXPECT_THAT(fold({{4, 9, 3}, {4, 9, 3}}, {4, 9, 3}), ElementsAre(axis_run{0, 2}));
  EXPECT_THAT(fold({{4, 9, 3}, {4, 9, 3}}, {4, 9, 4}), ElementsAre(axis_run{0, 1}, axis_run{2, 2}))
      << "padded axes stay separate";
  EXPECT_THAT(fold({{2, 5, 6, 8}, {3, 5, 7, 8}}, {3, 5, 7, 8}), ElementsAre(axis_run{0, 1}, axis_run{2, 3}));
  EXPECT_THAT(fold({{5}}, {5}), ElementsAre(axis_run{0, 0}));
}

TEST(fold, keeps_each_extent_within_that_of_an_operation) {
  const std::uint64_t wide = std::uint64_t{1} << 39;
  EXPECT_THAT(fold({{wide, 2}}, {wide, 2}), ElementsAre(axis_run{0, 1}));
  EXPECT_THAT(fold({{wide, 3}}, {wide, 3}), ElementsAre(axis_run{0, 0}, axis_run{1, 1}));
}

TEST(fold, turns_the_order_round) {
  EXPECT_THAT(innermost_first({7, 9, 3}, {{0, 0}, {1, 2}}), ElementsAre(27, 7));
  EXPECT_THAT(innermost_first({2, 3, 4}, {{0, 0}, {1, 1}, {2, 2}}), ElementsAre(4, 3, 2));
}

TEST(plan, two_pictures) {
  const auto plan = plan_all(dtype::u8, {{4, 9, 3}, {7, 16, 3}});
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_EQ(plan->name, "batch_u8_rank3");
  EXPECT_THAT(plan->shape, ElementsAre(7, 16, 3));
  EXPECT_EQ(plan->rank(), 2u);
  EXPECT_THAT(dims(*plan, 0), ElementsAre(27, 4));
  EXPECT_THAT(strides(*plan, 0), ElementsAre(27)) << "as in the file";
  EXPECT_EQ(plan->sources[1].global_address, 128u) << "4 rows of 27 bytes, to a multiple of 128";
  EXPECT_EQ(plan->source_bytes, 128u + 384u);
  EXPECT_THAT(dense_dims(*plan), ElementsAre(48, 7));
  EXPECT_EQ(plan->dense_bytes, 2u * 7 * 16 * 3);
  EXPECT_EQ(plan->valid_bytes, 4u * 9 * 3 + 7 * 16 * 3);
}

TEST(plan, places_of_sources_and_batch) {
  const auto plan = plan_all(dtype::f16, {{4, 9}, {7, 0}, {7, 16}});
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_FALSE(plan->is_empty(0));
  EXPECT_TRUE(plan->is_empty(1));
  const std::vector<map_patch> sources = plan->sources_at(1 << 20);
  ASSERT_EQ(sources.size(), 3u);
  EXPECT_EQ(sources[0].global_address, 1u << 20);
  EXPECT_EQ(sources[2].global_address, (1u << 20) + 128);
  const tensor_batch described = plan->described(sources.data(), array_side::host);
  EXPECT_EQ(described.count, 3u);
  EXPECT_EQ(described.element_bytes, 2u);
  EXPECT_EQ(described.rank, 2u);
  EXPECT_EQ(described.side, array_side::host);
  EXPECT_EQ(std::get<patch_array>(described.tensors).patches, sources.data());
  EXPECT_EQ(plan->batch_at(77).address, 77u);
}

TEST(plan, rank_five_and_more) {
  const auto five = plan_all(dtype::f16, {{2, 3, 4, 5, 6}, {3, 4, 5, 6, 7}});
  ASSERT_TRUE(five) << five.error();
  EXPECT_THAT(dense_dims(*five), ElementsAre(7, 6, 5, 4, 3));
  EXPECT_THAT(strides(*five, 1), ElementsAre(14, 84, 420, 1680));
  const auto seven = plan_all(dtype::f32, {{2, 9, 3, 4, 2, 5, 2}, {2, 9, 3, 6, 2, 8, 2}});
  ASSERT_TRUE(seven) << seven.error();
  EXPECT_THAT(dims(*seven, 0), ElementsAre(10, 8, 54)) << "5*2, 4*2, 2*9*3";
  const auto six = plan_all(dtype::f32, {{1, 2, 3, 4, 5, 6}, {2, 3, 4, 5, 6, 7}});
  ASSERT_FALSE(six);
  EXPECT_THAT(six.error(), HasSubstr("6 of its dimensions differ"));
}

TEST(plan, crop_cuts_and_pads) {
  plan_options options;
  options.crop = {5, 20};
  const auto plan = plan_all(dtype::u8, {{4, 9}, {7, 30}}, options);
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_EQ(plan->dense_bytes, 200u);
  EXPECT_EQ(plan->valid_bytes, 4u * 9 + 5 * 20);
}

TEST(report, has_each_time_under_its_name) {
  const auto plan = plan_all(dtype::u8, {{2, 3}});
  ASSERT_TRUE(plan) << plan.error();
  run_record record;
  record.tensors = {shaped(dtype::u8, {2, 3})};
  record.batches.push_back({*plan, "batch.npy", {1, 2, 3}, 4});
  const auto seconds = nlohmann::json::parse(report_json(record))["batches"][0]["seconds"];
  EXPECT_EQ(seconds, nlohmann::json({{"upload", 1.0}, {"copy", 2.0}, {"download", 3.0}, {"check", 4.0}}));
}

TEST(plan, refuses_with_the_numbers) {
  plan_options small;
  small.most_bytes = 1000;
  EXPECT_THAT(plan_all(dtype::f32, {{10, 20}, {20, 10}}, small).error(),
              HasSubstr("needs 3200 bytes, --max-bytes allows 1000"));
  EXPECT_THAT(plan_all(dtype::u8, {{300, 1}, {1, 3}}, small).error(), HasSubstr("--max-bytes allows 1000"));
  small.most_bytes = 2 * 32 * 32 * 4;
  EXPECT_TRUE(plan_all(dtype::f32, {{8, 32}, {32, 8}}, small)) << "exactly as many as are allowed";
  --small.most_bytes;
  EXPECT_THAT(plan_all(dtype::f32, {{8, 32}, {32, 8}}, small).error(),
              HasSubstr("needs 8192 bytes, --max-bytes allows 8191"));
  const std::uint64_t huge = std::uint64_t{1} << 40;
  EXPECT_THAT(plan_all(dtype::u8, {{huge, 1}, {1, huge}}).error(), HasSubstr("larger than any memory"));
  plan_options wide;
  wide.crop = {std::uint64_t{1} << 56};
  EXPECT_THAT(plan_all(dtype::u8, std::vector<shape_t>(256, {1}), wide).error(), HasSubstr("larger than any memory"))
      << "all slices together have 2^64 bytes";
}

}  // namespace
}  // namespace tmap::tool
