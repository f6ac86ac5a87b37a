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
using event_handle = void*;  ///< what it is only the pool knows

/// Bits that count up and leave out 0.
constexpr std::uint32_t next_generation(std::uint32_t generation) {
  return generation + 1 == 0 ? 1 : generation + 1;
}

/// An event behind the last use of a holding on one stream.
struct end_mark {
  event_handle event;
  std::uint64_t age;  ///< counts up over all marks
  holding* slots;
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
  std::uint64_t unmarked{};    ///< streams of the ended lease without an event yet
  std::vector<mark_place> marks{};
  std::list<holding>::iterator self{};

  /// Whether its slots may be lent again once its marks are behind the new user.
  bool returned() const { return !lent && graphs == 0 && unmarked == 0; }
};

/// Who has which slots, and what has to happen before others may: the books of a pool, without CUDA and without a lock.
class slot_ledger {
 public:
  struct stream_mark {
    stream_id stream;
    end_mark mark;
  };

  void add_slab(std::uint64_t capacity);

  // Windows in order of preference. None changes anything.
  std::optional<slot_window> find_free(std::uint64_t count) const { return segments_.find_free(count); }
  /// Free slots, and slots returned on `stream` alone; around the first `most` leases returned there.
  std::optional<slot_window> find_own(std::uint64_t count, stream_id stream, std::size_t most) const;
  /// Free slots, and slots returned on any stream; around those returned first.
  std::optional<slot_window> find_returned(std::uint64_t count) const;
  /// The last mark in the window of each stream but `stream`: behind these the window is free for it.
  std::vector<stream_mark> marks_before(const slot_window& window, stream_id stream) const;

  /// Lends a window that one of the above found.
  holding* lend(const slot_window& window);

  void pin(holding* slots);  ///< one more graph has it
  void unpin(holding* slots);

  /// The lease ends. As many calls of `mark` or `pass` follow as it has streams.
  void end(holding* slots, std::uint64_t streams);
  void mark(holding* slots, stream_id stream, event_handle event);
  void pass(holding* slots);  ///< a stream that needs no mark

  /// Marks count up over all streams.
  std::uint64_t youngest_mark() const { return last_age_; }
  /// Whether a mark of the stream came after the one of this age.
  bool has_mark_since(stream_id stream, std::uint64_t age) const;

  /// Streams with marks that are not known to be behind.
  std::vector<stream_id> marked_streams() const;
  std::optional<event_handle> oldest_mark(stream_id stream) const;
  void complete_oldest_mark(stream_id stream);

  /// Events that nobody needs any more, for any use.
  std::vector<event_handle>& idle_events() { return idle_events_; }

  const slot_counts& counts() const { return counts_; }

 private:
  template <class Change>
  void change(holding* slots, const Change& change);
  std::uint64_t& count_of(const holding& slots);
  void free(holding* slots);
  void lose(holding* slots, std::uint64_t count);
  void forget_mark(const holding::mark_place& place);
  template <class Usable>
  std::optional<slot_window> find_around(const holding& slots, std::uint64_t count, const Usable& usable,
                                         segment_map::short_runs& noted) const;

  segment_map segments_;
  std::uint64_t slabs_{};
  slot_counts counts_;
  std::uint32_t last_generation_{};
  std::uint64_t last_age_{};
  std::list<holding> held_;
  std::list<holding> returned_;  ///< in that order
  std::map<stream_id, std::list<end_mark>> marks_;
  std::vector<event_handle> idle_events_;
};

}  // namespace tmap::pool
