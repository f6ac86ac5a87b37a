// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "apps/demo/batch.hpp"
#include "apps/demo/engine.hpp"

namespace tmap::demo {

/// The way a tensor took.
enum class fate { mapped, otherwise, empty, refused };

fate fate_of(const demo_tensor& tensor, const engine_run& run, std::size_t index);

/// Returns one tensor of the batch as HTML: its drawing, its route, and the rules it breaks.
std::string card_of(const demo_batch& batch, const engine_run& run, std::size_t index);

}  // namespace tmap::demo
