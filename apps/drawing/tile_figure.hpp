// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/tensor_spec.hpp>

#include "apps/drawing/figure.hpp"
#include "apps/drawing/loaded_tile.hpp"

namespace tmap::drawing {

/// Draws one load up close: the box at `at` in the tensor, what arrives in shared memory, and the
/// bank conflicts of reads of it. Fails as `load_tile` does.
[[nodiscard]] result<figure> draw_tile(const tensor_spec& spec, const coordinates& at);

}  // namespace tmap::drawing
