// SPDX-License-Identifier: Apache-2.0
// Compares the results of the planning kernel with those of a slow planner: statuses, header,
// boxes, routes, pieces. Uses every source, likely batches and random bits.
#include "device/gpu_fixture.hpp"
#include "kernels/launch.hpp"
#include "kernels/ragged_launch.hpp"
#include "ragged/hostile_sides.hpp"
#include "ragged/plan_case.hpp"
#include "support/ragged_upload.hpp"

#include <tmap/encode.hpp>
#include <tmap/encode_batch.hpp>

namespace tmap::testing {
namespace {

kernels::piece_rule random_rule(random_source& random) {
  kernels::piece_rule rule{};
  rule.piece_elements = 1 + random.below32(random.one_in(2) ? 64 : 8192);
  for (std::uint32_t& box : rule.box_dim) box = 1 + random.below32(64);
  return rule;
}

route_options random_routes(random_source& random) {
  const route_policy policy = random.pick({route_policy::enable, route_policy::disable, route_policy::force});
  // Without room for maps, no tensor may take them. The tests that use maps cover them.
  return {policy, random.one_in(2) ? all_routes : route_set{static_cast<std::uint32_t>(random.bits())}};
}

plain_side side_of(const host_batch& batch, std::uint64_t i, std::uint64_t memory) {
  plain_side side;
  side.address = memory + batch.tensors[i].begin;
  for (std::uint32_t k = 0; k < batch.rank; ++k) {
    side.dim.push_back(batch.tensors[i].shape.dim[k]);
    if (k > 0) side.stride.push_back(batch.tensors[i].stride[k - 1]);
  }
  return side;
}

kernels::side tensors_side(const tensor_batch& batch) {
  kernels::side side{};
  side.kind = side_kind::tensors;
  side.tensors = batch;
  return side;
}

void set_rules(plan_case& each, random_source& random) {
  each.rules.rule = random_rule(random);
  each.rules.routes = random_routes(random);
  each.rules.relation = each.request.relation;
  each.rules.kept_axes = each.request.kept_axes;
  each.request.rule = each.rules.rule;
  each.request.routes = each.rules.routes;
  each.rules.routes.allowed = each.rules.routes.allowed.without(route::tensor_map);
  each.rules.source_element = each.request.source.tensors.element_bytes;
  each.rules.destination_element = each.request.destination.tensors.element_bytes;
}

source_form random_form(random_source& random) {
  return static_cast<source_form>(random.below32(source_forms));
}

/// Computes the running sums of sizes, which the planning kernel expects from its caller.
class row_sums {
 public:
  row_sums(kernels::side& side, std::uint64_t count) : begins_(count), scratch_(count / 8 + 8) {
    std::visit([&](const auto& source) { sum(source, side, count); }, side.tensors.tensors);
  }

