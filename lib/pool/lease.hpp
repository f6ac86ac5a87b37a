// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "lib/pool/map_pool.hpp"

namespace tmap::pool {

/// A graph that holds a lease, as seen by the capture.
struct graph_grip {
  capture_id capture;
  cudaUserObject_t held{};
  std::size_t nodes{};  ///< nodes of the graph when it got the lease
};

class lease {
 public:
  explicit lease(std::shared_ptr<map_pool> pool) : pool_(std::move(pool)) {}

  /// Returns null if the lease is not used on that stream.
  stream_use* use_of(const stream_use& now) {
    const auto use =
        std::find_if(uses.begin(), uses.end(), [&](const stream_use& known) { return is_same_stream(known, now); });
    return use == uses.end() ? nullptr : &*use;
  }

  bool is_captured_in(capture_id capture) const {
    return std::any_of(grips.begin(), grips.end(), [&](const graph_grip& grip) { return grip.capture == capture; });
  }

  holding* slots{};  ///< until the lease ends
  slot_range range{};
  std::uint32_t generation{};
  std::vector<stream_use> uses;
  std::vector<graph_grip> grips;

 private:
  const std::shared_ptr<map_pool> pool_;
};

}  // namespace tmap::pool
