// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/detail/standard.hpp>

namespace tmap {

/// How a call of a group ended in a kernel.
enum class peer_status : std::uint32_t {
  ok,
  timeout,      ///< a rank did not come by the deadline; the group is broken
  broken,       ///< another rank gave up before
  mismatch,     ///< ranks made different calls; the group is broken
  overflow,     ///< a rank would get more rows than its capacity; nothing was moved
  bad_counts,   ///< a rank would send more rows than it has; nothing was moved
  refused,      ///< the request does not fit the window's header; nothing was announced
  wrong_bytes,  ///< a self-test found that a rank's bytes did not come, or did not come back
  no_dispatch,  ///< a combine found no dispatch of its sizes to return; nothing was moved
};

/// Names what a call waited for, or read, when it ended.
enum class protocol_step : std::uint32_t { none, barrier, put, take_put, credit, announcement, workers, rows, sums };

/// Reports how a call ended, and by which rank's fault.
struct peer_verdict {
  peer_status status{peer_status::ok};
  std::uint32_t peer{0};
  protocol_step step{protocol_step::none};
};

}  // namespace tmap
