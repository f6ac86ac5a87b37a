// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lib/pool/map_pool.hpp"

namespace tmap::pool {

/// What a graph has of a lease. Once the graph is gone it waits in the pool's list, without holding
/// the pool any more.
struct map_pool::graph_hold {
  std::shared_ptr<map_pool> pool;
  holding* slots;
  graph_hold* next;
};

}  // namespace tmap::pool
