// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sides of tensors whose numbers may be any bits, but are often enough valid.

#include <utility>

#include "ragged/plan_reference.hpp"
#include "support/random_spec.hpp"

namespace tmap::testing {

inline std::uint64_t hostile_value(random_source& random) {
  constexpr std::uint64_t one = 1;
  switch (random.below(6)) {
    case 0: return random.bits();
    case 1: return random.of_random_length(64);
    case 2: return (one << random.below(64)) + random.below(3) - 1;
    case 3: return random.below(4);
    case 4: return ~0ull - random.below(3);
    default: return random.of_random_length(12);
  }
}

inline plain_side hostile_side(random_source& random, std::uint32_t rank) {
  plain_side side;
  side.address = random.one_in(2) ? random.of_random_length(60) / 16 * 16 : hostile_value(random);
  std::uint64_t extent = 4;
  for (std::uint32_t k = 0; k < rank; ++k) {
    side.dim.push_back(random.one_in(3) ? hostile_value(random) : random.of_random_length(9));
    extent *= side.dim.back();
    if (k + 1 < rank) side.stride.push_back(random.one_in(3) ? hostile_value(random) : extent + 16 * random.below(3));
    if (k + 1 < rank) extent = side.stride.back();
  }
  return side;
}

/// Returns two sides that satisfy the relation more often than random sides would.
inline std::pair<plain_side, plain_side> hostile_pair(random_source& random, kernels::shape_relation relation,
                                                      std::uint32_t rank) {
  plain_side source = hostile_side(random, rank);
  plain_side destination = hostile_side(random, rank);
  if (!random.one_in(4)) {
    destination.dim = source.dim;
    if (relation == kernels::shape_relation::swapped) std::swap(destination.dim[0], destination.dim[1]);
    if (relation == kernels::shape_relation::reduced) destination.dim[0] = 1;
  }
  if (random.one_in(2)) destination.stride = source.stride;
  if (random.one_in(4)) std::reverse(destination.stride.begin(), destination.stride.end());
  return {source, destination};
}

}  // namespace tmap::testing
