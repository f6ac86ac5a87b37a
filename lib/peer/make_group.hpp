// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/peer_group.hpp>

#include "lib/peer/peer_calls.hpp"

// The functions that make and break groups, over any set of calls, which must outlive the groups
// and their windows.

namespace tmap::peer {

[[nodiscard]] result<std::vector<peer_group>> group_of_process(const std::vector<int>& devices,
                                                               const peer_calls& calls) noexcept;
[[nodiscard]] result<peer_group> group_from_nccl(ncclComm* communicator, std::chrono::milliseconds patience,
                                                 const peer_calls& calls) noexcept;
[[nodiscard]] result<peer_id> new_id(const peer_calls& calls);
[[nodiscard]] result<peer_group> create_group(const peer_start& start, const peer_calls& calls) noexcept;

[[nodiscard]] result<void> abort_group(const peer_memory& window, const peer_calls& calls);

}  // namespace tmap::peer
