// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/peer_group.hpp>

#include "lib/peer/peer_calls.hpp"

namespace tmap::peer {

/// Writes the id to a file next to `start.id_file` and renames it, so that no rank reads half of
/// it.
[[nodiscard]] result<void> write_id(const peer_start& start, const peer_id& id);

/// Waits for the file of this run and reads the id.
[[nodiscard]] result<peer_id> read_id(const peer_start& start, const peer_calls& calls);

/// Removes the file, if it is there.
void remove_id(const peer_start& start);

}  // namespace tmap::peer
