// SPDX-License-Identifier: Apache-2.0
// Compares the computing operations on the host with their definitions, by every route.
#include <tmap/ragged.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "simulator/ragged_compute_case.hpp"
#include "support/ragged_values_reference.hpp"
#include "support/refusal.hpp"

namespace tmap::testing {
namespace {

TEST_P(ragged_compute, transpose) {
  if (rank() < 2) {
    host_batch rows = laid_out(shapes(), 4);
    const tensor_batch described = host_side{rows, source_form::array}.described;
    EXPECT_EQ(refused_argument(ragged::transpose(described, described, {on_host{}})), "source.rank");
    return;
  }
  for (const std::uint32_t item : {1u, 2u, 3u, 4u, 8u, 16u}) {
    std::vector<extents> all = shapes();
    host_batch source = laid_out(all, item);
    for (extents& shape : all) std::swap(shape.dim[0], shape.dim[1]);
    host_batch destination = laid_out(all, item);
    host_batch expected = destination;
    reference::transpose(source, expected);
    host_side from{source, source_form::array};
    host_side to{destination, source_form::array};
    ASSERT_TRUE(ragged::transpose(from.described, to.described, pinned()));
    expect_bytes(expected.bytes, destination.bytes);
  }
}

TEST_P(ragged_compute, cast_of_every_pair) {
  for (std::uint32_t pair = 0; pair < 36; ++pair) {
    const auto from = static_cast<value_type>(pair / 6);
    const auto to = static_cast<value_type>(pair % 6);
    const std::vector<extents> all = shapes();
    host_batch source = laid_out(all, value_bytes(from));
    host_batch destination = laid_out(all, value_bytes(to));
    host_batch expected = destination;
    std::vector<float> scales;
    for (std::uint64_t i = 0; i < all.size(); ++i) scales.push_back(static_cast<float>(i) / 4 - 0.5f);
    const ragged::cast_values values{from, to, 2, 0.25f, pair % 2 == 0 ? scales.data() : nullptr, nullptr};
    reference::cast(values, source, expected, pair % 2 == 0 ? scales : std::vector<float>{}, {});
    host_side read{source, source_form::array};
    host_side written{destination, source_form::array};
    ASSERT_TRUE(ragged::cast(read.described, written.described, values, pinned()));
    expect_bytes(expected.bytes, destination.bytes);
  }
}

TEST_P(ragged_compute, saxpy) {
  const std::vector<extents> all = shapes();
  host_batch x = laid_out(all, 4);
  host_batch y = laid_out(all, 4);
  make_floats(random_, x, 50);
  make_floats(random_, y, 50);
  host_batch expected = y;
  reference::saxpy(-1.7f, x, expected);
  host_side from{x, source_form::array};
  host_side to{y, source_form::array};
  ASSERT_TRUE(ragged::saxpy(-1.7f, from.described, to.described, pinned()));
  expect_bytes(expected.bytes, y.bytes);
}

/// Loops over each window. `reference::max_pool`, for long rows, skips most elements.
float window_maximum(const host_batch& source, std::uint64_t i, const std::uint64_t* at, std::uint64_t radius) {
  std::uint64_t place[max_rank];
  std::copy_n(at, max_rank, place);
  float most = f32_of(source, i, at);
  const std::uint64_t last = std::min(at[0] + radius, source.tensors[i].shape.dim[0] - 1);
  for (place[0] = at[0] - std::min(at[0], radius); place[0] <= last; ++place[0]) {
    most = reference::larger(most, f32_of(source, i, place));
  }
  return reference::canonical(most);
}

TEST_P(ragged_compute, max_pool_of_every_radius) {
  for (const std::uint32_t radius : {0u, 1u, 2u, 15u, 1000u, 4'000'000'000u}) {
    const std::vector<extents> all = shapes();
    host_batch source = laid_out(all, 4);
    host_batch destination = laid_out(all, 4);
    make_floats(random_, source, 60);
    host_batch expected = destination;
    for (std::uint64_t i = 0; i < all.size(); ++i) {
      for_each_element(all[i], [&](const std::uint64_t* at) {
        const float most = window_maximum(source, i, at, radius);
        std::memcpy(expected.element(i, at), &most, sizeof most);
      });
    }
    host_batch by_reference = destination;
    reference::max_pool(radius, source, by_reference);
    expect_bytes(expected.bytes, by_reference.bytes);
    host_side from{source, source_form::array};
    host_side to{destination, source_form::array};
    ASSERT_TRUE(ragged::max_pool_1d(from.described, to.described, radius, pinned()));
    expect_bytes(expected.bytes, destination.bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(all, ragged_compute, every_compute_case(), compute_case_name);

}  // namespace
}  // namespace tmap::testing
