// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/slot_counts.hpp>

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include "lib/pool/segment_map.hpp"

namespace tmap::pool {

using stream_id = std::uint64_t;
using event_handle = void*;   ///< what it is only the pool knows
using stream_handle = void*;  ///< the same

inline constexpr slot_window all_slabs{0, ~std::uint64_t{0}};
/// Returns the addresses of the slab with number `index`, from 0 on.
constexpr slot_window slab_window(std::uint64_t index) {
  constexpr std::uint64_t stride = std::uint64_t{1} << 32;
  return {index * stride, stride};
}

/// Counts up and skips 0.
constexpr std::uint32_t next_generation(std::uint32_t generation) {
  return generation + 1 == 0 ? 1 : generation + 1;
}

/// An event after the last use of a holding on one stream.
struct end_mark {
  event_handle event;
  std::uint64_t age;  ///< counts up over all marks
  holding* slots;
  stream_handle stream;
};

/// The slots of one lease, until all of them are lent again or free. Belongs to the ledger.
struct holding {
  struct mark_place {
    stream_id stream;
    std::list<end_mark>::iterator mark;
  };

  slot_window window{};        ///< as it was lent
  std::uint64_t slots{};       ///< of the window that are still its own
  std::uint32_t generation{};  ///< of the lease
  bool lent{true};             ///< whether a batch has it
  std::uint32_t graphs{};      ///< that have it
  std::uint64_t unmarked{};    ///< streams of the lease without an event yet
  std::vector<mark_place> marks{};
  std::list<holding>::iterator self{};

  /// Whether its slots may be lent again to a user that comes after its marks.
  bool returned() const { return !lent && graphs == 0 && unmarked == 0; }
};

/// Records who has which slots, and what must happen before others get them: the books of a pool,
/// without CUDA and without a lock. Only `add_slab`, `reserve_lease`, `reserve_stream` and queries
/// allocate host memory, and change nothing if they throw. Functions that end leases and take slots
/// back never fail.
class slot_ledger {
 public:
  struct stream_mark {
    stream_id stream;
    end_mark mark;
  };

  void add_slab(std::uint64_t capacity);

  /// Allocates host memory for one `lend`, for one stream of the lease, and for a slab added before
  /// it.
  void reserve_lease();
  /// Allocates host memory for one `add_stream`, after `before` others of other leases.
  void reserve_stream(holding* slots, std::uint64_t before = 0);

  // Find windows within `bounds`, one slab or all, in order of preference. They change nothing.
  std::optional<slot_window> find_free(std::uint64_t count, const slot_window& bounds = all_slabs) const {
    return segments_.find_free(count, bounds);
  }
  /// Finds free slots and slots returned on `stream` alone, around the first `most` leases returned
  /// there.
  std::optional<slot_window> find_own(std::uint64_t count, stream_id stream, std::size_t most,
                                      const slot_window& bounds = all_slabs) const;
  /// Finds free slots and slots returned on any stream, around those returned first.
  std::optional<slot_window> find_returned(std::uint64_t count, const slot_window& bounds = all_slabs) const;
  /// Returns the last mark in the window of each stream except `stream`. After these the window is
  /// free for `stream`.
  std::vector<stream_mark> marks_before(const slot_window& window, stream_id stream) const;

  /// Lends a window that one of the above found. Needs a `reserve_lease` before.
  holding* lend(const slot_window& window);
  /// Adds a stream that the lease is used on, before the lease ends. Needs a `reserve_lease` or
  /// `reserve_stream` before.
  void add_stream(holding* slots);

  void pin(holding* slots);  ///< one more graph has it
  void unpin(holding* slots);

  /// Ends the lease. A call of `mark` or `pass` must follow for each of its streams.
  void end(holding* slots);
  void mark(holding* slots, stream_id stream, event_handle event, stream_handle handle = nullptr);
  void pass(holding* slots);  ///< a stream that needs no mark

  /// Returns the age of the youngest mark. Ages count up over all streams.
  std::uint64_t youngest_mark() const { return last_age_; }
  /// Whether the stream has a mark younger than this age.
  bool has_mark_since(stream_id stream, std::uint64_t age) const;

  /// Counts the streams of leases, ended or not, that have no mark yet, and the marks that are not
  /// known to be complete.
  std::uint64_t open_marks() const { return owed_marks_ + marked_; }

  /// Returns the next stream above this id with marks that are not known to be complete.
  std::optional<stream_id> marked_stream_above(stream_id id) const;
  std::optional<event_handle> oldest_mark(stream_id stream) const;
  void complete_oldest_mark(stream_id stream);
  /// Removes the stream's mark with this event, which marked nothing. Its lease has a stream
  /// without a mark again, and the event belongs to the caller.
  end_mark withdraw_mark(stream_id stream, event_handle event);

  /// Returns an event that no mark needs any more. Return it by `mark`, `give_back` or `retire`.
  std::optional<event_handle> borrow_event();
  void give_back(event_handle event);
  /// Keeps an event that must not be used again and could not be destroyed.
  void retire(event_handle event);
  /// Calls `each(event)` for every event: of marks, idle or retired.
  template <class Each>
  void for_each_event(const Each& each) const;

  const slot_counts& counts() const { return counts_; }

 private:
  template <class Change>
  void change(holding* slots, const Change& change);
  std::uint64_t& count_of(const holding& slots);
  void reserve_marks(std::uint64_t count);
  void free(holding* slots);
  void lose(holding* slots, std::uint64_t count);
  void forget_mark(const holding::mark_place& place, std::list<end_mark>& goes_to);
  template <class Usable>
  std::optional<slot_window> find_around(const holding& slots, std::uint64_t count, const Usable& usable,
                                         segment_map::short_runs& noted) const;

  segment_map segments_;
  std::uint64_t slabs_{};
  slot_counts counts_;
  std::uint32_t last_generation_{};
  std::uint64_t last_age_{};
  std::list<holding> spare_;  ///< at most one
  std::list<holding> held_;
  std::list<holding> returned_;  ///< in that order
  std::uint64_t owed_marks_{};
  std::uint64_t marked_{};  ///< marks in `marks_`
  // Each mark is in one of these lists. `reserve_marks` keeps at least as many marks as there are
  // events, including borrowed ones.
  std::map<stream_id, std::list<end_mark>> marks_;
  std::list<end_mark> blank_marks_;                             ///< without an event
  std::list<end_mark> idle_marks_;                              ///< whose event is idle
  std::list<end_mark> retired_marks_;                           ///< whose event is retired
  std::multimap<stream_id, std::list<end_mark>> spare_queues_;  ///< for streams that have no mark yet
};

template <class Each>
void slot_ledger::for_each_event(const Each& each) const {
  for (const auto& [stream, queue] : marks_) {
    for (const end_mark& mark : queue) each(mark.event);
  }
  for (const end_mark& mark : idle_marks_) each(mark.event);
  for (const end_mark& mark : retired_marks_) each(mark.event);
}

}  // namespace tmap::pool
