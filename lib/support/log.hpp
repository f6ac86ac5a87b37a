// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/log.hpp>

#include "lib/support/without_throwing.hpp"

namespace tmap::support {

/// One line to the user's callback or the default sink. A line that cannot be written is lost, and
/// so is an empty one: its text could not be made.
void log(log_level level, const char* text) noexcept;

/// Logs the text that `make` returns. Where memory runs out the line is lost.
template <class Make>
void log_made(log_level level, const Make& make) noexcept {
  log(level, without_throwing(make).c_str());
}

/// The lowest level that TMAP_LOG lets through; a value above `error` is silence.
log_level log_threshold(const char* setting);

}  // namespace tmap::support
