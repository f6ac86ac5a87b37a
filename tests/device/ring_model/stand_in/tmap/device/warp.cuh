// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stands in for the header of this name. A recorded thread is a warp of one lane.

#include <cstdint>

inline void __syncwarp() {}

namespace tmap::device {

inline std::uint32_t lane_index() {
  return 0;
}

}  // namespace tmap::device
