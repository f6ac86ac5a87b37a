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
  static constexpr TMAP_HOST_DEVICE kernels::peer::worker work() { return {0, 1}; }
  template <class Link>
  static TMAP_HOST_DEVICE bool any(Link&, bool mine) {
    return mine;
  }
  template <class Link, class MaySend>
  TMAP_HOST_DEVICE bool send(Link& link, const kernels::peer::exchange_request& request, std::uint32_t call,
                             const MaySend& may_send) const {
    return kernels::peer::send_rows(link, request, call, packing(), {0, 1, {0, 1}}, may_send);
  }
  template <class Link, class MayTake>
  TMAP_HOST_DEVICE std::uint32_t take(Link& link, const kernels::peer::exchange_request& request, std::uint32_t call,
                                      std::uint64_t deadline, const MayTake& may_take) const {
    return kernels::peer::take_rows(link, request, call, deadline, packing(), {0, 1, {0, 1}}, may_take);
  }

  template <class Link>
  TMAP_HOST_DEVICE void begin_take(Link& link, const kernels::peer::exchange_request& request, std::uint32_t call,
                                   std::uint64_t deadline) {
    late = take(link, request, call, deadline, [] { return true; });
    kernels::peer::write_out_splits(link, request, work());
  }
  TMAP_HOST_DEVICE std::uint32_t end_take() const { return late; }

 private:
  TMAP_HOST_DEVICE kernels::peer::row_packing packing() const { return kernels::peer::row_packing(row_bytes); }
};

}  // namespace tmap::testing
