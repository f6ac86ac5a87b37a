// SPDX-License-Identifier: Apache-2.0
// The instructions of the machine. Each names the section of the PTX ISA 9.0 that it follows.
#include <utility>

#include "lib/simulator/ranks/machine.hpp"

namespace tmap::ranks {

/// ld.weak (8.4): reads any write that causality does not rule out.
std::uint32_t machine::load(std::uint32_t me, place from) {
  scheduler_.step(me);
  const location at = memory_.at(from);
  const std::uint32_t value = read(at, oldest_generic(threads_[me], at));
  scheduler_.remember(me, value);
  note(me, "load", from, value);
  return value;
}

/// st.weak (8.4): precedes the thread's later accesses of the word in program order (8.9.5).
void machine::store(std::uint32_t me, place to, std::uint32_t value) {
  scheduler_.step(me);
  const location at = memory_.at(to);
  thread_state& self = threads_[me];
  self.generic.raise(at, write_after(at, oldest_generic(self, at), {value}));
  note(me, "store", to, value);
}

/// cp.async.bulk to global memory (9.7.9.25.4.1): a weak operation of the async proxy. It reads its
/// source as the async proxy sees it, and nobody knows of its writes, not even the thread, until
/// the group has completed. No order among bulk copies, nor of the words of one.
void machine::bulk_store(std::uint32_t me, place to, place from, std::uint32_t words) {
  scheduler_.step(me);
  for (std::uint32_t i = 0; i < words; ++i) {
    const location source = memory_.at({from.space, from.word + i});
    const location target = memory_.at({to.space, to.word + i});
    const std::uint32_t value = read(source, threads_[me].async[source]);
    const position at = write_after(target, threads_[me].async[target], {value});
    threads_[me].stores.push_back({source, target, at, false});
    note(me, "bulk store to", {to.space, to.word + i}, value);
  }
}

/// cp.async.bulk.wait_group.read 0 (9.7.9.25.4): the sources have been read, and that is all.
void machine::wait_group_read(std::uint32_t me) {
  scheduler_.step(me);
  let_loads_land(me);
  for (stored_word& word : threads_[me].stores) word.is_source_read = true;
  note(me, "wait_group.read");
}

/// cp.async.bulk.wait_group 0 (9.7.9.25.4): all stores have completed. The implicit proxy fence of
/// 9.7.9.25.2 makes them visible to the thread that observed it. PTX does not state whether a
/// later release carries them to others, so only fence_acq_rel makes them part of its announcement.
void machine::wait_group(std::uint32_t me) {
  scheduler_.step(me);
  let_loads_land(me);
  thread_state& self = threads_[me];
  for (const stored_word& word : self.stores) self.completed.raise(word.to, word.at);
  self.stores.clear();
  note(me, "wait_group");
}

/// cp.async.bulk.wait_group 1, in a program that ends each group by a `wait_group.read`: the stores
/// before the last of these have completed.
void machine::wait_earlier_groups(std::uint32_t me) {
  scheduler_.step(me);
  thread_state& self = threads_[me];
  std::vector<stored_word> open;
  for (const stored_word& word : std::exchange(self.stores, {})) {
    if (!word.is_source_read) {
      open.push_back(word);
    } else {
      self.completed.raise(word.to, word.at);
    }
  }
  self.stores = std::move(open);
  note(me, "wait_group 1");
}

/// cp.async.bulk to shared memory (9.7.9.25.4.1): reads as the async proxy sees the source now, or
/// later.
void machine::bulk_load(std::uint32_t me, place to, place from, std::uint32_t words, std::uint32_t set) {
  scheduler_.step(me);
  for (std::uint32_t i = 0; i < words; ++i) {
    const location source = memory_.at({from.space, from.word + i});
    threads_[me].loads.push_back({source, memory_.at({to.space, to.word + i}), threads_[me].async[source], set});
  }
  note(me, "bulk load from", from, words);
}

/// A wait for the mbarrier of a set of bulk loads (9.7.9.25.2): they have completed, and both
/// proxies of the block see the result. Performed here, a load may return all that it could have at
/// any time since its issue.
void machine::wait_mbarrier(std::uint32_t me, std::uint32_t set) {
  scheduler_.step(me);
  thread_state& self = threads_[me];
  std::vector<loaded_word> others;
  for (const loaded_word& word : std::exchange(self.loads, {})) {
    if (word.set != set) {
      others.push_back(word);
      continue;
    }
    const std::uint32_t value = read(word.from, word.oldest);
    const position at = write_after(word.to, self.async[word.to], {value});
    self.generic.raise(word.to, at);
    self.async.raise(word.to, at);
    note(me, "bulk load brings", memory_.where(word.from), value);
  }
  self.loads = std::move(others);
}

/// red.sys.add (8.10.3): atomic, so it follows the newest write directly. Another place in
/// coherence order is what another schedule gives. A release carries the thread's view, and a
/// relaxed one after a fence the view at the fence (8.8, release patterns). Both carry all releases
/// that they follow through reductions (8.9.2, observation order).
void machine::reduce(std::uint32_t me, place signal, std::uint32_t by, announced what) {
  scheduler_.step(me);
  const location at = memory_.at(signal);
  thread_state& self = threads_[me];
  const position end = memory_.count(at);
  write next = memory_.writes(at).back();
  next.value += by;
  next.is_read = true;
  next.is_release |= what != announced::nothing;
  if (what == announced::all) next.released.join(self.generic);
  if (what == announced::fenced) next.released.join(self.fenced);
  note(me, what == announced::all ? "red.release" : "red.relaxed", signal, next.value);
  insert(at, end, std::move(next));
  self.generic.raise(at, end);
}

/// atom.add (9.7.13.3): a reduction that returns what the word was. It is relaxed, or acq_rel if it
/// announces something: then this thread also sees what those announced that added before.
std::uint32_t machine::fetch_add(std::uint32_t me, place word, std::uint32_t by, announced what) {
  reduce(me, word, by, what);
  const write& added = memory_.writes(memory_.at(word)).back();
  const std::uint32_t before = added.value - by;
  if (what != announced::nothing) threads_[me].generic.join(added.released);
  scheduler_.remember(me, before);
  return before;
}

/// Returns the oldest write that ends a thread's polling; `count` if there is none yet.
position machine::find(std::uint32_t me, location at, std::uint32_t value) const {
  position found = threads_[me].generic[at];
  while (found < memory_.count(at) && !has_come(memory_.writes(at)[found].value, value)) ++found;
  return found;
}

/// Returns whether a thread stops polling because the counter `off` was raised. It may find either
/// if what it waits for has come as well.
bool machine::ends_early(std::uint32_t me, location off, bool has_come) {
  if (has_come && scheduler_.pick(2) == 0) return false;
  scheduler_.remember(me, 2);
  threads_[me].generic.raise(off, find(me, off, 1));
  return true;
}

/// Polls by ld.relaxed.sys until the counter has come to the value, then reads it by ld.acquire.sys
/// (8.8). The oldest write that ends the polling teaches least, so no newer one need be tried.
/// Strong reads of a word have an order (8.10.5), so the view of the signal itself moves.
///
/// Each round reads the signal first, and then the word that ends the polling. If both have come, a
/// thread that was not sure to see the signal may find either.
bool machine::poll(std::uint32_t me, const awaited& given, bool is_acquire) {
  const location at = memory_.at(given.signal);
  const location off = memory_.at(given.unless.value_or(given.signal));
  const bool is_known = find(me, at, given.value) == threads_[me].generic[at];  // then no read can miss it
  const auto has_signal = [&] { return find(me, at, given.value) < memory_.count(at); };
  const auto is_off = [&] { return given.unless && !is_known && find(me, off, 1) < memory_.count(off); };
  const bool is_late = !scheduler_.step(
      me, [&] { return has_signal() || is_off(); }, is_known ? never : given.deadline);
  const bool is_vain = is_late || (is_off() && ends_early(me, off, has_signal()));
  note(me, is_vain ? "waited in vain for" : "waited for", given.signal, given.value);
  if (is_vain) return false;
  const position found = find(me, at, given.value);
  threads_[me].generic.raise(at, found);
  if (is_acquire) {
    const view released = memory_.writes(at)[found].released;
    threads_[me].generic.join(released);
  }
  return true;
}

/// fence.acq_rel.sys (9.7.13.4, 8.8): what the thread has seen complete becomes part of what its
/// next release carries. It concerns the thread alone, so it is no step of its own.
void machine::fence_acq_rel(std::uint32_t me) {
  threads_[me].generic.join(threads_[me].completed);
  threads_[me].fenced = threads_[me].generic;
  note(me, "fence.acq_rel");
}

/// fence.proxy.async (9.7.13.4, 9.7.9.25.2): bulk copies of this thread see what ordinary accesses
/// of it see. 8.9.5 has no rule for where along a path of causality the fence may stand. The model
/// takes the strictest reading: in the block of the bulk copy.
void machine::fence_proxy_async(std::uint32_t me) {
  threads_[me].async.join(threads_[me].generic);
  note(me, "fence.proxy.async");
}

/// bar.sync (8.9.4): all threads of the block learn what each knows. Views of the async proxy
/// belong to the block ("same proxy, and by the same thread block", 8.9.5).
void machine::barrier(std::uint32_t me) {
  meet(me, of_blocks_[threads_[me].block], false);
}

/// barrier.red.or (9.7.13.1): the same, and all threads get whether one of them passed true.
bool machine::barrier_or(std::uint32_t me, bool mine) {
  meeting& with = of_blocks_[threads_[me].block];
  with.any = with.any || mine;
  meet(me, with, false);
  return with.any_met;
}

/// The end of a kernel and the start of the next one of the rank: CUDA's own order, which is one of
/// all proxies but that of tensor maps (8.9.4).
void machine::kernel_boundary(std::uint32_t me) {
  meet(me, of_ranks_[threads_[me].rank], true);
}

void machine::meet(std::uint32_t me, meeting& with, bool joins_proxies) {
  scheduler_.step(me);
  note(me, joins_proxies ? "ends a kernel" : "arrives at the barrier");
  const std::uint32_t generation = with.generation;
  if (++with.arrived < with.members.size()) {
    scheduler_.step(me, [&with, generation] { return with.generation != generation; });
    return;
  }
  view generic, async;
  for (const std::uint32_t each : with.members) {
    generic.join(threads_[each].generic);
    async.join(threads_[each].async);
    if (joins_proxies) generic.join(threads_[each].completed);
  }
  if (joins_proxies) async.join(generic);
  for (const std::uint32_t each : with.members) {
    threads_[each].generic = generic;
    threads_[each].async = async;
  }
  with.any_met = with.any;
  with.any = false;
  with.arrived = 0;
  ++with.generation;
}

}  // namespace tmap::ranks
