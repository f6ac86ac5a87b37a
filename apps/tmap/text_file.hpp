// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "apps/tmap/pad/outcome.hpp"

namespace tmap::tool {

/// Reads all bytes of a file, or of standard input if `path` is "-". Fails with a sentence that
/// names the file.
outcome<std::string> read_text(const std::string& path);

/// Returns the name of `path` in a sentence: "-" is "standard input".
std::string shown_path(const std::string& path);

}  // namespace tmap::tool
