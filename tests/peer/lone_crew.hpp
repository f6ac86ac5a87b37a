// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/peer/protocol_exchange.hpp"

namespace tmap::testing {

/// Moves eager rows by the one thread of a block.
template <class Link>
struct lone_crew {
  using exchange_request = kernels::peer::exchange_request;

  Link& link;
  std::uint32_t late{kernels::peer::no_rank};

  TMAP_HOST_DEVICE void send(const exchange_request& request, std::uint32_t call, bool is_pulled) {
    kernels::peer::open_gate<Link> gate(link, call, is_pulled, {0, 1});
    kernels::peer::send_rows(link, request, {{0, 1}, {0, 1}}, gate);
  }
  TMAP_HOST_DEVICE void begin_take(const exchange_request& request, std::uint32_t call, std::uint64_t deadline) {
    late = kernels::peer::take_rows(link, request, call, deadline, {{0, 1}, {0, 1}});
  }
  TMAP_HOST_DEVICE std::uint32_t end_take() const { return late; }
};

}  // namespace tmap::testing
