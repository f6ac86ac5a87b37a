// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>

#include "apps/tmap/pad/outcome.hpp"

namespace tmap::demo {

/// Draws the pictures of the contact sheet into `folder`: what boxes, swizzles, strides and
/// interleaves look like. Returns how many there are.
tool::outcome<std::size_t> write_pictures(const std::filesystem::path& folder);

}  // namespace tmap::demo
