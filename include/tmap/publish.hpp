// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/detail/standard.hpp>

namespace tmap {

/// How a kernel that encodes writes its maps and publishes them. The bytes are equal, and consumers
/// acquire either.
enum class publish : std::uint32_t {
  stores,      ///< coalesced stores of 16 bytes, then one release fence for all maps of a warp: the faster way
  copy_fence,  ///< `tensormap.cp_fenceproxy`, which copies one map and releases it
};

}  // namespace tmap
