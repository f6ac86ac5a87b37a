// SPDX-License-Identifier: Apache-2.0
#include "device/ring_model/explorer.hpp"

#include <cstring>
#include <string_view>
#include <type_traits>
#include <unordered_set>

namespace tmap::testing {
namespace {

constexpr std::uint32_t most_threads = 5;
constexpr std::uint32_t most_modelled_stages = 4;
constexpr std::uint8_t nothing = 0xff;  // marks a part of a stage that holds no whole tile

struct modelled_barrier {
  std::uint8_t phase;
  std::uint8_t pending;
  std::int8_t bytes;
};

/// Holds everything that the future depends on. It has no padding, so that its bytes can be
/// compared.
struct ring_state {
  std::uint64_t in_flight[most_threads];  // a bit for each step whose copy or store is in flight
  std::uint8_t next[most_threads];        // the next step of each thread
  modelled_barrier barriers[2 * most_modelled_stages];
  std::uint8_t held[most_modelled_stages][most_threads];  // the tile whose part each thread has filled
  std::uint8_t readers[most_modelled_stages];
  std::uint8_t unused[3];
};
static_assert(std::has_unique_object_representations_v<ring_state>);

struct state_hash {
  std::size_t operator()(const ring_state& s) const {
    return std::hash<std::string_view>{}({reinterpret_cast<const char*>(&s), sizeof(s)});
  }
};
struct state_equal {
  bool operator()(const ring_state& a, const ring_state& b) const { return std::memcmp(&a, &b, sizeof(a)) == 0; }
};

/// Starts fills and reads as soon as the previous step allows it, which is the worst moment. A read
/// ends as late as it can.
bool begins_at_once(act what) {
  return what == act::load || what == act::copy || what == act::write || what == act::read || what == act::store;
}

class explorer {
 public:
  explicit explorer(const ring_program& program) : program_(program) {}

  exploration run() {
    if (!fits()) return {"the program is too large for this explorer"};
    visit(first_state());
    while (!open_.empty() && found_.fault.empty()) {
      const ring_state s = open_.back();
      open_.pop_back();
      bool moved = false;
      for (std::uint32_t t = 0; t < program_.threads.size(); ++t) moved |= advance(s, t) | land_any(s, t);
      if (!moved && !has_ended(s)) found_.fault = "hangs: " + who_waits(s);
    }
    found_.states = seen_.size();
    return found_;
  }

 private:
  bool fits() const {
    bool fits = program_.threads.size() <= most_threads && program_.barrier_counts.size() <= 2 * most_modelled_stages;
    for (const thread_steps& steps : program_.threads) fits = fits && steps.size() <= 64;  // bits of `in_flight`
    return fits;
  }

  ring_state first_state() const {
    ring_state s{};
    for (std::size_t b = 0; b < program_.barrier_counts.size(); ++b) {
      s.barriers[b].pending = static_cast<std::uint8_t>(program_.barrier_counts[b]);
    }
    std::memset(s.held, nothing, sizeof(s.held));
    return s;
  }

  void visit(const ring_state& s) {
    if (seen_.insert(s).second) open_.push_back(s);
  }
  void fault(const char* what, std::uint32_t thread, const step& at) {
    if (found_.fault.empty()) {
      found_.fault = std::string(what) + ": thread " + std::to_string(thread) + ", tile " + std::to_string(at.tile);
    }
  }

  bool has_ended(const ring_state& s) const {
    for (std::uint32_t t = 0; t < program_.threads.size(); ++t) {
      if (s.next[t] != program_.threads[t].size() || s.in_flight[t] != 0) return false;
    }
    return true;
  }
  std::string who_waits(const ring_state& s) const {
    std::string waiting;
    for (std::uint32_t t = 0; t < program_.threads.size(); ++t) {
      if (s.next[t] == program_.threads[t].size()) continue;
      waiting += "thread " + std::to_string(t) + " at its step " + std::to_string(s.next[t]) + " ";
    }
    return waiting;
  }

  /// Lets thread `t` take one step, and starts what follows from it.
  bool advance(const ring_state& from, std::uint32_t t) {
    ring_state s = from;
    const thread_steps& steps = program_.threads[t];
    while (s.next[t] < steps.size() && steps[s.next[t]].what == act::end_read) --s.readers[steps[s.next[t]++].stage];
    if (s.next[t] == steps.size() || !may_go_on(s, t, steps[s.next[t]])) return false;
    do {
      perform(s, t, s.next[t]);
      ++s.next[t];
    } while (s.next[t] < steps.size() && begins_at_once(steps[s.next[t]].what));
    visit(s);
    return true;
  }

