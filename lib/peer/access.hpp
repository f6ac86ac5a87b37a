// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/peer_group.hpp>

#include <memory>
#include <utility>

#include "lib/peer/provider.hpp"

namespace tmap::peer {

/// Makes groups and windows, and reads what only the library knows of them.
struct access {
  static peer_group group(std::shared_ptr<provider> from, std::uint32_t rank, std::uint32_t ranks) {
    return {std::move(from), rank, ranks};
  }
  static peer_memory memory(window&& opened, std::uint64_t bytes, std::uint32_t rank, std::uint32_t ranks);

  /// Returns null if peers reach the window.
  static const local_window* local(const peer_memory& window) { return window.local_; }
};

}  // namespace tmap::peer
