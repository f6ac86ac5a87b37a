// SPDX-License-Identifier: Apache-2.0
// Tests the planning of tensors with dims of 2^40 and 2^47 bytes, which does not touch their
// memory. Every field, piece and end equals those of a planner in 128 bits.
#include "ragged/large_sides.hpp"
#include "ragged/plan_case.hpp"

namespace tmap::testing {
namespace {

using plan_device = gpu_test;

device_array<map_patch> upload(const std::vector<plain_side>& sides) {
  std::vector<map_patch> patches(sides.size());
  for (std::size_t i = 0; i < sides.size(); ++i) {
    patches[i].global_address = sides[i].address;
    std::copy(sides[i].dim.begin(), sides[i].dim.end(), patches[i].global_dim);
    std::copy(sides[i].stride.begin(), sides[i].stride.end(), patches[i].global_stride_bytes);
  }
  return device_array<map_patch>(patches);
}

void expect_large_planned(std::uint64_t count, std::uint32_t element_bytes, std::uint32_t rank,
                          std::uint32_t piece_elements, plan_census& census) {
  random_source random(element_bytes * 100 + rank * 10 + piece_elements % 10);
  const auto most_bytes = static_cast<std::uint64_t>(slow::most_bytes(count));
  plan_case each;
  each.request.count = count;
  each.request.rank = rank;
  each.request.relation = each.rules.relation = shape_relation::equal;
  for (std::uint64_t i = 0; i < each.request.count; ++i) {
    const std::vector<std::uint64_t> dims = large_dims(random, rank, element_bytes, most_bytes);
    const std::uint64_t odd = random.one_in(3) ? element_bytes : 0;
    each.sources.push_back(large_side(random, dims, element_bytes, (std::uint64_t{1} << 50) + odd));
    each.destinations.push_back(large_side(random, dims, element_bytes, std::uint64_t{1} << 55));
  }
  const device_array<map_patch> patches[2] = {upload(each.sources), upload(each.destinations)};
  const auto side_of = [&](int which) {
    kernels::side side{};
    side.kind = side_kind::tensors;
    side.tensors = {
        patch_array{patches[which].data()}, each.request.count, element_bytes, rank, {}, array_side::device};
    return side;
  };
  each.request.source = side_of(0);
  each.request.destination = side_of(1);
  each.rules.source_element = each.rules.destination_element = element_bytes;
  each.rules.rule.piece_elements = piece_elements;
  each.request.rule = each.rules.rule;
  each.rules.routes.allowed = each.request.routes.allowed = all_routes.without(route::tensor_map);
  expect_planned(each, census);
}

TEST_F(plan_device, the_largest_tensors) {
  plan_census census;
  for (const std::uint32_t element_bytes : {1u, 2u, 4u, 8u, 16u}) {
    for (const std::uint32_t rank : {2u, 3u}) {
      for (const std::uint32_t piece_elements : {1u, 1000u, 4096u}) {
        expect_large_planned(300, element_bytes, rank, piece_elements, census);
        ASSERT_FALSE(HasFailure()) << element_bytes << " bytes, rank " << rank << ", pieces of " << piece_elements;
      }
    }
  }
  EXPECT_GT(census.good, 3000u);
  EXPECT_GT(census.bad, 300u);
  EXPECT_NE(census.faults & slow::bit(ragged::fault::dim), 0u);
}

/// The sums of their pieces exceed 2^62.
TEST_F(plan_device, the_largest_tensors_of_large_batches) {
  plan_census census;
  for (const std::uint64_t count : {std::uint64_t{1} << 16, std::uint64_t{1} << 18}) {
    expect_large_planned(count, 1, 2, 1, census);
    ASSERT_FALSE(HasFailure()) << count << " tensors";
  }
  EXPECT_GT(census.good, 100000u);
  EXPECT_GT(census.bad, 10000u);
}

}  // namespace
}  // namespace tmap::testing
