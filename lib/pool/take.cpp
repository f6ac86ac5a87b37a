// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "lib/pool/graph_hold.hpp"
#include "lib/pool/lease.hpp"
#include "lib/pool/map_pool.hpp"
#include "lib/pool/relaxed_capture.hpp"
#include "lib/pool/spread.hpp"
#include "lib/support/arguments.hpp"
#include "lib/support/check.hpp"

// Begins leases. All host memory is allocated first, also that for their end, so that nothing fails
// half-way.

namespace tmap::pool {
namespace {

/// The number of its own returned leases that a stream checks before it queries events. Completed
/// pieces that are too small are joined again.
constexpr std::size_t quick_look = 8;
constexpr std::size_t long_look = ~std::size_t{0};

}  // namespace

result<lease_ptr> map_pool::take(std::uint64_t count, cudaStream_t stream, const void* only_in,
                                 const read_leases& read) {
  if (count == 0) return support::refused("count", "is {found}; it must be at least {allowed}", count, 1);
  if (abandoned_) return service_is_dead();
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

}  // namespace tmap::pool
