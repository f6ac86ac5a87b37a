// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/peer/communicator.hpp"

namespace tmap::peer {

/// Makes the provider whose windows NCCL allocates and opens to all ranks of a communicator.
[[nodiscard]] std::shared_ptr<provider> nccl_windows(std::shared_ptr<communicator> over);

}  // namespace tmap::peer
