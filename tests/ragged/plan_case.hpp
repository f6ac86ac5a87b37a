// SPDX-License-Identifier: Apache-2.0
#pragma once

// Plans one batch on the device and compares it with a slow planner.

#include <vector>

#include "device/gpu_fixture.hpp"
#include "kernels/launch.hpp"
#include "kernels/ragged_launch.hpp"
#include "ragged/packed_reference.hpp"
#include "ragged/plan_reference.hpp"

namespace tmap::testing {

using kernels::planned_tensor;
using kernels::shape_relation;
using kernels::side_kind;

/// Holds a batch of two sides on the device and the arguments of the slow planner.
struct plan_case {
  kernels::plan_request request{};
  planning_rules rules;
  std::vector<plain_side> sources;
  std::vector<plain_side> destinations;
};

struct plan_answer {
  std::vector<planned_tensor> tensors;
  std::vector<std::uint64_t> ends;
  std::vector<ragged::tensor_status> statuses;
  batch_header header;
  std::vector<std::int64_t> begins;
};

inline plan_answer run_plan(plan_case& each) {
  const std::uint64_t count = each.request.count;
  const bool pads = each.request.relation == shape_relation::clipped;
  const bool packs =
      each.request.source.kind == side_kind::packed || each.request.destination.kind == side_kind::packed;
  const std::uint64_t planned = count * (pads ? 1 + each.request.rank : 1);
  const device_array<planned_tensor> tensors(planned);
  const device_array<std::uint64_t> ends(planned);
  const device_array<ragged::tensor_status> statuses(count);
  const device_array<batch_header> header(1);
  const device_array<std::int64_t> begins(count + 1);
  const device_array<address_window> windows(each.rules.windows);
  const std::size_t scratch_bytes =
      std::max(kernels::plan_scratch_bytes(planned), kernels::inclusive_sum_scratch(count));
  const device_array<std::uint64_t> scratch(scratch_bytes / 8 + 1);
  const device_array<std::uint32_t> queue(1);
  each.request.statuses = statuses.data();
  each.request.header = header.data();
  each.request.windows = windows.data();
  each.request.window_count = static_cast<std::uint32_t>(each.rules.windows.size());
  each.rules.count = count;
  const kernels::plan_target target{tensors.data(),
                                    ends.data(),
                                    nullptr,
                                    packs ? begins.data() : nullptr,
                                    reinterpret_cast<device::queue_counter*>(queue.data()),
                                    scratch.data(),
                                    scratch_bytes};
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(kernels::launch_plan(each.request, target, cudaStream_t{}), cudaSuccess);
  EXPECT_EQ(queue.download().front(), 0u);
  return {tensors.download(), ends.download(), statuses.download(), header.download().front(), begins.download()};
}

inline void expect_same_box(const planned_tensor& expected, const planned_tensor& found, bool has_pieces) {
  ASSERT_EQ(found.tensor, expected.tensor);
  if (!has_pieces) return;
  ASSERT_EQ(found.source, expected.source);
  ASSERT_EQ(found.destination, expected.destination);
  ASSERT_EQ(found.way, expected.way) << name(found.way) << " for " << name(expected.way);
  for (std::uint32_t k = 0; k < max_rank; ++k) {
    ASSERT_EQ(found.dim[k], expected.dim[k]) << "dim " << k;
    if (k == 0 || found.dim[k] == 1) continue;
    ASSERT_EQ(found.source_stride[k - 1], expected.source_stride[k - 1]) << "dim " << k;
    ASSERT_EQ(found.destination_stride[k - 1], expected.destination_stride[k - 1]) << "dim " << k;
  }
}

/// Counts how often each case came up: a random test that never meets a case proves nothing about
/// it.
struct plan_census {
  std::uint64_t good{};
  std::uint64_t bad{};
  std::uint64_t empty{};
  std::uint64_t ways[route_count]{};
  std::uint32_t faults{};
};

inline void expect_planned(plan_case& each, plan_census& census) {
  const plan_answer found = run_plan(each);
  const kernels::side& from = each.request.source;
  const kernels::side& to = each.request.destination;
  const bool packs = to.kind == side_kind::packed;
  const bool unpacks = from.kind == side_kind::packed;
  const ragged::packed_buffer& packed = packs ? to.packed : from.packed;
  const auto memory = reinterpret_cast<std::uint64_t>(packed.memory);
  batch_header header{};
  std::uint64_t end = 0;
  std::uint64_t begin = 0;
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < each.request.count; ++i) {
    plain_side source = each.sources[i];
    plain_side destination = each.destinations[i];
    if (packs) destination = packed_side(source, memory + begin, each.rules.destination_element);
    if (unpacks) source = packed_side(destination, memory + begin, each.rules.source_element);
    const std::uint64_t capacity = packs || unpacks ? packed.bytes : ~0ull;
    const expected_plan plan = plan_slowly(source, destination, each.rules, i, begin, capacity);
    if (packs || unpacks) {
      const plain_side& shape = packs ? source : destination;
      ASSERT_EQ(found.begins[i], static_cast<std::int64_t>(begin)) << "tensor " << i;
      begin += packed_step(shape, each.rules, unpacks, packed.alignment);
      ASSERT_EQ(found.begins[i + 1], static_cast<std::int64_t>(begin)) << "tensor " << i;
    }
    const ragged::tensor_status status{plan.status};
    ASSERT_EQ(found.statuses[i].bits, status.bits) << "tensor " << i;
    if (status.is_bad() && header.bad_count++ == 0) header.first_bad = static_cast<std::uint32_t>(i);
    header.empty_count += status.is_empty() ? 1 : 0;
    census.good += status.is_good() ? 1 : 0;
    census.faults |= status.bits;
    for (std::size_t k = 0; k < plan.boxes.size(); ++k, ++at) {
      end += plan.pieces[k];
      ASSERT_EQ(found.ends[at], end) << "tensor " << i << ", box " << k;
      expect_same_box(plan.boxes[k], found.tensors[at], plan.pieces[k] != 0);
      ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "tensor " << i << ", box " << k;
      if (plan.pieces[k] != 0) ++census.ways[static_cast<std::uint32_t>(plan.boxes[k].way)];
    }
  }
  census.bad += header.bad_count;
  census.empty += header.empty_count;
  EXPECT_EQ(found.header.bad_count, header.bad_count);
  EXPECT_EQ(found.header.first_bad, header.first_bad);
  EXPECT_EQ(found.header.empty_count, header.empty_count);
}

}  // namespace tmap::testing
