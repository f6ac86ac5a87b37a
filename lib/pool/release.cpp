// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <iterator>
#include <mutex>
#include <utility>

#include "lib/pool/lease.hpp"
#include "lib/pool/map_pool.hpp"
#include "lib/pool/relaxed_capture.hpp"
#include "lib/support/check.hpp"

// How a lease ends. Other threads take and release meanwhile, for CUDA is called between two short
// locks. So that the marks of a stream stay in the order of their events, a mark that finds a
// younger one on its stream than it has seen before its event was recorded is recorded again.

namespace tmap::pool {

/// What a use of an ended lease asks for: a mark on the stream of this id, nothing, or to be looked
/// at again later.
struct map_pool::last_look {
  enum class wish { mark, nothing, another_look };
  wish wants;
  stream_id id{};
};

namespace {

/// Whether a call was refused, or its answer is, for the sake of a capture: the context is whole.
bool is_of_a_capture(std::int32_t code) {
  return code >= cudaErrorStreamCaptureUnsupported && code <= cudaErrorStreamCaptureWrongThread;
}

bool says_captured(cudaError_t code) {
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

result<void> map_pool::withdraw(lease_ptr lease) noexcept {
  if (lease == nullptr || abandoned_) return {};
  const bool is_fresh = lease.use_count() == 1 && lease->uses.size() == 1 && lease->grips.size() == 1;
  if (is_fresh) support::clear_last_error(leave_graph(*lease));
  return release(std::move(lease));
}

/// Of a lease with one hold, stream and graph. Where a question fails the graph keeps it, as it may
/// always do.
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

/// Leaves a mark behind on each stream. On failure the slots stay pending.
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
  if (says_captured(asked)) return last_look{another_look};
  TMAP_TRY_CUDA(asked);
  if (capture != 0) return last_look{capture == use.capture ? nothing : another_look};
  // Not asked for its id: the question breaks a capture that another thread begins just now. Nobody
  // else captures a thread's own stream.
  if (use.stream != cudaStreamPerThread) return last_look{mark, use.id != 0 ? use.id : ++last_nameless_};
  unsigned long long id{};
  const cudaError_t told = calls_.stream_id(use.stream, &id);
  if (says_captured(told)) return last_look{another_look};
  TMAP_TRY_CUDA(told);
  return is_same_stream(use, {use.stream, id, 0}) ? last_look{mark, id} : last_look{another_look};
}

/// Records an event after the use, on a stream that was not captured at the look. Where it is
/// captured now the event may be the graph's: then another look has to come.
result<map_pool::last_look> map_pool::record_end(spare_event& spare, const stream_use& use,
                                                 const last_look& look) const {
  using enum last_look::wish;
  if (const result<void> recorded = record(spare, use.stream); !recorded) {
    if (!is_of_a_capture(recorded.error().cuda_code)) return failure{recorded.error()};
    return last_look{another_look};
  }
  capture_id capture{};
  const cudaError_t asked = calls_.capture_id(use.stream, &capture);
  if (!says_captured(asked)) TMAP_TRY_CUDA(asked);
  if (asked == cudaErrorStreamCaptureImplicit) return look;  // the legacy stream itself is never captured
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

/// Enters what a use has left behind; false where it has to be looked at again. Locked.
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

/// False where the stream cannot be marked yet.
result<bool> map_pool::mark_late_end(const late_use& late) {
  result<last_look> look = look_at_end(late.use);
  if (look && look->wants == last_look::wish::another_look) return false;
  spare_event spare = borrow_event();
  if (look && look->wants == last_look::wish::mark) look = record_end(spare, late.use, *look);
  const result<bool> settled = look ? settle(late.slots, late.use, *look, spare) : failure{look.error()};
  give_back(spare);
  return settled;
}

/// Locked, as all that follows from it. What fails is tried again by the next call; the first
/// failure is returned.
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
