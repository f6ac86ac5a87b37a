// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lib/pool/map_pool.hpp"

namespace tmap::pool {

/// A graph's hold on a lease. When the graph is gone, the hold waits in the pool's list and no
/// longer keeps the pool alive.
struct map_pool::graph_hold {
  std::shared_ptr<map_pool> pool;
  holding* slots;
  graph_hold* next;
};

}  // namespace tmap::pool
