// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/error.hpp>

#include <string>
#include <vector>

namespace tmap {

/// A thing that parts of tmap need, and whether this machine has it.
struct environment_item {
  std::string name;      ///< "CUDA driver", "cuTensorMapEncodeTiled", "encode kernel", ...
  std::string detail;    ///< the version or model; may be empty
  std::string used_for;  ///< names what does not work without it
  bool is_required{};    ///< false if only later GPUs have it
  result<void> state;    ///< success, or why it is missing
};

/// Checks everything that tmap can use on the calling thread's current device: runtime, driver,
/// GPU, the driver's functions, tmap's kernels. Thread-safe. Launches nothing, but may initialise
/// the device's context. Empty only if memory runs out.
TMAP_API std::vector<environment_item> query_environment();

}  // namespace tmap
