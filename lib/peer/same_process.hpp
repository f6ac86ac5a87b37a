// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lib/peer/provider.hpp"

namespace tmap::peer {

/// Makes the providers of all ranks for GPUs of this process. The memory of each GPU is allocated
/// by CUDA and opened to all others.
[[nodiscard]] result<std::vector<std::shared_ptr<provider>>> same_process(const std::vector<int>& devices,
                                                                          const peer_calls& calls);

}  // namespace tmap::peer
