// SPDX-License-Identifier: Apache-2.0
#pragma once

// Models the memory of several GPUs as PTX describes it, for programs of loads, stores, bulk
// copies, reductions and fences. It may do all that PTX allows such programs, except load buffering
// (below).
//
// Memory. Each word has a list of writes in coherence order (PTX ISA 8.9.6). A thread has a *view*:
// the oldest write of each word that it may still read. A read takes any write that is not older
// (8.10.6), by choice. A write goes anywhere after the view of its thread (8.10.1), by choice: also
// before writes that others made earlier, if nothing ordered the two. So a store that is late needs
// no queue.
//
// Two proxies. `generic` is the view of ordinary accesses, `async` that of bulk copies
// (9.7.9.25.2). Only a proxy fence of the thread, or of its block before a barrier, brings the one
// to the other.
//
// Left out: a read never returns a value that is written after it (load buffering). PTX allows that
// for relaxed accesses. It matters only to programs that announce by relaxed writes without a
// fence. The link has none, but credits whose thread has compared tags before (docs/peers.md).

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include <tmap/detail/peer_window.hpp>

#include "lib/simulator/ranks/memory.hpp"
#include "lib/simulator/ranks/scheduler.hpp"
#include "lib/simulator/ranks/view.hpp"

namespace tmap::ranks {

using detail::peer::has_come;

/// Names what a thread polls for.
struct awaited {
  place signal;
  std::uint32_t value;
  std::uint64_t deadline;
  std::optional<place> unless;  ///< a counter that ends the polling once it is raised
};

/// Names the packets that a thread polls for. They follow each other.
struct awaited_packets {
  place first;
  std::uint32_t count;
  std::uint32_t tag;
  std::uint64_t deadline;
  std::optional<place> unless;  ///< a counter that ends the polling once it is raised
};

/// Names what a reduction carries to those that acquire it.
enum class announced {
  nothing,  ///< relaxed
  fenced,   ///< relaxed, after a fence: what the thread knew at its last fence
  all,      ///< a release: what the thread knows
};

/// Each function of the lower part is an instruction of one thread, the first argument.
class machine {
 public:
  machine(std::uint32_t ranks, std::uint32_t blocks);

  std::uint32_t add(std::uint32_t rank, std::uint32_t block, std::function<void()> body);
  ending run(choices& by, std::unordered_set<std::uint64_t>* seen);
  scheduler& schedule() { return scheduler_; }
  std::uint32_t ranks() const { return ranks_; }
  place shared(std::uint32_t me, std::uint32_t word) const { return {ranks_ + threads_[me].block, word}; }

  /// Sets the initial value of a word, which is zero otherwise.
  void begin_with(place where, std::uint32_t value) { memory_.writes(memory_.at(where)).front().value = value; }
  /// Writes each step to a list from now on.
  void trace(std::vector<std::string>* to) { trace_ = to; }

  std::uint32_t load(std::uint32_t me, place from);
  void store(std::uint32_t me, place to, std::uint32_t value);

  void bulk_store(std::uint32_t me, place to, place from, std::uint32_t words);
  void wait_group_read(std::uint32_t me);
  void wait_group(std::uint32_t me);
  void wait_earlier_groups(std::uint32_t me);
  void bulk_load(std::uint32_t me, place to, place from, std::uint32_t words, std::uint32_t set = 0);
  void wait_mbarrier(std::uint32_t me, std::uint32_t set = 0);

  void reduce(std::uint32_t me, place signal, std::uint32_t by, announced what);
  std::uint32_t fetch_add(std::uint32_t me, place word, std::uint32_t by, announced what);
  bool poll(std::uint32_t me, const awaited& given, bool is_acquire);
  void store_packet(std::uint32_t me, place to, const detail::peer::packet& given);
  void keep(std::uint32_t me, place to, std::uint32_t value);
  /// Returns the words of all packets with their tags, or none if it polled in vain.
  std::vector<std::uint32_t> poll_packets(std::uint32_t me, const awaited_packets& given, bool is_acquire);

  void fence_acq_rel(std::uint32_t me);
  void fence_proxy_async(std::uint32_t me);
  void barrier(std::uint32_t me);
  bool barrier_or(std::uint32_t me, bool mine);
  void kernel_boundary(std::uint32_t me);

 private:
  /// A word of a bulk store whose source may not have been read yet, or that has not completed.
  struct stored_word {
    location from;
    location to;
    position at;
    bool is_source_read;
  };
  struct loaded_word {
    location from;
    location to;
    position oldest;    ///< the async view at the issue
    std::uint32_t set;  ///< whose barrier it completes on
  };
  struct thread_state {
    std::uint32_t rank;
    std::uint32_t block;
    view generic;
    view async;
    view completed;  ///< own bulk stores that a wait_group has seen, and no fence yet
    view fenced;     ///< the generic view at the last fence
    std::vector<stored_word> stores;
    std::vector<loaded_word> loads;
  };
  /// Threads that wait for each other.
  struct meeting {
    std::vector<std::uint32_t> members;
    std::uint32_t arrived{0};
    std::uint32_t generation{0};
    bool any{false};      ///< of those that have arrived, one passed true
    bool any_met{false};  ///< the same of the last ones that met
  };

  position find(std::uint32_t me, location at, std::uint32_t value) const;
  bool ends_early(std::uint32_t me, location off, bool has_come);
  position find_tagged(std::uint32_t me, location at, std::uint32_t tag) const;
  std::vector<location> words_of(const awaited_packets& given);
  bool misses_one(std::uint32_t me, const std::vector<location>& words, std::uint32_t tag);
  position oldest_generic(const thread_state& me, location at) const;
  std::uint32_t read(location at, position oldest);
  position write_after(location at, position oldest, write what);
  void insert(location at, position before, write what);
  void let_loads_land(std::uint32_t me);
  void offer_to_late_reads(location at, std::uint32_t value);
  void note(std::uint32_t me, const char* what, place where, std::uint32_t value);
  void note(std::uint32_t me, const char* what);
  void meet(std::uint32_t me, meeting& with, bool joins_proxies);
  void clear();
  std::uint64_t hash() const;

  std::uint32_t ranks_;
  memory memory_;
  scheduler scheduler_;
  std::vector<thread_state> threads_;
  std::vector<meeting> of_blocks_;
  std::vector<meeting> of_ranks_;
  std::vector<std::string>* trace_{nullptr};
  std::function<std::uint64_t()> hash_{[this] { return hash(); }};
};

}  // namespace tmap::ranks
