// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>

#include <cstdint>

namespace tmap {

enum class log_level : std::uint32_t { debug, info, warning, error };

/// Receives each line that tmap logs, of every level. `text` is valid during the call only and has
/// no newline.
using log_callback = void (*)(log_level level, const char* text, void* user);

/// Sends every line to `callback`. Null restores the default, which writes to standard error the
/// lines of the level in the environment variable TMAP_LOG and above: debug, info, warning (also
/// when unset), error or off.
///
/// Thread-safe. Lines of different threads come one at a time. After this function has returned,
/// the previous callback is never called again, so its `user` may be destroyed. The callback must
/// neither throw nor call tmap.
TMAP_API void set_log_callback(log_callback callback, void* user);

}  // namespace tmap