  /// Lets each copy in flight land next, and each store read next.
  bool land_any(const ring_state& from, std::uint32_t t) {
    bool landed = false;
    for (std::uint64_t left = from.in_flight[t]; left != 0; left &= left - 1) {
      const auto index = static_cast<std::uint32_t>(__builtin_ctzll(left));
      // A copy lands with its arrival, because no thread may rely on an earlier time.
      if (program_.threads[t][index].what == act::copy) continue;
      ring_state s = from;
      land(s, t, index);
      visit(s);
      landed = true;
    }
    return landed;
  }

  bool may_go_on(const ring_state& s, std::uint32_t t, const step& at) const {
    if (at.what == act::wait) return (s.barriers[at.barrier].phase & 1) != at.value;
    if (at.what != act::wait_stores) return true;
    std::uint32_t newer = 0;
    for (std::uint32_t i = s.next[t]; i-- > 0;) {
      if (program_.threads[t][i].what != act::store) continue;
      if (newer++ >= at.value && (s.in_flight[t] >> i & 1) != 0) return false;
    }
    return true;
  }

  void perform(ring_state& s, std::uint32_t t, std::uint32_t index) {
    const step& at = program_.threads[t][index];
    switch (at.what) {
      case act::wait:
      case act::wait_stores:
      case act::end_read: return;
      case act::arrive: return arrive(s, t, at);
      case act::arrive_expect: expect(s, at.barrier, static_cast<std::int32_t>(at.value)); return arrive(s, t, at);
      case act::arrive_later: s.in_flight[t] |= std::uint64_t{1} << index; return;
      case act::load:
      case act::copy:
        begin_filling(s, t, at);
        s.in_flight[t] |= std::uint64_t{1} << index;
        return;
      case act::write:
        begin_filling(s, t, at);
        s.held[at.stage][t] = static_cast<std::uint8_t>(at.tile);
        return;
      case act::read: return begin_reading(s, t, at);
      case act::store:
        begin_reading(s, t, at);
        s.in_flight[t] |= std::uint64_t{1} << index;
        return;
    }
  }

  void land(ring_state& s, std::uint32_t t, std::uint32_t index) {
    const step& at = program_.threads[t][index];
    s.in_flight[t] &= ~(std::uint64_t{1} << index);
    if (at.what == act::store) {
      --s.readers[at.stage];
    } else if (at.what == act::arrive_later) {
      land_copies_before(s, t, index);
      arrive(s, t, at);
    } else {
      s.held[at.stage][t] = static_cast<std::uint8_t>(at.tile);
      expect(s, at.barrier, -static_cast<std::int32_t>(at.value));
      complete(s, at.barrier);
    }
  }
  void land_copies_before(ring_state& s, std::uint32_t t, std::uint32_t index) {
    for (std::uint32_t i = 0; i < index; ++i) {
      const step& at = program_.threads[t][i];
      if ((s.in_flight[t] >> i & 1) == 0 || at.what != act::copy) continue;
      s.in_flight[t] &= ~(std::uint64_t{1} << i);
      s.held[at.stage][t] = static_cast<std::uint8_t>(at.tile);
    }
  }

  static void expect(ring_state& s, std::uint32_t barrier, std::int32_t bytes) {
    s.barriers[barrier].bytes = static_cast<std::int8_t>(s.barriers[barrier].bytes + bytes);
  }
  void arrive(ring_state& s, std::uint32_t t, const step& at) {
    if (s.barriers[at.barrier].pending == 0) return fault("arrives once more than the barrier counts", t, at);
    --s.barriers[at.barrier].pending;
    complete(s, at.barrier);
  }
  void complete(ring_state& s, std::uint32_t barrier) const {
    modelled_barrier& b = s.barriers[barrier];
    if (b.pending != 0 || b.bytes != 0) return;
    ++b.phase;
    b.pending = static_cast<std::uint8_t>(program_.barrier_counts[barrier]);
  }

  void begin_filling(ring_state& s, std::uint32_t t, const step& at) {
    if (s.readers[at.stage] != 0) fault("fills a stage that is still read", t, at);
    s.held[at.stage][t] = nothing;
  }
  void begin_reading(ring_state& s, std::uint32_t t, const step& at) {
    for (std::uint32_t filler = 0; filler < most_threads; ++filler) {
      const bool has_part = (program_.parts[at.tile] >> filler & 1) != 0;
      if (has_part && s.held[at.stage][filler] != at.tile) fault("reads a stage that lacks a part", t, at);
    }
    ++s.readers[at.stage];
  }

  exploration found_;
  const ring_program& program_;
  std::vector<ring_state> open_;
  std::unordered_set<ring_state, state_hash, state_equal> seen_;
};

}  // namespace

exploration explore(const ring_program& program) {
  return explorer(program).run();
}

}  // namespace tmap::testing
