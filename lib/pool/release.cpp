// SPDX-License-Identifier: Apache-2.0
#include <mutex>
#include <utility>

#include "lib/pool/lease.hpp"
#include "lib/pool/map_pool.hpp"
#include "lib/pool/relaxed_capture.hpp"
#include "lib/support/check.hpp"

// How a lease ends. Other threads take and release meanwhile, for CUDA is called between two short locks. So that the
// marks of a stream stay in the order of their events, a mark that finds a younger one on its stream than it has seen
// before its event was recorded is recorded again.

namespace tmap::pool {

/// What a use of an ended lease asks for: a mark on the stream of this id, nothing, or to be looked at again later.
struct map_pool::last_look {
  enum class wish { mark, nothing, another_look };
  wish wants;
  stream_id id{};
};

result<void> map_pool::release(lease_ptr lease) noexcept {
  if (lease == nullptr || abandoned_) return {};
  const std::shared_ptr<map_pool> self = shared_from_this();
  spare_event spare;
  {
    const std::lock_guard lock{mutex_};
    collect_dropped();
    static_cast<void>(mark_late_ends());  // of other leases: the next take says what fails
    // Holds end here only, one at a time, so the count is right.
    if (lease.use_count() != 1) {
      lease.reset();
      return {};
    }
    ledger_.end(lease->slots);
    spare = borrow_event();
  }
  return end(*lease, spare);
}

/// Leaves a mark behind on each stream. On failure the slots stay pending.
result<void> map_pool::end(const lease& lease, spare_event spare) {
  for (const stream_use& use : lease.uses) {
    const result<last_look> look = look_at_end(use);
    result<void> left = look ? result<void>{} : failure{look.error()};
    if (look && look->wants == last_look::wish::mark) left = record(spare, use.stream);
    const std::lock_guard lock{mutex_};
    if (left) left = settle(lease.slots, use, *look, spare);
    if (!left || &use == &lease.uses.back()) {
      give_back(spare);
      return left;
    }
    if (spare.event == nullptr) spare = borrow_event();
  }
  return {};
}

result<map_pool::last_look> map_pool::look_at_end(const stream_use& use) const {
  using enum last_look::wish;
  capture_id capture{};
  const cudaError_t asked = calls_.capture_id(use.stream, &capture);
  if (asked == cudaErrorStreamCaptureImplicit || asked == cudaErrorStreamCaptureInvalidated) {
    support::clear_last_error(asked);
    return last_look{another_look};
  }
  TMAP_TRY_CUDA(asked);
  if (capture != 0) return last_look{capture == use.capture ? nothing : another_look};
  unsigned long long id{};
  TMAP_TRY_CUDA(calls_.stream_id(use.stream, &id));
  return is_same_stream(use, {use.stream, id, 0}) ? last_look{mark, id} : last_look{another_look};
}

result<void> map_pool::record(spare_event& spare, cudaStream_t stream) const {
  if (spare.event == nullptr) {
    const relaxed_capture relaxed{calls_};
    TMAP_TRY_CUDA(relaxed.code());
    TMAP_TRY_CUDA(calls_.create_event(&spare.event));
  }
  TMAP_TRY_CUDA(calls_.record_event(spare.event, stream));
  return {};
}

/// Enters what a use has left behind. Locked.
result<void> map_pool::settle(holding* slots, const stream_use& use, const last_look& look, spare_event& spare) {
  using enum last_look::wish;
  if (look.wants == nothing) ledger_.pass(slots);
  if (look.wants == another_look) late_uses_.push_back({slots, use});
  if (look.wants != mark) return {};
  if (ledger_.has_mark_since(look.id, spare.age)) TMAP_TRY_CUDA(calls_.record_event(spare.event, use.stream));
  ledger_.mark(slots, look.id, std::exchange(spare.event, nullptr));
  return {};
}

map_pool::spare_event map_pool::borrow_event() {
  const auto idle = ledger_.borrow_event();
  return {.event = idle ? static_cast<cudaEvent_t>(*idle) : nullptr, .age = ledger_.youngest_mark()};
}

void map_pool::give_back(const spare_event& spare) {
  if (spare.event != nullptr) ledger_.give_back(spare.event);
}

/// For an event that was recorded in a capture: another thread would record it while that is still being built.
void map_pool::discard(const spare_event& spare) {
  if (spare.event == nullptr) return;
  const relaxed_capture relaxed{calls_};
  if (calls_.destroy_event(spare.event) != cudaSuccess) ledger_.retire(spare.event);
}

/// False where the stream cannot be marked yet.
result<bool> map_pool::mark_late_end(const late_use& late) {
  const result<last_look> look = look_at_end(late.use);
  if (!look) return failure{look.error()};
  if (look->wants == last_look::wish::another_look) return false;
  spare_event spare = borrow_event();
  result<void> marked;
  if (look->wants == last_look::wish::mark) marked = record(spare, late.use.stream);
  if (marked) marked = settle(late.slots, late.use, *look, spare);
  give_back(spare);
  if (!marked) return failure{marked.error()};
  return true;
}

/// Locked, as all that follows from it. What fails is tried again by the next call; the first failure is returned.
result<void> map_pool::mark_late_ends() {
  result<void> outcome;
  for (auto late = late_uses_.begin(); late != late_uses_.end();) {
    const result<bool> marked = mark_late_end(*late);
    if (!marked && outcome) outcome = failure{marked.error()};
    late = marked && *marked ? late_uses_.erase(late) : std::next(late);
  }
  return outcome;
}

}  // namespace tmap::pool
