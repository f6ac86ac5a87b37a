// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/ranks/machine.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace tmap::ranks {

machine::machine(std::uint32_t ranks, std::uint32_t blocks)
    : ranks_(ranks), scheduler_(ranks), of_blocks_(blocks), of_ranks_(ranks) {}

std::uint32_t machine::add(std::uint32_t rank, std::uint32_t block, std::function<void()> body) {
  threads_.push_back({});
  threads_.back().rank = rank;
  threads_.back().block = block;
  const std::uint32_t number = scheduler_.add(rank, std::move(body));
  of_blocks_[block].members.push_back(number);
  of_ranks_[rank].members.push_back(number);
  return number;
}

ending machine::run(choices& by, std::unordered_set<std::uint64_t>* seen) {
  clear();
  return scheduler_.run(by, hash_, seen);
}

void machine::clear() {
  memory_.clear();
  for (thread_state& each : threads_) {
    each.generic.clear();
    each.async.clear();
    each.completed.clear();
    each.fenced.clear();
    each.stores.clear();
    each.loads.clear();
  }
  for (auto* const meetings : {&of_blocks_, &of_ranks_}) {
    for (meeting& each : *meetings) {
      each.arrived = each.generation = 0;
      each.any = each.any_met = false;
    }
  }
}

std::uint64_t machine::hash() const {
  std::uint64_t hash = memory_.hash();
  for (const thread_state& each : threads_) {
    for (const view* seen : {&each.generic, &each.async, &each.completed, &each.fenced}) hash = mix(hash, seen->hash());
    for (const stored_word& word : each.stores) {
      hash =
          mix(mix(hash, word.from), std::uint64_t{word.to} << 17 | std::uint64_t{word.at} << 1 | word.is_source_read);
    }
    for (const loaded_word& word : each.loads) {
      hash = mix(mix(hash, word.from), std::uint64_t{word.set} << 48 | std::uint64_t{word.to} << 16 | word.oldest);
    }
  }
  for (const auto* const meetings : {&of_blocks_, &of_ranks_}) {
    for (const meeting& each : *meetings) {
      hash = mix(hash, std::uint64_t{each.generation} << 32 | each.arrived << 2 | each.any << 1 | each.any_met);
    }
  }
  return hash;
}

/// Returns what an ordinary access of the thread may still read. Own bulk stores count as soon as
/// their completion was observed (PTX ISA 9.7.9.25.2).
position machine::oldest_generic(const thread_state& me, location at) const {
  return std::max(me.generic[at], me.completed[at]);
}

/// Reads a word by a weak operation: any write that is not older than `oldest` (PTX ISA 8.10.6).
/// The thread's view does not change, since weak reads of one word have no order (8.10.5 orders
/// morally strong ones only).
std::uint32_t machine::read(location at, position oldest) {
  const position newest = static_cast<position>(memory_.count(at) - 1);
  const std::uint32_t back = scheduler_.pick(static_cast<std::uint32_t>(newest - oldest + 1));
  write& found = memory_.writes(at)[newest - back];
  found.is_read = true;
  return found.value;
}

/// Writes a word by a weak operation, or a relaxed one: anywhere in coherence order after `oldest`
/// (PTX ISA 8.10.1).
position machine::write_after(location at, position oldest, write what) {
  const position end = memory_.count(at);
  const std::uint32_t back = scheduler_.pick(static_cast<std::uint32_t>(end - oldest));
  const position before = static_cast<position>(end - back);
  const std::uint32_t value = what.value;
  insert(at, before, std::move(what));
  offer_to_late_reads(at, value);
  return before;
}

void machine::insert(location at, position before, write what) {
  for (thread_state& each : threads_) {
    each.generic.make_room(at, before);
    each.async.make_room(at, before);
    each.completed.make_room(at, before);
    each.fenced.make_room(at, before);
    for (stored_word& word : each.stores) word.at += word.to == at && word.at >= before;
    for (loaded_word& word : each.loads) word.oldest += word.from == at && word.oldest >= before;
  }
  memory_.insert(at, before, std::move(what));
}

/// A bulk store reads its source at any time until `wait_group.read` (PTX ISA 9.7.9.25.4.1). It was
/// performed at its issue; if the source changes before the wait, it may as well have read the new
/// value, unless somebody has seen the old one.
void machine::offer_to_late_reads(location at, std::uint32_t value) {
  for (thread_state& each : threads_) {
    for (const stored_word& word : each.stores) {
      if (word.from != at || word.is_source_read) continue;
      write& target = memory_.writes(word.to)[word.at];
      if (!target.is_read && scheduler_.pick(2) == 1) target.value = value;
    }
  }
}

/// A bulk load writes shared memory at any time after its issue, also while a bulk store still
/// reads it. It is performed at its wait; a store whose source it overwrites may have read what it
/// brings.
void machine::let_loads_land(std::uint32_t me) {
  for (const stored_word& stored : threads_[me].stores) {
    if (stored.is_source_read) continue;
    for (const thread_state& each : threads_) {
      for (const loaded_word& loaded : each.loads) {
        if (loaded.to != stored.from || memory_.writes(stored.to)[stored.at].is_read) continue;
        if (scheduler_.pick(2) == 1) memory_.writes(stored.to)[stored.at].value = read(loaded.from, loaded.oldest);
      }
    }
  }
}

void machine::note(std::uint32_t me, const char* what, place where, std::uint32_t value) {
  if (trace_ == nullptr) return;
  const bool is_window = where.space < ranks_;
  const std::string space = is_window ? "window " + std::to_string(where.space) : "shared memory";
  note(
      me,
      (std::string(what) + " " + space + " word " + std::to_string(where.word) + ": " + std::to_string(value)).c_str());
}

void machine::note(std::uint32_t me, const char* what) {
  if (trace_ == nullptr) return;
  trace_->push_back("rank " + std::to_string(threads_[me].rank) + " thread " + std::to_string(me) + ": " + what);
}

}  // namespace tmap::ranks
