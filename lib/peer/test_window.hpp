// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/peer_memory.hpp>

#include <chrono>

namespace tmap::peer {

/// Tests the way to all ranks and back on a stream of its own. When it returns a success, no rank
/// uses the window any more.
[[nodiscard]] result<void> test_window(const peer_memory& window, std::chrono::milliseconds patience);

}  // namespace tmap::peer
