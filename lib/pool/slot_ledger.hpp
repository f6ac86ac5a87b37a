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
/// The slab that was added as number `index`, from 0 on.
constexpr slot_window slab_window(std::uint64_t index) {
  constexpr std::uint64_t stride = std::uint64_t{1} << 32;
  return {index * stride, stride};
}

/// Bits that count up and leave out 0.
constexpr std::uint32_t next_generation(std::uint32_t generation) {
  return generation + 1 == 0 ? 1 : generation + 1;
}

/// An event behind the last use of a holding on one stream.
struct end_mark {
  event_handle event;
  std::uint64_t age;  ///< counts up over all marks
  holding* slots;
  stream_handle stream;
};

/// What one lease took, until all of it is lent again or free. Belongs to the ledger.
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

  /// Whether its slots may be lent again once its marks are behind the new user.
  bool returned() const { return !lent && graphs == 0 && unmarked == 0; }
};

/// Who has which slots, and what has to happen before others may: the books of a pool, without CUDA
/// and without a lock. Host memory is asked for by `add_slab`, `reserve_lease`, `reserve_stream`
/// and the questions only, which change nothing where they throw. What ends leases and takes slots
/// back never fails.
class slot_ledger {
 public:
  struct stream_mark {
    stream_id stream;
    end_mark mark;
  };

  void add_slab(std::uint64_t capacity);

  /// Host memory for one `lend`, for one stream of the lease, and for a slab added before it.
  void reserve_lease();
  /// Host memory for one `add_stream`, after `before` others, of other leases.
  void reserve_stream(holding* slots, std::uint64_t before = 0);

  // Windows within `bounds`, of a slab or all of them, in order of preference. None changes
  // anything.
  std::optional<slot_window> find_free(std::uint64_t count, const slot_window& bounds = all_slabs) const {
    return segments_.find_free(count, bounds);
  }
  /// Free slots, and slots returned on `stream` alone; around the first `most` leases returned
  /// there.
  std::optional<slot_window> find_own(std::uint64_t count, stream_id stream, std::size_t most,
                                      const slot_window& bounds = all_slabs) const;
  /// Free slots, and slots returned on any stream; around those returned first.
  std::optional<slot_window> find_returned(std::uint64_t count, const slot_window& bounds = all_slabs) const;
  /// The last mark in the window of each stream but `stream`: behind these the window is free for
  /// it.
  std::vector<stream_mark> marks_before(const slot_window& window, stream_id stream) const;

  /// Lends a window that one of the above found. After `reserve_lease` only.
  holding* lend(const slot_window& window);
  /// One stream more that the lease is used on. Before its end, and after `reserve_lease` or
  /// `reserve_stream` only.
  void add_stream(holding* slots);

  void pin(holding* slots);  ///< one more graph has it
  void unpin(holding* slots);

  /// The lease ends. As many calls of `mark` or `pass` follow as it has streams.
  void end(holding* slots);
  void mark(holding* slots, stream_id stream, event_handle event, stream_handle handle = nullptr);
  void pass(holding* slots);  ///< a stream that needs no mark

  /// Marks count up over all streams.
  std::uint64_t youngest_mark() const { return last_age_; }
  /// Whether a mark of the stream came after the one of this age.
  bool has_mark_since(stream_id stream, std::uint64_t age) const;

  /// Streams of leases, ended or not, that have no mark yet, and marks that are not known to be
  /// behind.
  std::uint64_t open_marks() const { return owed_marks_ + marked_; }

  /// Of the streams with marks that are not known to be behind, the next above this id.
  std::optional<stream_id> marked_stream_above(stream_id id) const;
  std::optional<event_handle> oldest_mark(stream_id stream) const;
  void complete_oldest_mark(stream_id stream);
  /// The stream's mark with this event was none: its lease has a stream without a mark again, and
  /// the event is the caller's.
  end_mark withdraw_mark(stream_id stream, event_handle event);

  /// An event that no mark needs any more, for any use. Comes back by `mark`, `give_back` or
  /// `retire`.
  std::optional<event_handle> borrow_event();
  void give_back(event_handle event);
  /// For an event that must not be used again and could not be destroyed.
  void retire(event_handle event);
  /// Tells `each(event)` of every event of the marks, idle or retired.
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
  // Each mark is in one of these lists. `reserve_marks` keeps their number at that of all events,
  // those borrowed included.
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
