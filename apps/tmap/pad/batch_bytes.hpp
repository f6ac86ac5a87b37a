// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/tmap/pad/plan.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace tmap::tool {

/// Lays out the sources of a batch as the plan states.
std::vector<std::byte> pack_sources(const batch_plan& plan, const std::vector<tensor>& tensors);

/// Compares every byte of a dense batch with a plain loop over the tensors, which knows nothing of
/// folding. Fails with the first element that differs.
outcome<void> check_batch(const batch_plan& plan, const std::vector<tensor>& tensors, std::span<const std::byte> batch);

}  // namespace tmap::tool
