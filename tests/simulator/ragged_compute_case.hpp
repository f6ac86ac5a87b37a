// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/ragged.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "simulator/ragged_host_side.hpp"
#include "support/ragged_reference.hpp"

// Shared parts of the tests of computing operations, which run with every rank and route.

namespace tmap::testing {

using ragged::value_type;

/// Holds the rank and the allowed routes.
using compute_case = std::tuple<std::uint32_t, route_set>;

class ragged_compute : public ::testing::TestWithParam<compute_case> {
 protected:
  std::uint32_t rank() const { return std::get<0>(GetParam()); }
  ragged::run pinned() const {
    ragged::run with{on_host{}};
    with.choices.allowed = std::get<1>(GetParam());
    with.choices.policy = with.choices.allowed == all_routes ? route_policy::enable : route_policy::force;
    return with;
  }
  std::vector<extents> shapes() { return random_shapes(random_, {rank(), 6, 1500, false, 9}); }
  host_batch laid_out(const std::vector<extents>& shapes, std::uint32_t element_bytes) {
    return lay_out(random_, shapes, rank(), element_bytes, source_form::array);
  }
  random_source random_{rank() + 40};
};

inline float f32_of(const host_batch& batch, std::uint64_t i, const std::uint64_t* at) {
  float value;
  std::memcpy(&value, batch.element(i, at), sizeof value);
  return value;
}

/// Writes numbers of moderate size, with an occasional NaN, infinity or zero.
inline void make_floats(random_source& random, host_batch& batch, std::uint64_t odd_one_in) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (std::uint64_t i = 0; i < batch.tensors.size(); ++i) {
    for_each_element(batch.tensors[i].shape, [&](const std::uint64_t* at) {
      float value = static_cast<float>(random.below(2000)) / 16 - 60;
      if (random.one_in(odd_one_in)) value = random.pick<float>({std::nanf(""), infinity, -infinity, 0.0f, -0.0f});
      std::memcpy(batch.element(i, at), &value, sizeof value);
    });
  }
}

inline std::string compute_case_name(const ::testing::TestParamInfo<compute_case>& info) {
  const auto& [rank, allowed] = info.param;
  std::string route_name = "mixed";
  for (std::uint32_t r = 0; r < route_count; ++r) {
    if (allowed == route_bit(static_cast<route>(r))) route_name = name(static_cast<route>(r));
  }
  return "rank" + std::to_string(rank) + "_" + route_name;
}

inline auto every_compute_case() {
  return ::testing::Combine(::testing::Range(1u, 6u),
                            ::testing::Values(all_routes, route_bit(route::tensor_map), route_bit(route::bulk),
                                              route_bit(route::ldgsts), route_bit(route::plain)));
}

}  // namespace tmap::testing
