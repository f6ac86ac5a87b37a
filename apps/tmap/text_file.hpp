// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "apps/tmap/pad/outcome.hpp"

namespace tmap::tool {

/// All bytes of a file, or of standard input when `path` is "-". Fails with a sentence that names
/// the file.
outcome<std::string> read_text(const std::string& path);

/// The name of `path` in a sentence: "-" is "standard input".
std::string shown_path(const std::string& path);

}  // namespace tmap::tool
