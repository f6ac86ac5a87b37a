// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cycle counts that the threads of a kernel record, and their medians on the host.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "apps/support/require.hpp"

namespace tmap::apps::bench {

/// Points to the device memory in which a kernel records cycles: `samples` counts for each figure
/// and block.
struct cycle_log {
  static constexpr std::uint32_t unwritten = ~0u;

  std::uint32_t* cycles;
  std::uint32_t blocks;
  std::uint32_t samples;

#if defined(__CUDACC__)
  __device__ void put(std::uint32_t figure, std::uint32_t sample, std::uint32_t value) const {
    put_at(blockIdx.x, figure, sample, value);
  }
  __device__ void put_at(std::uint32_t block, std::uint32_t figure, std::uint32_t sample, std::uint32_t value) const {
    cycles[(figure * blocks + block) * samples + sample] = value;
  }
#endif
};

/// The samples of one figure.
class cycle_counts {
 public:
  void add(const std::uint32_t* first, const std::uint32_t* last) {
    std::remove_copy(first, last, std::back_inserter(values_), cycle_log::unwritten);
  }

  /// Returns "median (tenth to ninetieth percentile)", divided by `per`.
  std::string text(double per = 1) const {
    std::vector<std::uint32_t> sorted = values_;
    std::sort(sorted.begin(), sorted.end());
    require(!sorted.empty());
    const auto at = [&](std::size_t percent) { return sorted[(sorted.size() - 1) * percent / 100] / per; };
    char buffer[64];
    std::snprintf(buffer, sizeof(buffer), per == 1 ? "%.0f (%.0f to %.0f)" : "%.1f (%.1f to %.1f)", at(50), at(10),
                  at(90));
    return buffer;
  }

 private:
  std::vector<std::uint32_t> values_;
};

}  // namespace tmap::apps::bench
