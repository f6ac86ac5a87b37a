// SPDX-License-Identifier: Apache-2.0
#include "lib/pool/spread.hpp"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "lib/pool/lease.hpp"
#include "lib/pool/make_room.hpp"
#include "lib/support/arguments.hpp"
#include "lib/support/check.hpp"

// Spreads leases over streams and graphs. Each use is prepared first, with all host memory that it
// and its end need, so that nothing fails half-way.

namespace tmap::pool {

/// Returns the present state of the stream.
result<stream_use> map_pool::look_at(cudaStream_t stream) const {
  capture_id capture{};
  TMAP_TRY_CUDA(calls_.capture_id(stream, &capture));
  unsigned long long id{};
  if (capture == 0) TMAP_TRY_CUDA(calls_.stream_id(stream, &id));
  return stream_use{stream, id, capture};
}

result<void> map_pool::use_on(const lease_ptr& lease, cudaStream_t stream, cudaStream_t home) {
  if (abandoned_) return service_is_dead();
  const result<stream_use> source = look_at(home);
  if (!source) return failure{source.error()};
  const result<stream_use> target = look_at(stream);
  if (!target) return failure{target.error()};
  const std::lock_guard lock{mutex_};
  result<spread> prepared = prepare_spread(*lease, *source, *target, 0);
  return prepared ? carry_out(*prepared) : failure{prepared.error()};
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
