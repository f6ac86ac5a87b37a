// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/detail/standard.hpp>

namespace tmap {

/// How a kernel that encodes writes and publishes its maps. Both give the same bytes, and consumers
/// acquire both in the same way.
enum class publish : std::uint32_t {
  stores,      ///< coalesced stores of 16 bytes, then one release fence for all maps of a warp: the faster way
  copy_fence,  ///< `tensormap.cp_fenceproxy`, which copies one map and releases it
};

}  // namespace tmap