 private:
  template <class Source>
  void sum(const Source&, kernels::side&, std::uint64_t) {}
  void sum(const ragged_rows& rows, kernels::side& side, std::uint64_t count) {
    if (rows.offsets.format != offset_format::sizes) return;
    EXPECT_EQ(kernels::launch_running_sum(rows.offsets, begins_.data(), count, scratch_.data(), scratch_.bytes(),
                                          cudaStream_t{}),
              cudaSuccess);
    side.row_begins = begins_.data();
  }
  device_array<std::int64_t> begins_;
  device_array<std::uint64_t> scratch_;
};

using plan_device = gpu_test;

TEST_F(plan_device, likely_batches_from_every_source) {
  random_source random(41);
  plan_census census;
  for (std::uint64_t trial = 0; trial < scaled(600); ++trial) {
    const source_form forms[2] = {random_form(random), random_form(random)};
    const std::uint32_t rank = 1 + random.below32(max_rank);
    const std::uint32_t element = random.pick<std::uint32_t>({1, 2, 3, 4, 8, 12, 16});
    const std::uint64_t count = 1 + random.below(trial % 8 == 0 ? 3000 : 200);
    const shape_range range{rank, count, 1 + random.below(8000), is_rows(forms[0]) || is_rows(forms[1]), 9};
    std::vector<extents> shapes = random_shapes(random, range);
    const host_batch source = lay_out(random, shapes, rank, element, forms[0]);
    if (random.one_in(8) && !range.share_inner) shapes[random.below(count)].dim[0] += 1;
    const host_batch destination = lay_out(random, shapes, rank, element, forms[1]);
    const device_side from(source, forms[0], array_side::device);
    const device_side to(destination, forms[1], array_side::device);
    plan_case each;
    each.request.source = tensors_side(from.described());
    each.request.destination = tensors_side(to.described());
    each.request.count = count;
    each.request.rank = rank;
    each.request.relation = shape_relation::equal;
    each.request.kept_axes = random.below32(2);
    const row_sums source_sums(each.request.source, count);
    const row_sums destination_sums(each.request.destination, count);
    set_rules(each, random);
    for (std::uint64_t i = 0; i < count; ++i) {
      each.sources.push_back(side_of(source, i, from.memory().address()));
      each.destinations.push_back(side_of(destination, i, to.memory().address()));
    }
    if (random.one_in(4)) {
      const std::uint64_t begin = from.memory().address();
      each.rules.windows = {{begin, begin + random.below(2 * from.memory().bytes())},
                            {to.memory().address(), to.memory().address() + to.memory().bytes()}};
    }
    expect_planned(each, census);
    ASSERT_FALSE(HasFailure()) << "trial " << trial << ", rank " << rank << ", forms "
                               << static_cast<std::uint32_t>(forms[0]) << " and "
                               << static_cast<std::uint32_t>(forms[1]);
  }
  EXPECT_GT(census.good, scaled(10000));
  EXPECT_GT(census.empty, scaled(1000));
  EXPECT_GT(census.ways[static_cast<std::uint32_t>(route::bulk)], scaled(100));
  EXPECT_GT(census.ways[static_cast<std::uint32_t>(route::ldgsts)], scaled(1000));
  EXPECT_GT(census.ways[static_cast<std::uint32_t>(route::plain)], scaled(1000));
}

std::vector<map_patch> patches_of(const std::vector<plain_side>& sides) {
  std::vector<map_patch> patches(sides.size());
  for (std::size_t i = 0; i < sides.size(); ++i) {
    patches[i].global_address = sides[i].address;
    std::copy(sides[i].dim.begin(), sides[i].dim.end(), patches[i].global_dim);
    std::copy(sides[i].stride.begin(), sides[i].stride.end(), patches[i].global_stride_bytes);
  }
  return patches;
}

void run_hostile(shape_relation relation, std::uint32_t rank, std::uint64_t count, std::uint64_t seed,
                 plan_census& census) {
  random_source random(seed);
  plan_case each;
  each.request.count = count;
  each.request.rank = rank;
  each.request.relation = relation;
  each.request.kept_axes = relation == shape_relation::swapped ? 2 : relation == shape_relation::reduced ? 1 : 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto [source, destination] = hostile_pair(random, relation, rank);
    each.sources.push_back(source);
    each.destinations.push_back(destination);
  }
  const device_array<map_patch> source(patches_of(each.sources));
  const device_array<map_patch> destination(patches_of(each.destinations));
  const std::uint32_t elements[] = {random.pick<std::uint32_t>({1, 2, 4, 8}), random.pick<std::uint32_t>({1, 2, 4, 8})};
  for (const bool is_source : {true, false}) {
    tensor_batch batch;
    batch.tensors = patch_array{is_source ? source.data() : destination.data()};
    batch.count = count;
    batch.element_bytes = elements[is_source ? 0 : 1];
    batch.rank = rank;
    (is_source ? each.request.source : each.request.destination) = tensors_side(batch);
  }
  set_rules(each, random);
  if (random.one_in(2)) each.rules.windows = {{0, ~0ull}, {1 << 20, 1ull << 45}};
  if (random.one_in(2) && !each.rules.windows.empty()) each.rules.windows.erase(each.rules.windows.begin());
  // The function that counts squares has its own tests.
  expect_planned(each, census);
}

TEST_F(plan_device, any_bits) {
  plan_census census;
  std::uint64_t seed = 50;
  for (const shape_relation relation : {shape_relation::equal, shape_relation::swapped, shape_relation::reduced}) {
    for (std::uint32_t rank = relation == shape_relation::swapped ? 2 : 1; rank <= max_rank; ++rank) {
      for (int trial = 0; trial < 8; ++trial) {
        run_hostile(relation, rank, scaled(2000) + 1, ++seed, census);
        ASSERT_FALSE(HasFailure()) << "relation " << static_cast<int>(relation) << ", rank " << rank << ", seed "
                                   << seed;
      }
    }
  }
  EXPECT_GT(census.good, scaled(2000));
  EXPECT_GT(census.bad, scaled(20000));
  constexpr std::uint32_t all_faults = 0x3f;
  EXPECT_EQ(census.faults & all_faults, all_faults);
}

TEST_F(plan_device, a_hundred_thousand_hostile_tensors_at_once) {
  plan_census census;
  run_hostile(shape_relation::equal, 3, 100000, 90, census);
  EXPECT_GT(census.bad, 10000u);
}

TEST_F(plan_device, more_tensors_than_the_blocks_have_threads) {
  plan_census census;
  run_hostile(shape_relation::equal, 1, 300001, 91, census);
  EXPECT_GT(census.good, 1000u);
}

TEST_F(plan_device, padded_sides) {
  random_source random(61);
  plan_census census;
  for (std::uint64_t trial = 0; trial < scaled(200); ++trial) {
    const std::uint32_t rank = 1 + random.below32(max_rank);
    const std::uint32_t element = random.pick<std::uint32_t>({1, 2, 3, 4, 8, 16});
    const shape_range range{rank, 1 + random.below(400), 1 + random.below(3000), false, 7};
    const std::vector<extents> shapes = random_shapes(random, range);
    const host_batch source = lay_out(random, shapes, rank, element, source_form::array);
    const host_dense dense = lay_out_dense(random, random_shape(random, range), range.count, rank, element);
    const device_side from(source, source_form::array, array_side::device);
    const std::uint64_t memory = 0x7000000000;
    plan_case each;
    each.request.source = tensors_side(from.described());
    each.request.destination = tensors_side(from.described());
    each.request.count = range.count;
    each.request.rank = rank;
    const bool pads = random.one_in(2);
    kernels::side& dense_side = pads ? each.request.destination : each.request.source;
    dense_side.kind = side_kind::dense;
    dense_side.dense = dense.described(memory);
    each.request.relation = pads ? shape_relation::clipped : shape_relation::corner;
    each.rules.source_is_dense = !pads;
    set_rules(each, random);
    for (std::uint64_t i = 0; i < range.count; ++i) {
      const plain_side ragged = side_of(source, i, from.memory().address());
      const plain_side other = side_of(dense.batch, i, memory);
      each.sources.push_back(pads ? ragged : other);
      each.destinations.push_back(pads ? other : ragged);
    }
    if (random.one_in(3)) each.rules.windows = {{0, memory + random.below(4 * dense.pitch * range.count)}};
    expect_planned(each, census);
    ASSERT_FALSE(HasFailure()) << "trial " << trial << ", rank " << rank << (pads ? ", padded" : ", unpadded");
  }
  EXPECT_GT(census.good, scaled(1000));
  EXPECT_NE(census.faults & slow::bit(ragged::fault::truncated), 0u);
  EXPECT_NE(census.faults & slow::bit(ragged::fault::mismatch), 0u);
}

/// Rows of 64 to 1023 bytes with gaps take maps. These equal the driver's in all fields that the
/// driver and a patch share.
TEST_F(plan_device, maps_of_pitched_tensors_equal_the_drivers) {
  random_source random(63);
  constexpr std::uint64_t count = 700;
  plan_case each;
  each.request.count = count;
  each.request.rank = 2;
  each.request.relation = shape_relation::equal;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t row = 16 * (4 + random.below(59));
    const std::uint64_t address = 0x7000000000 + 16 * random.below(1 << 20);
    each.sources.push_back({address, {row / 4, 40 + random.below(100)}, {row + 16 * (1 + random.below(9))}});
    each.destinations.push_back({address + (std::uint64_t{1} << 36), each.sources[i].dim, {row + 16}});
  }
  tensor_spec box;
  box.type = element_type::u32;
  box.rank = 2;
  box.box_dim[0] = 64;
  box.box_dim[1] = 16;
  const result<map_template> base = make_template(box, patch_extents(2));
  TMAP_ASSERT_OK(base);
  const device_array<map_patch> patches[2] = {device_array<map_patch>(patches_of(each.sources)),
                                              device_array<map_patch>(patches_of(each.destinations))};
  each.request.source = tensors_side({patch_array{patches[0].data()}, count, 4, 2, {}, array_side::device});
  each.request.destination = tensors_side({patch_array{patches[1].data()}, count, 4, 2, {}, array_side::device});
  each.request.source_map = each.request.destination_map = *base;
  each.request.rule.piece_elements = 1024;
  std::copy(box.box_dim, box.box_dim + max_rank, each.request.rule.box_dim);
  const device_array<planned_tensor> tensors(count);
  const device_array<std::uint64_t> ends(count);
  const device_array<tensor_map> maps(2 * count);
  const device_array<std::uint64_t> scratch(kernels::plan_scratch_bytes(count) / 8 + 1);
  const kernels::plan_target target{tensors.data(), ends.data(),    maps.data(),    nullptr,
                                    nullptr,        scratch.data(), scratch.bytes()};
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  TMAP_ASSERT_CUDA(kernels::launch_plan(each.request, target, cudaStream_t{}));
  const std::vector<planned_tensor> planned = tensors.download();
  const std::vector<tensor_map> found = maps.download();
  for (std::uint64_t i = 0; i < 2 * count; ++i) {
    const plain_side& side = i % 2 == 0 ? each.sources[i / 2] : each.destinations[i / 2];
    ASSERT_EQ(planned[i / 2].way, route::tensor_map) << "tensor " << i / 2;
    tensor_spec spec = box;
    spec.global_address = side.address;
    std::copy(side.dim.begin(), side.dim.end(), spec.global_dim);
    spec.global_stride_bytes[0] = side.stride[0];
    const result<tensor_map> expected = encode(spec);
    TMAP_ASSERT_OK(expected);
    ASSERT_EQ(found[i], *expected) << "map " << i;
  }
}

