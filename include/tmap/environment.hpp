// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/error.hpp>

#include <string>
#include <vector>

namespace tmap {

/// One thing that parts of tmap need, and whether this machine has it.
struct environment_item {
  std::string name;      ///< "CUDA driver", "cuTensorMapEncodeTiled", "encode kernel", ...
  std::string detail;    ///< version or model where there is one, else empty
  std::string used_for;  ///< what does not work without it
  bool is_required{};    ///< false for what only later GPUs have
  result<void> state;    ///< or why it is not there
};

/// Looks at everything tmap can use on the calling thread's current device: runtime, driver, GPU,
/// the driver's functions, tmap's kernels. Thread-safe; launches nothing, but may initialise the
/// device's context. Empty for want of memory only.
TMAP_API std::vector<environment_item> query_environment();

}  // namespace tmap
