// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>

namespace tmap {

/// What a GPU can do, as far as the rules depend on it. A plain value: fill it by hand to ask about
/// a GPU that is not there, or take `query_device_limits` (encode.hpp).
struct device_limits {
  std::uint32_t compute_capability{90};       ///< 10 * major + minor
  std::uint32_t shared_memory_bytes{232448};  ///< most shared memory one block can opt in to
};

/// An H100, H200 or GH200.
TMAP_HOST_DEVICE constexpr device_limits hopper_limits() {
  return {90, 232448};
}

}  // namespace tmap
