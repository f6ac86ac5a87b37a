// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>

#include <tmap/detail/peer_status.hpp>

namespace tmap::peer {

/// Returns the outcome of a call that moved data, from the words `verdict` and `fault` of the
/// window of this rank. In errors `found` is the rank at fault.
[[nodiscard]] result<void> outcome_of(std::uint32_t verdict, std::uint32_t fault);

}  // namespace tmap::peer
