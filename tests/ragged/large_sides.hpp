// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sides of tensors with dims and bytes near the limits.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ragged/plan_reference.hpp"
#include "support/random_spec.hpp"

namespace tmap::testing {

/// Returns dims near 2^31, 2^32 and the limits, of about `most_bytes` or half as many, which leaves
/// room for gaps. One in eight exceeds the limits.
inline std::vector<std::uint64_t> large_dims(random_source& random, std::uint32_t rank, std::uint32_t element_bytes,
                                             std::uint64_t most_bytes) {
  constexpr std::uint64_t one = 1;
  constexpr std::uint64_t most_dim = one << 40;
  const std::uint64_t elements = most_bytes / element_bytes / (1 + random.below(2));
  const std::uint64_t wanted =
      random.pick({most_dim, most_dim - 1, most_dim - 16, (one << 32) + 5, one << 32, (one << 31) + 1, one << 20});
  const std::uint64_t first = std::min(wanted, elements);
  std::uint64_t second = std::min(most_dim, elements / first);
  if (second > 1) second -= random.below(2);
  if (rank == 3) second = (second + 3) / 4;
  std::vector<std::uint64_t> dims{first, second};
  if (rank == 3) dims.push_back(std::min(most_dim, elements / (first * second)));
  if (random.one_in(3)) std::reverse(dims.begin(), dims.end());
  if (random.one_in(8)) dims[random.below(rank)] += random.pick<std::uint64_t>({1, most_dim});
  return dims;
}

inline plain_side large_side(random_source& random, const std::vector<std::uint64_t>& dims, std::uint32_t element_bytes,
                             std::uint64_t address) {
  plain_side side{address, dims, {}};
  const std::uint64_t gap = random.pick<std::uint64_t>({0, 0, 16, 4096});
  std::uint64_t extent = element_bytes;
  for (std::size_t k = 0; k + 1 < dims.size(); ++k) side.stride.push_back(extent = extent * dims[k] + gap);
  return side;
}

}  // namespace tmap::testing
