// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "apps/demo/check.hpp"
#include "apps/demo/engine.hpp"

namespace tmap::demo {

/// Counts the tensors that went each way.
struct batch_counts {
  std::size_t tensors{};
  std::size_t mapped{};     ///< on the route of tensor maps
  std::size_t otherwise{};  ///< have a map, but another route copies the whole tensor faster
  std::size_t empty{};
  std::size_t refused{};
};

batch_counts count(const demo_batch& batch, const engine_run& run);

/// Returns the report, one page that needs nothing else.
std::string report_of(const demo_batch& batch, const engine_run& run, const check_result& checked);

}  // namespace tmap::demo
