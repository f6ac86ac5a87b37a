// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/tmap/pad/outcome.hpp"

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

namespace tmap::tool {

/// Writes the pieces one after the other under another name next to `path`, then renames: `path` is
/// whole or as it was. A signal that ends the program meanwhile leaves nothing there. One call
/// at a time. Fails with a sentence that names the file.
outcome<void> write_file(const std::filesystem::path& path, const std::vector<std::span<const std::byte>>& pieces);

/// Fails with a sentence that names the file. One that is not there is no failure.
outcome<void> remove_file(const std::filesystem::path& path);

/// Makes the folder and those above it, and proves that files can be made in it.
outcome<void> prepare_folder(const std::filesystem::path& folder);

}  // namespace tmap::tool
