// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/log.hpp>

namespace tmap::support {

/// One line to the user's callback or the default sink. A line that cannot be written is lost, and
/// so is an empty one: its text could not be made.
void log(log_level level, const char* text) noexcept;

/// The lowest level that TMAP_LOG lets through; a value above `error` is silence.
log_level log_threshold(const char* setting);

}  // namespace tmap::support
