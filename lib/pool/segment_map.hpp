// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace tmap::pool {

struct holding;

/// Contiguous slots. `first` is an address: the number of the slab times 2^32, plus the slot's
/// index in it.
struct slot_window {
  std::uint64_t first;
  std::uint64_t count;
  std::uint64_t end() const { return first + count; }
  bool contains(std::uint64_t address) const { return address - first < count; }
};

/// All slots of a pool in the order of their addresses, cut into segments of one owner each. Null
/// owns the free segments, of which neighbours are joined. Slabs never touch, because each has less
/// than 2^32 slots. Only `reserve` allocates host memory.
class segment_map {
 public:
  using sizes = std::set<std::pair<std::uint64_t, std::uint64_t>>;  ///< {count, first}
  struct segment {
    std::uint64_t count;
    holding* owner;
    sizes::node_type size;  ///< empty while it is among the free ones' sizes
  };
  using segments = std::map<std::uint64_t, segment>;
  using position = segments::const_iterator;
  /// Runs of segments that are known to be too short: from begin to end.
  using short_runs = std::map<std::uint64_t, std::uint64_t>;

  position begin() const { return segments_.begin(); }
  position end() const { return segments_.end(); }
  position at(std::uint64_t first) const { return segments_.lower_bound(first); }

  /// Allocates host memory for one `add` and one `assign`. If it throws, nothing has changed.
  void reserve();

  /// Adds free slots. Needs a `reserve` before.
  void add(const slot_window& window);

  /// Returns the smallest free segment within `bounds` that fits, the lowest of several.
  std::optional<slot_window> find_free(std::uint64_t count, const slot_window& bounds) const;

  /// Returns a window around `seed` whose owners are all `usable`. If there is none, notes the run
  /// as short.
  template <class Usable>
  std::optional<slot_window> find_around(position seed, std::uint64_t count, const Usable& usable,
                                         short_runs& noted) const;

  /// Gives a window to `owner`, and calls `former(owner, count)` for each part it is cut from.
  /// Needs a `reserve` before.
  template <class Former>
  void assign(const slot_window& window, holding* owner, const Former& former);

  /// Frees the slots of `owner` within `window`.
  void free(const slot_window& window, const holding* owner);

 private:
  using iterator = segments::iterator;

  iterator insert(position next, const slot_window& window, holding* owner);
  iterator split(std::uint64_t address);
  iterator join(iterator left, iterator right);
  void index_free(iterator part);
  void forget_free(iterator part);

  segments segments_;
  std::multimap<std::uint64_t, segment> spare_;  ///< for `insert`
  sizes free_by_size_;
};

template <class Usable>
std::optional<slot_window> segment_map::find_around(position seed, std::uint64_t count, const Usable& usable,
                                                    short_runs& noted) const {
  const auto known = noted.upper_bound(seed->first);
  if (known != noted.begin() && std::prev(known)->second > seed->first) return std::nullopt;
  slot_window run{seed->first, 0};
  for (position next = seed; next != end() && next->first == run.end() && usable(next->second.owner); ++next) {
    run.count += next->second.count;
    if (run.count >= count) return slot_window{run.first, count};
  }
  for (position next = seed; next != begin();) {
    --next;
    if (next->first + next->second.count != run.first || !usable(next->second.owner)) break;
    run = {next->first, run.count + next->second.count};
    if (run.count >= count) return slot_window{run.end() - count, count};
  }
  noted.emplace(run.first, run.end());
  return std::nullopt;
}

template <class Former>
void segment_map::assign(const slot_window& window, holding* owner, const Former& former) {
  const iterator first = split(window.first);
  const iterator last = split(window.end());
  for (iterator part = first; part != last; ++part) {
    if (part->second.owner == nullptr) forget_free(part);
    former(part->second.owner, part->second.count);
  }
  segments_.erase(std::next(first), last);
  first->second.count = window.count;
  first->second.owner = owner;
}

}  // namespace tmap::pool
