// SPDX-License-Identifier: Apache-2.0
#pragma once

// Random layouts and options for choose_route: likely ones and random bits.

#include <tmap/route.hpp>

#include <cstdint>

#include "support/random_spec.hpp"

namespace tmap::testing {

struct route_case {
  tensor_layout tensor;
  route_options options;
};

inline route_case random_route_case(random_source& random) {
  route_case made;
  tensor_layout& tensor = made.tensor;
  const std::uint64_t unit = random.pick<std::uint64_t>({1, 2, 4, 8, 16, 16, 16});
  const bool is_wild = random.one_in(4);
  tensor.address = random.of_random_length(is_wild ? 64 : 40) / unit * unit;
  tensor.element_bytes = is_wild ? static_cast<std::uint32_t>(random.of_random_length(32)) : 1 + random.below32(16);
  tensor.rank = is_wild ? random.below32(8) : 1 + random.below32(max_rank);
  std::uint64_t extent = tensor.element_bytes;
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    tensor.dim[axis] = random.one_in(6) ? 1 : random.of_random_length(is_wild ? 64 : 11);
    extent *= tensor.dim[axis];
    if (axis + 1 == max_rank) break;
    if (random.one_in(2)) extent = (extent + unit - 1) / unit * unit;
    tensor.stride_bytes[axis] = random.one_in(8) ? random.of_random_length(64) : extent;
  }
  made.options.policy = random.pick({route_policy::enable, route_policy::disable, route_policy::force});
  made.options.allowed = random.one_in(2) ? all_routes : route_set{static_cast<std::uint32_t>(random.bits())};
  return made;
}

}  // namespace tmap::testing