TEST_F(plan_device, packed_sides) {
  random_source random(62);
  plan_census census;
  for (std::uint64_t trial = 0; trial < scaled(200); ++trial) {
    const std::uint32_t rank = 1 + random.below32(max_rank);
    const std::uint32_t element = random.pick<std::uint32_t>({1, 2, 3, 4, 8, 16});
    const std::uint64_t count = trial % 16 == 0 ? 20000 : 1 + random.below(400);
    const shape_range range{rank, count, 1 + random.below(300), false, 7};
    const std::vector<extents> shapes = random_shapes(random, range);
    const host_batch batch = lay_out(random, shapes, rank, element, source_form::columns);
    const device_side ragged(batch, source_form::columns, array_side::device);
    plan_case each;
    each.request.source = tensors_side(ragged.described());
    each.request.destination = tensors_side(ragged.described());
    each.request.count = count;
    each.request.rank = rank;
    each.request.relation = shape_relation::equal;
    kernels::side& packed = random.one_in(2) ? each.request.destination : each.request.source;
    packed.kind = side_kind::packed;
    packed.packed.memory = reinterpret_cast<void*>(0x7000000000 + 16 * random.below(4));
    packed.packed.alignment = std::uint64_t{1} << random.below(8);
    packed.packed.bytes = random.below(2 * batch.bytes.size());
    set_rules(each, random);
    for (std::uint64_t i = 0; i < count; ++i) {
      each.sources.push_back(side_of(batch, i, ragged.memory().address()));
      each.destinations.push_back(each.sources.back());
    }
    expect_planned(each, census);
    ASSERT_FALSE(HasFailure()) << "trial " << trial << ", rank " << rank;
  }
  EXPECT_GT(census.good, scaled(10000));
  EXPECT_NE(census.faults & slow::bit(ragged::fault::truncated), 0u);
}

}  // namespace
}  // namespace tmap::testing
