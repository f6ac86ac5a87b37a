// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tmap {

/// The slots of a service by their state. `free + leased + pending + captured` is `capacity`.
struct slot_counts {
  std::uint64_t capacity{};
  std::uint64_t free{};
  std::uint64_t leased{};    ///< of batches that are alive
  std::uint64_t pending{};   ///< of batches that are gone, but whose streams may still use them
  std::uint64_t captured{};  ///< of CUDA graphs, until these are destroyed
};

}  // namespace tmap
