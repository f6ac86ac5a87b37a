// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/peer/protocol_exchange.hpp"

namespace tmap::testing {

/// Is the one thread of a block, which leads and does all the work.
struct lone_thread {
  std::uint32_t row_bytes;
  std::uint32_t late{kernels::peer::no_rank};

  static constexpr TMAP_HOST_DEVICE bool leads() { return true; }
  static constexpr TMAP_HOST_DEVICE bool shares() { return true; }
  static constexpr TMAP_HOST_DEVICE kernels::peer::worker work() { return {0, 1}; }
  static constexpr TMAP_HOST_DEVICE kernels::peer::dealt_items ranks() { return {0, 1, {0, 1}}; }
  TMAP_HOST_DEVICE kernels::peer::row_packing packing() const { return kernels::peer::row_packing(row_bytes); }
  template <class Link>
  static TMAP_HOST_DEVICE bool any(Link&, bool mine) {
    return mine;
  }

  template <class Link>
  TMAP_HOST_DEVICE void begin_take(Link& link, const kernels::peer::exchange_request& request, std::uint32_t call,
                                   std::uint64_t deadline) {
    late = kernels::peer::take_rows(link, request, call, deadline, packing(), ranks(), [] { return true; });
    kernels::peer::write_out_splits(link, request, work());
  }
  TMAP_HOST_DEVICE std::uint32_t end_take() const { return late; }
};

}  // namespace tmap::testing
