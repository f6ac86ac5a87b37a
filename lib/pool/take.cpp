// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "lib/pool/graph_hold.hpp"
#include "lib/pool/lease.hpp"
#include "lib/pool/make_room.hpp"
#include "lib/pool/map_pool.hpp"
#include "lib/pool/relaxed_capture.hpp"
#include "lib/support/arguments.hpp"
#include "lib/support/check.hpp"

// Begins leases and spreads them over streams and graphs. All host memory is allocated first, also
// that for their end, so that nothing fails half-way.

namespace tmap::pool {
namespace {

/// The number of its own returned leases that a stream checks before it queries events. Completed
/// pieces that are too small are joined again.
constexpr std::size_t quick_look = 8;
constexpr std::size_t long_look = ~std::size_t{0};

failure abandoned() {
  return failure{error{.code = status::service_dead}};
}

}  // namespace

/// The use of a lease on another stream, prepared with all host memory that it needs.
struct map_pool::spread {
  lease& spreading;
  stream_use from;
  stream_use to;
  bool in_step{};        ///< else the graph of `from` began after the lease came there
  capture_id capture{};  ///< that the lease is in then
  bool is_there{};       ///< nothing to do
  std::unique_ptr<graph_hold> hold{};
};

result<lease_ptr> map_pool::take(std::uint64_t count, cudaStream_t stream, const void* only_in,
                                 const read_leases& read) {
  if (count == 0) return support::refused("count", "is {found}; it must be at least {allowed}", count, 1);
  if (abandoned_) return abandoned();
  const result<stream_use> use = look_at(stream);
  if (!use) return failure{use.error()};
  auto made = std::make_shared<lease>(shared_from_this());
  const std::lock_guard lock{mutex_};
  collect_dropped();
  ledger_.reserve_lease();
  std::unique_ptr<graph_hold> hold = prepare_use(*made, use->capture, 0);
  result<std::vector<spread>> spreads = prepare_spreads(read, *use);
  if (!spreads) return failure{spreads.error()};
  const result<slot_window> window = find_window({count, *use, window_of(only_in)});
  if (!window) return failure{window.error()};
  for (spread& each : *spreads) {
    if (const result<void> used = carry_out(each); !used) return failure{used.error()};
  }
  return lend(std::move(made), std::move(hold), *window, *use);
}

slot_window map_pool::window_of(const void* only_in) const {
  if (only_in == nullptr) return all_slabs;
  const auto place =
      std::find_if(slabs_.begin(), slabs_.end(), [&](const slab& part) { return part.memory == only_in; });
  return slab_window(static_cast<std::uint64_t>(place - slabs_.begin()));
}

/// Returns the present state of the stream.
result<stream_use> map_pool::look_at(cudaStream_t stream) const {
  capture_id capture{};
  TMAP_TRY_CUDA(calls_.capture_id(stream, &capture));
  unsigned long long id{};
  if (capture == 0) TMAP_TRY_CUDA(calls_.stream_id(stream, &id));
  return stream_use{stream, id, capture};
}

result<slot_window> map_pool::find_window(const demand& wanted) {
  const auto& [count, use, bounds] = wanted;
  if (use.capture == 0) {
    if (const result<void> marked = mark_late_ends(); !marked) return failure{marked.error()};
  }
  if (const auto window = ledger_.find_free(count, bounds)) return *window;
  if (use.capture != 0) return exhausted(count);
  if (const auto window = ledger_.find_own(count, use.id, quick_look, bounds)) return *window;

  const auto completed = find_completed(wanted);
  if (!completed) return failure{completed.error()};
  if (*completed) return **completed;
  if (const auto window = ledger_.find_own(count, use.id, long_look, bounds)) return *window;

  const result<bool> grown = grow_for(wanted);
  if (grown && *grown) return *ledger_.find_free(count);
  if (!grown && grown.error().code != status::out_of_memory) return failure{grown.error()};

  const auto waited = find_by_waiting(wanted);
  if (!waited) return failure{waited.error()};
  if (*waited) return **waited;
  if (!grown) return failure{grown.error()};
  return exhausted(count);
}

result<bool> map_pool::grow_for(const demand& wanted) {
  const bool anywhere = wanted.bounds.count == all_slabs.count;
  return anywhere ? grow(wanted.count) : false;
}

/// Queries streams, the taking one first, until a window is found.
result<std::optional<slot_window>> map_pool::find_completed(const demand& wanted) {
  const slot_counts& now = ledger_.counts();
  if (now.pending == 0 || now.free + now.pending < wanted.count) return std::nullopt;
  const relaxed_capture relaxed{calls_};
  TMAP_TRY_CUDA(relaxed.code());
  auto window = find_after_asking(wanted.use.id, wanted);
  for (auto other = ledger_.marked_stream_above(0); other; other = ledger_.marked_stream_above(*other)) {
    if (!window || *window) return window;
    if (*other == wanted.use.id) continue;
    window = find_after_asking(*other, wanted);
    if (window && *window) ++cross_stream_reuses_;
  }
  return window;
}

result<std::optional<slot_window>> map_pool::find_after_asking(stream_id asked, const demand& wanted) {
  const result<bool> any = ask_events(asked);
  if (!any) return failure{any.error()};
  if (!*any) return std::nullopt;
  if (const auto window = ledger_.find_free(wanted.count, wanted.bounds)) return window;
  return ledger_.find_own(wanted.count, wanted.use.id, quick_look, wanted.bounds);
}

result<std::optional<slot_window>> map_pool::find_by_waiting(const demand& wanted) {
  const auto window = ledger_.find_returned(wanted.count, wanted.bounds);
  if (!window) return std::nullopt;
  for (const slot_ledger::stream_mark& before : ledger_.marks_before(*window, wanted.use.id)) {
    const cudaError_t code = calls_.wait_event(wanted.use.stream, static_cast<cudaEvent_t>(before.mark.event));
    if (is_captured_event(code)) {
      support::clear_last_error(code);
      make_late(before.stream, before.mark.event);
      return find_by_waiting(wanted);
    }
    TMAP_TRY_CUDA(code);
  }
  ++cross_stream_reuses_;
  return window;
}

failure map_pool::exhausted(std::uint64_t count) const {
  return failure{error{.code = status::pool_exhausted, .found = count, .slots = ledger_.counts()}};
}

/// Allocates host memory for another use of the lease, after `before` uses of others. Returns the
/// part for `pin`; null without a capture.
std::unique_ptr<map_pool::graph_hold> map_pool::prepare_use(lease& lease, capture_id capture, std::uint64_t before) {
  make_room(lease.uses, lease.uses.size() + 1);
  make_room(late_uses_, ledger_.open_marks() + before + 1);
  if (capture == 0) return nullptr;
  make_room(lease.grips, lease.grips.size() + 1);
  return std::make_unique<graph_hold>(graph_hold{shared_from_this(), nullptr, nullptr});
}

void map_pool::add_use(lease& lease, const stream_use& use) {
  lease.uses.push_back(use);
  ledger_.add_stream(lease.slots);
}

result<lease_ptr> map_pool::lend(lease_ptr made, std::unique_ptr<graph_hold> hold, const slot_window& window,
                                 const stream_use& use) {
  holding* const slots = ledger_.lend(window);
  const slab& place = slabs_[window.first >> 32];
  made->slots = slots;
  made->range = {place.memory, place.capacity, static_cast<std::uint32_t>(window.first),
                 static_cast<std::uint32_t>(window.count)};
  made->generation = slots->generation;
  if (use.capture != 0) {
    if (const result<void> pinned = pin(*made, use.stream, use.capture, std::move(hold)); !pinned) {
      ledger_.end(slots);
      return failure{pinned.error()};
    }
  }
  add_use(*made, use);
  const slot_counts& now = ledger_.counts();
  peak_in_use_ = std::max(peak_in_use_, now.leased + now.captured);
  return made;
}

/// Gives the lease to the graph into which `stream` is being captured.
result<void> map_pool::pin(lease& lease, cudaStream_t stream, capture_id capture, std::unique_ptr<graph_hold> hold) {
  if (lease.is_captured_in(capture)) return {};
  cudaGraph_t graph{};
  graph_grip grip{.capture = capture};
  TMAP_TRY_CUDA(calls_.captured_graph(stream, &graph));
  TMAP_TRY_CUDA(calls_.graph_nodes(graph, &grip.nodes));
  hold->slots = lease.slots;
  ledger_.pin(lease.slots);
  const cudaError_t code = calls_.retain_in_graph(graph, hold.get(), drop, &grip.held);
  if (grip.held != nullptr) {
    static_cast<void>(hold.release());  // dropped where that failed
  } else {
    ledger_.unpin(lease.slots);
  }
  TMAP_TRY_CUDA(code);
  lease.grips.push_back(grip);
  return {};
}

result<void> map_pool::use_on(const lease_ptr& lease, cudaStream_t stream, cudaStream_t home) {
  if (abandoned_) return abandoned();
  const result<stream_use> source = look_at(home);
  if (!source) return failure{source.error()};
  const result<stream_use> target = look_at(stream);
  if (!target) return failure{target.error()};
  const std::lock_guard lock{mutex_};
  result<spread> prepared = prepare_spread(*lease, *source, *target, 0);
  return prepared ? carry_out(*prepared) : failure{prepared.error()};
}

/// Allocates the host memory, after that for `before` uses of other leases. Changes nothing.
result<map_pool::spread> map_pool::prepare_spread(lease& lease, const stream_use& from, const stream_use& to,
                                                  std::uint64_t before) {
  const stream_use* const origin = lease.use_of(from);
  if (origin == nullptr) {
    return support::refused("map_batch",
                            "was made on the per-thread stream of another thread; only that one may use it");
  }
  spread made{lease, from, to};
  made.in_step = from.capture == origin->capture;
  made.capture = to.capture == 0 && made.in_step ? from.capture : to.capture;
  const stream_use* const known = lease.use_of(to);
  made.is_there = known != nullptr && known->capture == made.capture;
  if (made.is_there) return made;
  if (to.capture == 0 && from.capture != 0 && !made.in_step) TMAP_TRY_CUDA(cudaErrorStreamCaptureIsolation);
  ledger_.reserve_stream(lease.slots, before);
  made.hold = prepare_use(lease, made.capture, before);
  return made;
}

/// Prepares leases that come to `to` together with a new one.
result<std::vector<map_pool::spread>> map_pool::prepare_spreads(const read_leases& read, const stream_use& to) {
  std::vector<spread> spreads;
  if (read.leases.empty()) return spreads;
  const result<stream_use> from = look_at(read.home);
  if (!from) return failure{from.error()};
  spreads.reserve(read.leases.size());
  for (const lease_ptr& each : read.leases) {
    result<spread> prepared = prepare_spread(*each, *from, to, spreads.size() + 1);
    if (!prepared) return failure{prepared.error()};
    spreads.push_back(std::move(*prepared));
  }
  return spreads;
}

/// Allocates no host memory.
result<void> map_pool::carry_out(spread& prepared) {
  if (prepared.is_there) return {};
  const auto& [lease, from, to, in_step, capture, is_there, hold] = prepared;
  const bool same_world = to.capture == 0 || (in_step && to.capture == from.capture);
  if (same_world && !is_same_stream(to, from)) {
    if (const result<void> ordered = order_after(to.stream, from); !ordered) return ordered;
  }
  if (capture != 0) {
    if (const result<void> pinned = pin(lease, to.stream, capture, std::move(prepared.hold)); !pinned) return pinned;
  }
  stream_use* const known = lease.use_of(to);
  if (known == nullptr) {
    add_use(lease, {to.stream, to.id, capture});
  } else if (capture == 0) {
    known->capture = 0;
  }
  return {};
}

result<void> map_pool::record_and_wait(cudaStream_t stream, cudaStream_t home, spare_event& by) const {
  if (const result<void> recorded = record(by, home); !recorded) return recorded;
  TMAP_TRY_CUDA(calls_.wait_event(stream, by.event));
  return {};
}

/// CUDA resolves the event at the wait, so it is idle again at once, except in a capture.
result<void> map_pool::order_after(cudaStream_t stream, const stream_use& home) {
  spare_event by = home.capture == 0 ? borrow_event() : spare_event{.may_be_captured = true};
  const result<void> ordered = record_and_wait(stream, home.stream, by);
  give_back(by);
  return ordered;
}

}  // namespace tmap::pool
