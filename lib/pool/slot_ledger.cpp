// SPDX-License-Identifier: Apache-2.0
#include "lib/pool/slot_ledger.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tmap::pool {
namespace {

auto place_of(holding& slots, std::list<end_mark>::iterator mark) {
  return std::find_if(slots.marks.begin(), slots.marks.end(),
                      [&](const holding::mark_place& candidate) { return candidate.mark == mark; });
}

bool used_only_on(const holding& slots, stream_id stream) {
  return std::all_of(slots.marks.begin(), slots.marks.end(),
                     [&](const holding::mark_place& place) { return place.stream == stream; });
}

}  // namespace

void slot_ledger::add_slab(std::uint64_t capacity) {
  segments_.reserve();
  segments_.add({slab_window(slabs_++).first, capacity});
  counts_.capacity += capacity;
  counts_.free += capacity;
}

void slot_ledger::reserve_lease() {
  if (spare_.empty()) spare_.emplace_back();
  reserve_stream(&spare_.back());
  segments_.reserve();
}

void slot_ledger::reserve_stream(holding* slots, std::uint64_t before) {
  slots->marks.reserve(slots->unmarked + 1);
  reserve_marks(before + 1);
}

/// Reserves `count` marks more than are owed, and one for the event of a call that leaves no mark.
/// Each open mark may be on a different stream.
void slot_ledger::reserve_marks(std::uint64_t count) {
  while (blank_marks_.size() < owed_marks_ + count + 1) blank_marks_.emplace_back();
  while (spare_queues_.size() + marks_.size() < open_marks() + count) spare_queues_.emplace();
}

template <class Usable>
std::optional<slot_window> slot_ledger::find_around(const holding& slots, std::uint64_t count, const Usable& usable,
                                                    segment_map::short_runs& noted) const {
  for (auto part = segments_.at(slots.window.first); part != segments_.end() && part->first < slots.window.end();
       ++part) {
    if (part->second.owner != &slots) continue;
    if (const auto window = segments_.find_around(part, count, usable, noted)) return window;
  }
  return std::nullopt;
}

std::optional<slot_window> slot_ledger::find_own(std::uint64_t count, stream_id stream, std::size_t most,
                                                 const slot_window& bounds) const {
  const auto own = marks_.find(stream);
  if (own == marks_.end() || count > counts_.free + counts_.pending) return std::nullopt;
  const auto usable = [&](const holding* slots) {
    return slots == nullptr || (slots->returned() && used_only_on(*slots, stream));
  };
  segment_map::short_runs noted;
  for (const end_mark& mark : own->second) {
    if (most-- == 0) break;
    if (!usable(mark.slots) || !bounds.contains(mark.slots->window.first)) continue;
    if (const auto window = find_around(*mark.slots, count, usable, noted)) return window;
  }
  return std::nullopt;
}

std::optional<slot_window> slot_ledger::find_returned(std::uint64_t count, const slot_window& bounds) const {
  if (count > counts_.free + counts_.pending) return std::nullopt;
  const auto usable = [](const holding* slots) { return slots == nullptr || slots->returned(); };
  segment_map::short_runs noted;
  for (const holding& slots : returned_) {
    if (!bounds.contains(slots.window.first)) continue;
    if (const auto window = find_around(slots, count, usable, noted)) return window;
  }
  return std::nullopt;
}

std::vector<slot_ledger::stream_mark> slot_ledger::marks_before(const slot_window& window, stream_id stream) const {
  std::vector<stream_mark> last;
  const auto note = [&](const holding::mark_place& place) {
    if (place.stream == stream) return;
    const auto known =
        std::find_if(last.begin(), last.end(), [&](const stream_mark& seen) { return seen.stream == place.stream; });
    if (known == last.end()) {
      last.push_back({place.stream, *place.mark});
    } else if (known->mark.age < place.mark->age) {
      known->mark = *place.mark;
    }
  };
  auto part = segments_.at(window.first + 1);
  for (--part; part != segments_.end() && part->first < window.end(); ++part) {
    if (part->second.owner == nullptr) continue;
    for (const holding::mark_place& place : part->second.owner->marks) note(place);
  }
  return last;
}

holding* slot_ledger::lend(const slot_window& window) {
  last_generation_ = next_generation(last_generation_);
  held_.splice(held_.end(), spare_, spare_.begin());
  holding& slots = held_.back();
  slots.window = window;
  slots.slots = window.count;
  slots.generation = last_generation_;
  slots.self = std::prev(held_.end());
  segments_.assign(window, &slots, [&](holding* former, std::uint64_t count) {
    if (former == nullptr) {
      counts_.free -= count;
    } else {
      lose(former, count);
    }
  });
  counts_.leased += window.count;
  return &slots;
}

void slot_ledger::add_stream(holding* slots) {
  ++slots->unmarked;
  ++owed_marks_;
}

void slot_ledger::pin(holding* slots) {
  change(slots, [&] { ++slots->graphs; });
}

