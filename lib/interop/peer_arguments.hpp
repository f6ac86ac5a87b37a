// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds windows by their handles, and names arguments as C does, for all calls of groups.

#include <tmap/c/peer.h>
#include <tmap/error.hpp>
#include <tmap/peer_memory.hpp>

#include <string_view>

#include "lib/interop/inputs.hpp"
#include "lib/interop/objects.hpp"

namespace tmap::interop {

/// Names the argument of a failure as C does. Lists are pointers here, and the choices of a run
/// belong to the problem.
inline answer named(const error& e) {
  struct other_name {
    std::string_view library;
    std::string_view c;
  };
  static constexpr other_name names[] = {
      {"windows.size()", "ranks"},
      {"devices.size()", "ranks"},
      {"peer_group", "group"},
      {"start.patience", "start.patience_ms"},
      {"patience", "patience_ms"},
      {"run.patience", "problem.patience_ms"},
      {"run.blocks", "problem.blocks"},
      {"run.scratch.memory", "problem.workspace"},
      {"run.scratch.bytes", "problem.workspace_bytes"},
  };
  error made = e;
  for (const other_name& other : names) {
    if (e.argument.view() == other.library) made.argument = other.c;
  }
  return {static_cast<tmap_status>(e.code), made};
}

template <class T>
answer named(const result<T>& ended) {
  return ended ? answer{} : named(ended.error());
}

inline object<const peer_memory> window_of(tmap_peer_memory window) {
  return {"window", peer_memories(), window.value};
}

}  // namespace tmap::interop
