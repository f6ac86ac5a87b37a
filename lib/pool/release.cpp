// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "lib/pool/lease.hpp"
#include "lib/pool/map_pool.hpp"
#include "lib/support/check.hpp"

// How a lease ends.

namespace tmap::pool {

result<void> map_pool::release(lease_ptr lease) {
  if (lease == nullptr || abandoned_) return {};
  const std::shared_ptr<map_pool> self = shared_from_this();
  const std::lock_guard lock{mutex_};
  collect_dropped();
  const result<void> marked = mark_late_ends();
  // Holds end here only, one at a time, so the count is right.
  const result<void> ended = lease.use_count() == 1 ? end(*lease) : result<void>{};
  lease.reset();
  return ended ? marked : ended;
}

result<void> map_pool::end(const lease& lease) {
  ledger_.end(lease.slots, lease.uses.size());
  for (const stream_use& use : lease.uses) {
    if (const result<void> marked = mark_end(lease.slots, use); !marked) return marked;
  }
  return {};
}

/// Puts an event behind the lease's last use on a stream, now or later. On failure it never gets one, and the slots
/// stay pending.
result<void> map_pool::mark_end(holding* slots, const stream_use& use) {
  capture_id capture{};
  const cudaError_t asked = calls_.capture_id(use.stream, &capture);
  const bool forbidden = asked == cudaErrorStreamCaptureImplicit || asked == cudaErrorStreamCaptureInvalidated;
  if (forbidden) support::clear_last_error(asked);
  if (!forbidden) TMAP_TRY_CUDA(asked);

  if (capture != 0 && capture == use.capture) {
    ledger_.pass(slots);
    return {};
  }
  unsigned long long id{};
  if (!forbidden && capture == 0) TMAP_TRY_CUDA(calls_.stream_id(use.stream, &id));
  const stream_use now{use.stream, id, capture};
  if (forbidden || capture != 0 || !is_same_stream(use, now)) {
    late_uses_.push_back({slots, use});
    return {};
  }
  const result<cudaEvent_t> event = idle_event();
  if (!event) return failure{event.error()};
  if (const cudaError_t code = calls_.record_event(*event, use.stream); code != cudaSuccess) {
    ledger_.idle_events().push_back(*event);
    return failure{support::runtime_error(code)};
  }
  ledger_.mark(slots, now.id, *event);
  return {};
}

result<void> map_pool::mark_late_ends() {
  result<void> outcome;
  for (const late_use& late : std::exchange(late_uses_, {})) {
    if (outcome) {
      outcome = mark_end(late.slots, late.use);
    } else {
      late_uses_.push_back(late);
    }
  }
  return outcome;
}

}  // namespace tmap::pool
