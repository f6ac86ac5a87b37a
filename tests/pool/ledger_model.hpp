// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "lib/pool/slot_ledger.hpp"

// A naive model of the ledger that tracks each slot separately.

namespace tmap::testing {

using pool::holding;
using pool::slot_window;
using pool::stream_id;

inline constexpr std::uint64_t slab_capacity = 48;
inline constexpr stream_id stream_count = 3;
inline constexpr std::size_t all = ~std::size_t{0};

/// Records one lease of the model.
struct model_lease {
  bool lent{true};
  std::uint32_t graphs{};
  std::uint64_t unmarked{};
  std::map<stream_id, std::uint64_t> marks;  ///< the number of the event
  std::uint64_t slots{};

  bool is_returned() const { return !lent && graphs == 0 && unmarked == 0; }
};

inline void add_streams(pool::slot_ledger& ledger, holding* slots, std::uint64_t streams) {
  for (std::uint64_t stream = 0; stream < streams; ++stream) {
    ledger.reserve_stream(slots);
    ledger.add_stream(slots);
  }
}

class model {
 public:
  model() {
    for (std::uint64_t slab = 0; slab < 2; ++slab) {
      ledger.add_slab(slab_capacity);
      for (std::uint64_t slot = 0; slot < slab_capacity; ++slot) owners_[(slab << 32) + slot] = nullptr;
    }
  }

  /// Returns the length of the shortest run of usable slots with at least `count`; 0 if there is
  /// none.
  template <class Usable>
  std::uint64_t best_run(std::uint64_t count, const Usable& usable) {
    std::uint64_t best = 0;
    std::uint64_t run = 0;
    std::uint64_t expected = 0;
    const auto close = [&] {
      if (run >= count && (best == 0 || run < best)) best = run;
      run = 0;
    };
    for (const auto& [address, owner] : owners_) {
      if (address != expected) close();
      expected = address + 1;
      if (usable(owner)) {
        ++run;
      } else {
        close();
      }
    }
    close();
    return best;
  }

  template <class Usable>
  void check(const std::optional<slot_window>& found, std::uint64_t count, const Usable& usable, const char* what) {
    ASSERT_EQ(found.has_value(), best_run(count, usable) != 0) << what;
    if (!found) return;
    ASSERT_EQ(found->count, count);
    for (std::uint64_t slot = 0; slot < count; ++slot) ASSERT_TRUE(usable(owners_.at(found->first + slot))) << what;
  }

  bool is_free(const holding* owner) const { return owner == nullptr; }
  bool is_own(const holding* owner, stream_id stream) {
    if (owner == nullptr) return true;
    const model_lease& lease = leases_.at(owner);
    if (!lease.is_returned()) return false;
    return std::all_of(lease.marks.begin(), lease.marks.end(), [&](const auto& mark) { return mark.first == stream; });
  }
  bool is_returned(const holding* owner) { return owner == nullptr || leases_.at(owner).is_returned(); }

  void check_finds(std::uint64_t count, stream_id stream) {
    const auto free = ledger.find_free(count);
    check(
        free, count, [&](const holding* owner) { return is_free(owner); }, "free");
    if (free) {
      const std::uint64_t best = best_run(count, [&](const holding* owner) { return is_free(owner); });
      ASSERT_EQ(run_at(free->first), best) << "the smallest piece";
    }
    if (!free) {
      check(
          ledger.find_own(count, stream, all), count, [&](const holding* owner) { return is_own(owner, stream); },
          "own");
      check(
          ledger.find_returned(count), count, [&](const holding* owner) { return is_returned(owner); }, "returned");
    }
  }

  void check_marks(const slot_window& window, stream_id stream) {
    std::map<stream_id, std::uint64_t> last;
    for (std::uint64_t slot = 0; slot < window.count; ++slot) {
      const holding* const owner = owners_.at(window.first + slot);
      if (owner == nullptr) continue;
      for (const auto& [user, event] : leases_.at(owner).marks) {
        if (user != stream) last[user] = std::max(last[user], event);
      }
    }
    const auto marks = ledger.marks_before(window, stream);
    ASSERT_EQ(marks.size(), last.size());
    for (const auto& mark : marks) ASSERT_EQ(reinterpret_cast<std::uintptr_t>(mark.mark.event), last.at(mark.stream));
  }

