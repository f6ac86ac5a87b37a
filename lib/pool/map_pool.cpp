// SPDX-License-Identifier: Apache-2.0
#include "lib/pool/map_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "lib/pool/graph_hold.hpp"
#include "lib/pool/lease.hpp"
#include "lib/pool/make_room.hpp"
#include "lib/pool/relaxed_capture.hpp"
#include "lib/pool/slab_layout.hpp"
#include "lib/support/check.hpp"
#include "lib/support/log.hpp"

namespace tmap::pool {
namespace {

/// An index in a slab has 32 bits, and slabs are 2^32 apart in the ledger.
constexpr std::uint64_t most_slots_of_a_slab = std::uint64_t{1} << 31;

/// Whether this thread is in CUDA's callback for the end of a graph's hold, which may not call
/// CUDA.
thread_local bool inside_drop = false;

}  // namespace

map_pool::map_pool(const pool_options& options, const pool_calls& calls) : calls_(calls), options_(options) {}

result<std::shared_ptr<map_pool>> map_pool::create(const pool_options& options, const pool_calls& calls) {
  std::shared_ptr<map_pool> pool{new map_pool{options, calls}};
  if (const result<void> added = pool->add_slab(options.capacity, options.memory); !added) {
    return failure{added.error()};
  }
  return pool;
}

map_pool::~map_pool() {
  if (!abandoned_ && !inside_drop) {
    const relaxed_capture relaxed{calls_};
    ledger_.for_each_event(
        [&](event_handle event) { static_cast<void>(calls_.destroy_event(static_cast<cudaEvent_t>(event))); });
    for (const slab& part : slabs_) {
      if (part.owned) static_cast<void>(calls_.free(part.memory));
    }
  }
  for (graph_hold* hold = dropped_; hold != nullptr;) delete std::exchange(hold, hold->next);
}

result<void> map_pool::add_slab(std::uint64_t capacity, void* memory) {
  const std::uint64_t extra = slabs_.empty() ? options_.extra_bytes : 0;
  const auto free = [&](void* data) { static_cast<void>(calls_.free(data)); };
  const relaxed_capture relaxed{calls_};
  TMAP_TRY_CUDA(relaxed.code());
  make_room(slabs_, slabs_.size() + 1);
  std::unique_ptr<void, decltype(free)> owned{nullptr, free};
  if (memory == nullptr) {
    TMAP_TRY_CUDA(calls_.allocate(&memory, slab_bytes(capacity) + extra));
    owned.reset(memory);
  }
  const result<void> prepared = options_.prepare ? options_.prepare(memory, capacity) : result<void>{};
  if (!prepared) return prepared;
  ledger_.add_slab(capacity);
  slabs_.push_back({memory, capacity, owned.release() != nullptr});
  return {};
}

/// Adds a slab that has `count` slots; false if the limit forbids it.
result<bool> map_pool::grow(std::uint64_t count) {
  const std::uint64_t capacity = ledger_.counts().capacity;
  const std::uint64_t room = options_.max_capacity > capacity ? options_.max_capacity - capacity : 0;
  const std::uint64_t wanted = std::min({std::max(count, capacity), room, most_slots_of_a_slab});
  if (wanted < count) return false;
  if (const result<void> added = add_slab(wanted, nullptr); !added) return failure{added.error()};
  return true;
}

/// Records which of the stream's events have completed, the oldest first. Returns whether there was
/// one.
result<bool> map_pool::ask_events(stream_id stream) const {
  bool any = false;
  while (const auto event = ledger_.oldest_mark(stream)) {
    const cudaError_t code = calls_.query_event(static_cast<cudaEvent_t>(*event));
    if (code == cudaErrorNotReady) break;
    if (is_captured_event(code)) {
      support::clear_last_error(code);
      make_late(stream, *event);
      continue;
    }
    TMAP_TRY_CUDA(code);
    ledger_.complete_oldest_mark(stream);
    any = true;
  }
  return any;
}

/// Withdraws a mark whose event was recorded in a capture that began and ended during the release.
/// Such an event does not mark the stream, which must be marked again.
void map_pool::make_late(stream_id stream, event_handle event) const {
  const end_mark none = ledger_.withdraw_mark(stream, event);
  late_uses_.push_back({none.slots, {static_cast<cudaStream_t>(none.stream), stream, 0}});
  discard(static_cast<cudaEvent_t>(event));
}

/// Ends a graph's hold. Runs on one of CUDA's threads, so it calls no CUDA and takes no lock that
/// is held during a CUDA call.
void map_pool::drop(void* object) {
  auto* const hold = static_cast<graph_hold*>(object);
  inside_drop = true;
  {
    const std::shared_ptr<map_pool> pool = std::move(hold->pool);
    hold->next = pool->dropped_;
    while (!pool->dropped_.compare_exchange_weak(hold->next, hold)) {
    }
  }
  inside_drop = false;
}

void map_pool::collect_dropped() const {
  for (graph_hold* hold = dropped_.exchange(nullptr); hold != nullptr;) {
    ledger_.unpin(hold->slots);
    delete std::exchange(hold, hold->next);
  }
}

void map_pool::disown() {
  if (abandoned_) return;
  slot_counts now;
  {
    const std::lock_guard lock{mutex_};
    collect_dropped();
    now = ledger_.counts();
  }
  if (now.captured == 0) return;
  support::log_made(log_level::warning, [&] {
    return fmt::format(
        "a service ends while CUDA graphs hold {} of its {} slots: its device memory leaks, unless a batch outlives "
        "these graphs",
        now.captured, now.capacity);
  });
}

void map_pool::abandon() noexcept {
  abandoned_ = true;
}

slot_counts map_pool::counts() const {
  if (abandoned_) return {};
  const std::lock_guard lock{mutex_};
  collect_dropped();
  const relaxed_capture relaxed{calls_};
  for (auto stream = ledger_.marked_stream_above(0); stream; stream = ledger_.marked_stream_above(*stream)) {
    static_cast<void>(ask_events(*stream));
  }
  return ledger_.counts();
}

std::uint64_t map_pool::peak_in_use() const {
  const std::lock_guard lock{mutex_};
  return peak_in_use_;
}

std::uint64_t map_pool::cross_stream_reuses() const {
  const std::lock_guard lock{mutex_};
  return cross_stream_reuses_;
}

std::uint64_t map_pool::device_bytes() const {
  const std::lock_guard lock{mutex_};
  std::uint64_t bytes = options_.extra_bytes;
  for (const slab& part : slabs_) bytes += slab_bytes(part.capacity);
  return bytes;
}

void* map_pool::extra() const {
  const std::lock_guard lock{mutex_};
  return slab_part(slabs_.front().memory, slab_bytes(slabs_.front().capacity));
}

slot_range range_of(const lease& lease) {
  return lease.range;
}

std::uint32_t generation_of(const lease& lease) {
  return lease.generation;
}

}  // namespace tmap::pool
