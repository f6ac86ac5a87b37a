// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/log.hpp>

namespace tmap::support {

/// Writes a line to standard error, by spdlog or, in a build without it, by the C library. Drops
/// lines below the level that TMAP_LOG names.
void write_to_stderr(log_level level, const char* text);

}  // namespace tmap::support