  void lend(const slot_window& window) {
    ledger.reserve_lease();
    const holding* const slots = ledger.lend(window);
    ASSERT_TRUE(generations_.insert(slots->generation).second);
    for (std::uint64_t slot = 0; slot < window.count; ++slot) {
      const holding*& owner = owners_.at(window.first + slot);
      if (owner != nullptr && --leases_.at(owner).slots == 0) leases_.erase(owner);
    }
    for (std::uint64_t slot = 0; slot < window.count; ++slot) owners_.at(window.first + slot) = slots;
    leases_[slots] = {.marks = {}, .slots = window.count};
  }

  template <class Choose>
  holding* pick(const Choose& choose, std::mt19937_64& random) {
    std::vector<const holding*> fitting;
    for (const auto& [slots, lease] : leases_) {
      if (choose(lease)) fitting.push_back(slots);
    }
    if (fitting.empty()) return nullptr;
    std::sort(fitting.begin(), fitting.end(),
              [](const holding* a, const holding* b) { return a->generation < b->generation; });
    return const_cast<holding*>(fitting[random() % fitting.size()]);
  }

  void pin(holding* slots) {
    ++leases_.at(slots).graphs;
    ledger.pin(slots);
  }
  void unpin(holding* slots) {
    --leases_.at(slots).graphs;
    settle(slots);
    ledger.unpin(slots);
  }
  void end(holding* slots, std::uint64_t streams) {
    leases_.at(slots).lent = false;
    leases_.at(slots).unmarked = streams;
    settle(slots);
    add_streams(ledger, slots, streams);
    ledger.end(slots);
  }
  void mark(holding* slots, stream_id stream) {
    model_lease& lease = leases_.at(slots);
    --lease.unmarked;
    lease.marks[stream] = ++events_;
    ledger.mark(slots, stream, reinterpret_cast<pool::event_handle>(static_cast<std::uintptr_t>(events_)));
  }
  void pass(holding* slots) {
    --leases_.at(slots).unmarked;
    settle(slots);
    ledger.pass(slots);
  }
  void complete(stream_id stream) {
    const auto event = ledger.oldest_mark(stream);
    const holding* oldest = nullptr;
    std::uint64_t expected = ~std::uint64_t{0};
    for (const auto& [slots, lease] : leases_) {
      const auto own = lease.marks.find(stream);
      if (own == lease.marks.end() || own->second >= expected) continue;
      oldest = slots;
      expected = own->second;
    }
    ASSERT_EQ(event.has_value(), oldest != nullptr);
    if (!event) return;
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(*event), expected) << "the oldest first";
    leases_.at(oldest).marks.erase(stream);
    settle(oldest);
    ledger.complete_oldest_mark(stream);
  }

  void check_counts() const {
    slot_counts sums{.capacity = owners_.size()};
    for (const auto& [address, owner] : owners_) {
      if (owner == nullptr) {
        ++sums.free;
        continue;
      }
      const model_lease& lease = leases_.at(owner);
      ++(lease.graphs != 0 ? sums.captured : lease.lent ? sums.leased : sums.pending);
    }
    const slot_counts& counts = ledger.counts();
    ASSERT_EQ(counts.capacity, sums.capacity);
    ASSERT_EQ(counts.free, sums.free);
    ASSERT_EQ(counts.leased, sums.leased);
    ASSERT_EQ(counts.pending, sums.pending);
    ASSERT_EQ(counts.captured, sums.captured);
  }

  pool::slot_ledger ledger;

 private:
  std::uint64_t run_at(std::uint64_t address) const {
    std::uint64_t length = 0;
    for (auto slot = owners_.find(address); slot != owners_.end() && slot->first == address + length; ++slot) {
      if (slot->second != nullptr) break;
      ++length;
    }
    return length;
  }

  /// Frees the slots of a lease that nothing holds any more.
  void settle(const holding* slots) {
    const model_lease& lease = leases_.at(slots);
    if (!lease.is_returned() || !lease.marks.empty()) return;
    for (auto& [address, owner] : owners_) {
      if (owner == slots) owner = nullptr;
    }
    leases_.erase(slots);
  }

  std::map<std::uint64_t, const holding*> owners_;
  std::map<const holding*, model_lease> leases_;
  std::set<std::uint32_t> generations_;
  std::uint64_t events_{};
};

}  // namespace tmap::testing