void slot_ledger::unpin(holding* slots) {
  change(slots, [&] { --slots->graphs; });
}

void slot_ledger::end(holding* slots) {
  change(slots, [&] { slots->lent = false; });
}

void slot_ledger::mark(holding* slots, stream_id stream, event_handle event, stream_handle handle) {
  auto place = marks_.find(stream);
  if (place == marks_.end()) {
    auto queue = spare_queues_.extract(spare_queues_.begin());
    queue.key() = stream;
    place = marks_.insert(std::move(queue)).position;
  }
  std::list<end_mark>& queue = place->second;
  queue.splice(queue.end(), blank_marks_, blank_marks_.begin());
  queue.back() = {event, ++last_age_, slots, handle};
  slots->marks.push_back({stream, std::prev(queue.end())});
  ++marked_;
  pass(slots);
}

void slot_ledger::pass(holding* slots) {
  --owed_marks_;
  change(slots, [&] { --slots->unmarked; });
}

bool slot_ledger::has_mark_since(stream_id stream, std::uint64_t age) const {
  const auto queue = marks_.find(stream);
  return queue != marks_.end() && queue->second.back().age > age;
}

std::optional<stream_id> slot_ledger::marked_stream_above(stream_id id) const {
  const auto next = marks_.upper_bound(id);
  if (next == marks_.end()) return std::nullopt;
  return next->first;
}

std::optional<event_handle> slot_ledger::oldest_mark(stream_id stream) const {
  const auto queue = marks_.find(stream);
  if (queue == marks_.end()) return std::nullopt;
  return queue->second.front().event;
}

void slot_ledger::complete_oldest_mark(stream_id stream) {
  const auto oldest = marks_.at(stream).begin();
  holding* const slots = oldest->slots;
  const auto place = place_of(*slots, oldest);
  forget_mark(*place, idle_marks_);
  slots->marks.erase(place);
  if (slots->returned() && slots->marks.empty()) free(slots);
}

end_mark slot_ledger::withdraw_mark(stream_id stream, event_handle event) {
  std::list<end_mark>& queue = marks_.at(stream);
  const auto mark =
      std::find_if(queue.begin(), queue.end(), [&](const end_mark& candidate) { return candidate.event == event; });
  const end_mark withdrawn = *mark;
  const auto place = place_of(*mark->slots, mark);
  forget_mark(*place, blank_marks_);
  withdrawn.slots->marks.erase(place);
  if (withdrawn.slots->returned()) held_.splice(held_.end(), returned_, withdrawn.slots->self);
  ++withdrawn.slots->unmarked;
  ++owed_marks_;
  return withdrawn;
}

std::uint64_t& slot_ledger::count_of(const holding& slots) {
  if (slots.graphs != 0) return counts_.captured;
  return slots.lent ? counts_.leased : counts_.pending;
}

/// Changes what holds the slots, keeps the counts, and takes the slots back when nothing holds
/// them.
template <class Change>
void slot_ledger::change(holding* slots, const Change& change) {
  count_of(*slots) -= slots->slots;
  change();
  count_of(*slots) += slots->slots;
  if (!slots->returned()) return;
  returned_.splice(returned_.end(), held_, slots->self);
  if (slots->marks.empty()) free(slots);
}

void slot_ledger::free(holding* slots) {
  counts_.pending -= slots->slots;
  counts_.free += slots->slots;
  segments_.free(slots->window, slots);
  returned_.erase(slots->self);
}

/// Takes slots that were returned and are lent again before their marks are known to be complete.
void slot_ledger::lose(holding* slots, std::uint64_t count) {
  counts_.pending -= count;
  slots->slots -= count;
  if (slots->slots != 0) return;
  for (const holding::mark_place& place : slots->marks) forget_mark(place, idle_marks_);
  returned_.erase(slots->self);
}

void slot_ledger::forget_mark(const holding::mark_place& place, std::list<end_mark>& goes_to) {
  const auto queue = marks_.find(place.stream);
  goes_to.splice(goes_to.begin(), queue->second, place.mark);
  --marked_;
  if (queue->second.empty()) spare_queues_.insert(marks_.extract(queue));
}

std::optional<event_handle> slot_ledger::borrow_event() {
  if (idle_marks_.empty()) return std::nullopt;
  blank_marks_.splice(blank_marks_.begin(), idle_marks_, idle_marks_.begin());
  return blank_marks_.front().event;
}

void slot_ledger::give_back(event_handle event) {
  idle_marks_.splice(idle_marks_.begin(), blank_marks_, blank_marks_.begin());
  idle_marks_.front().event = event;
}

/// Without a mark for it the event leaks. A context in which events cannot be destroyed is lost
/// anyway.
void slot_ledger::retire(event_handle event) {
  if (blank_marks_.empty()) return;
  retired_marks_.splice(retired_marks_.begin(), blank_marks_, blank_marks_.begin());
  retired_marks_.front().event = event;
}

}  // namespace tmap::pool
