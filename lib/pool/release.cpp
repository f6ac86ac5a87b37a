// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <iterator>
#include <mutex>
#include <utility>

#include "lib/pool/lease.hpp"
#include "lib/pool/map_pool.hpp"
#include "lib/pool/relaxed_capture.hpp"
#include "lib/support/check.hpp"

// Ends leases. CUDA is called between two short locks, so other threads take and release at the
// same time. The marks of a stream must stay in the order of their events. So a thread records its
// event again if its stream got a younger mark since the event was borrowed.

namespace tmap::pool {

/// The next step for a use of an ended lease: a mark on the stream of this id, nothing, or another
/// look later.
struct map_pool::last_look {
  enum class wish { mark, nothing, another_look };
  wish wants;
  stream_id id{};
};

namespace {

/// Whether a call failed only because of a capture; the context is not broken.
bool is_of_a_capture(std::int32_t code) {
  return code >= cudaErrorStreamCaptureUnsupported && code <= cudaErrorStreamCaptureWrongThread;
}

bool failed_for_capture(cudaError_t code) {
  if (!is_of_a_capture(code)) return false;
  support::clear_last_error(code);
  return true;
}

}  // namespace

result<void> map_pool::release(lease_ptr lease) noexcept {
  if (lease == nullptr || abandoned_) return {};
  const std::shared_ptr<map_pool> self = shared_from_this();
  spare_event spare;
  {
    const std::lock_guard lock{mutex_};
    collect_dropped();
    static_cast<void>(mark_late_ends());  // of other leases; the next take reports failures
    // Holds end only here, one at a time, so the count is exact.
    if (lease.use_count() != 1) {
      lease.reset();
      return {};
    }
    ledger_.end(lease->slots);
    spare = borrow_event();
  }
  return end(*lease, spare);
}

result<void> map_pool::withdraw(lease_ptr lease) noexcept {
  if (lease == nullptr || abandoned_) return {};
  const bool is_fresh = lease.use_count() == 1 && lease->uses.size() == 1 && lease->grips.size() == 1;
  if (is_fresh) support::clear_last_error(leave_graph(*lease));
  return release(std::move(lease));
}

/// Gives back a lease with one hold, stream and graph. If a query fails the graph keeps the lease,
/// which is always safe.
cudaError_t map_pool::leave_graph(const lease& lease) const {
  const cudaStream_t stream = lease.uses.front().stream;
  const graph_grip& grip = lease.grips.front();
  capture_id capture{};
  cudaGraph_t graph{};
  std::size_t nodes{};
  cudaError_t code = calls_.capture_id(stream, &capture);
  if (code != cudaSuccess || capture != grip.capture) return code;
  code = calls_.captured_graph(stream, &graph);
  if (code == cudaSuccess) code = calls_.graph_nodes(graph, &nodes);
  if (code != cudaSuccess || nodes != grip.nodes) return code;
  return calls_.release_from_graph(graph, grip.held);
}

/// Marks each stream. On failure the slots stay pending.
result<void> map_pool::end(const lease& lease, spare_event spare) {
  for (const stream_use& use : lease.uses) {
    result<last_look> look = look_at_end(use);
    if (look && look->wants == last_look::wish::mark) look = record_end(spare, use, *look);
    const std::lock_guard lock{mutex_};
    const result<bool> left = look ? settle(lease.slots, use, *look, spare) : failure{look.error()};
    if (left && !*left) late_uses_.push_back({lease.slots, use});
    give_back(spare);
    if (!left) return failure{left.error()};
    if (&use != &lease.uses.back()) spare = borrow_event();
  }
  return {};
}

result<map_pool::last_look> map_pool::look_at_end(const stream_use& use) const {
  using enum last_look::wish;
  capture_id capture{};
  const cudaError_t asked = calls_.capture_id(use.stream, &capture);
  if (failed_for_capture(asked)) return last_look{another_look};
  TMAP_TRY_CUDA(asked);
  if (capture != 0) return last_look{capture == use.capture ? nothing : another_look};
  // Do not query the id, because the query would break a capture that another thread begins now.
  // Nobody else captures a thread's own stream.
  if (use.stream != cudaStreamPerThread) return last_look{mark, use.id != 0 ? use.id : ++last_nameless_};
  unsigned long long id{};
  const cudaError_t code = calls_.stream_id(use.stream, &id);
  if (failed_for_capture(code)) return last_look{another_look};
  TMAP_TRY_CUDA(code);
  return is_same_stream(use, {use.stream, id, 0}) ? last_look{mark, id} : last_look{another_look};
}

/// Records an event after the use, on a stream that was not captured at the look. If it is captured
/// now, the event may belong to the graph, and another look is needed.
result<map_pool::last_look> map_pool::record_end(spare_event& spare, const stream_use& use,
                                                 const last_look& look) const {
  using enum last_look::wish;
  if (const result<void> recorded = record(spare, use.stream); !recorded) {
    if (!is_of_a_capture(recorded.error().cuda_code)) return failure{recorded.error()};
    return last_look{another_look};
  }
  capture_id capture{};
  const cudaError_t asked = calls_.capture_id(use.stream, &capture);
  if (!failed_for_capture(asked)) TMAP_TRY_CUDA(asked);
  if (asked == cudaErrorStreamCaptureImplicit) return look;  // the legacy stream is never captured
  spare.may_be_captured = asked != cudaSuccess || capture != 0;
  return spare.may_be_captured ? last_look{another_look} : look;
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

/// Enters the result of a look at a use; false if another look is needed. The pool is locked.
result<bool> map_pool::settle(holding* slots, const stream_use& use, const last_look& look, spare_event& spare) {
  using enum last_look::wish;
  result<last_look> last = look;
  if (look.wants == mark && ledger_.has_mark_since(look.id, spare.age)) last = record_end(spare, use, look);
  if (!last) return failure{last.error()};
  if (last->wants == nothing) ledger_.pass(slots);
  if (last->wants == mark) ledger_.mark(slots, last->id, std::exchange(spare.event, nullptr), use.stream);
  return last->wants != another_look;
}

map_pool::spare_event map_pool::borrow_event() {
  const auto idle = ledger_.borrow_event();
  return {.event = idle ? static_cast<cudaEvent_t>(*idle) : nullptr, .age = ledger_.youngest_mark()};
}

void map_pool::give_back(const spare_event& spare) {
  if (spare.event == nullptr) return;
  if (spare.may_be_captured) {
    discard(spare.event);
  } else {
    ledger_.give_back(spare.event);
  }
}

void map_pool::discard(cudaEvent_t event) const {
  const relaxed_capture relaxed{calls_};
  if (calls_.destroy_event(event) != cudaSuccess) ledger_.retire(event);
}

/// Marks a stream late; false if it cannot be marked yet.
result<bool> map_pool::mark_late_end(const late_use& late) {
  result<last_look> look = look_at_end(late.use);
  if (look && look->wants == last_look::wish::another_look) return false;
  spare_event spare = borrow_event();
  if (look && look->wants == last_look::wish::mark) look = record_end(spare, late.use, *look);
  const result<bool> settled = look ? settle(late.slots, late.use, *look, spare) : failure{look.error()};
  give_back(spare);
  return settled;
}

/// Marks the streams that could not be marked before. The pool is locked. The next call tries
/// failures again; the first failure is returned.
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
