// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>

#include <cstdint>

namespace tmap {

enum class log_level : std::uint32_t { debug, info, warning, error };

/// Called for each line tmap logs, of every level. `text` is valid during the call only, without a
/// newline.
using log_callback = void (*)(log_level level, const char* text, void* user);

/// Sends every line to `callback` instead of the default, standard error from the level named by
/// the environment variable TMAP_LOG on (debug, info, warning, error, off; warning when unset).
/// Null goes back to the default.
///
/// Thread-safe. Lines of different threads come one at a time; once this function has returned, the
/// callback set before is never called again, so its `user` may go. The callback must not throw nor
/// call tmap.
TMAP_API void set_log_callback(log_callback callback, void* user);

}  // namespace tmap
