// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/call.h>

#include <cstdint>

namespace tmap::testing {

/// Returns a struct of the C interface that is all zeros except for its size.
template <class Struct>
Struct sized() {
  Struct made{};
  made.struct_size = sizeof made;
  return made;
}

inline tmap_call host_call() {
  tmap_call made = sized<tmap_call>();
  made.engine = TMAP_ON_HOST;
  return made;
}

inline tmap_call call_in(void* workspace, std::uint64_t bytes) {
  tmap_call made = sized<tmap_call>();
  made.workspace = workspace;
  made.workspace_bytes = bytes;
  return made;
}

inline tmap_call call_on(tmap_stream stream) {
  tmap_call made = sized<tmap_call>();
  made.stream = stream;
  return made;
}

}  // namespace tmap::testing
