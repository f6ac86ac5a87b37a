// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lib/peer/provider.hpp"

namespace tmap::peer {

/// Takes windows, one after the other, from memory of the caller. `given` has the address of each
/// rank's memory, of `bytes` bytes.
[[nodiscard]] result<std::shared_ptr<provider>> given_addresses(const std::vector<device_address>& given,
                                                                std::uint64_t bytes);

}  // namespace tmap::peer
