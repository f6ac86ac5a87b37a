// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/log.hpp>

#include "lib/support/without_throwing.hpp"

namespace tmap::support {

/// Writes one line to the user's callback or the default sink. A line that cannot be written is
/// lost. An empty one, whose text could not be made, is not written.
void log(log_level level, const char* text) noexcept;

/// Logs the text that `make` returns. Where memory runs out the line is lost.
template <class Make>
void log_made(log_level level, const Make& make) noexcept {
  log(level, without_throwing(make).c_str());
}

/// Returns the lowest level that this value of TMAP_LOG lets through; a value above `error` means
/// none.
log_level log_threshold(const char* setting);

}  // namespace tmap::support
