// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>

namespace tmap::moe {

/// Checks that this build has kernels, and that the current GPU has clusters.
[[nodiscard]] result<void> require_gpu();

}  // namespace tmap::moe
