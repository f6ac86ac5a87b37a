// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/support/picture/picture.hpp"
#include "apps/tmap/pad/plan.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace tmap::tool {

/// Most pictures one sheet shows.
inline constexpr std::size_t most_sheet_pictures = 1024;

/// Draws the pictures of a batch [B, H, W, channels], one cell each: pixels from the batch's bytes,
/// padding hatched.
drawing::picture draw_contact_sheet(const batch_plan& plan, const std::vector<tensor>& tensors,
                                    std::span<const std::byte> batch);

}  // namespace tmap::tool
