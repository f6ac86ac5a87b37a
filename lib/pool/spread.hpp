// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>

#include <memory>

#include "lib/pool/graph_hold.hpp"
#include "lib/pool/map_pool.hpp"

namespace tmap::pool {

/// The use of a lease on another stream, prepared with all host memory that it needs.
struct map_pool::spread {
  lease& spreading;
  stream_use from;
  stream_use to;
  bool in_step{};        ///< else the graph of `from` began after the lease came there
  capture_id capture{};  ///< that the lease is in then
  bool is_there{};       ///< nothing to do
  std::unique_ptr<graph_hold> hold{};
};

/// Returns the error of a pool that was abandoned.
inline failure service_is_dead() {
  return failure{error{.code = status::service_dead}};
}

}  // namespace tmap::pool
