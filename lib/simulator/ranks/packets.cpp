// SPDX-License-Identifier: Apache-2.0
// The instructions that send and take packets. Sections are those of the PTX ISA 9.0.
#include <algorithm>
#include <vector>

#include "lib/simulator/ranks/machine.hpp"

namespace tmap::ranks {

/// st.relaxed.sys.b128 (9.7.9.12): a single access, so each word comes with the tag. It carries the
/// view at the thread's last fence (8.8).
void machine::store_packet(std::uint32_t me, place to, const detail::peer::packet& given) {
  scheduler_.step(me);
  thread_state& self = threads_[me];
  for (std::uint32_t i = 0; i <= detail::peer::packet_words; ++i) {
    const location at = memory_.at({to.space, to.word + i});
    const std::uint32_t value = i < detail::peer::packet_words ? given.words[i] : given.tag;
    const write next{value, false, true, self.fenced, given.tag};
    self.generic.raise(at, write_after(at, oldest_generic(self, at), next));
    note(me, "packet to", {to.space, to.word + i}, value);
  }
}

/// st.shared that is no step of its own, since it concerns the block alone.
void machine::keep(std::uint32_t me, place to, std::uint32_t value) {
  const location at = memory_.at(to);
  const position end = memory_.count(at);
  insert(at, end, {value});
  threads_[me].generic.raise(at, end);
}

/// Returns the oldest write with a tag that a thread may read; `count` if there is none yet.
position machine::find_tagged(std::uint32_t me, location at, std::uint32_t tag) const {
  position found = threads_[me].generic[at];
  while (found < memory_.count(at) && memory_.writes(at)[found].tag != tag) ++found;
  return found;
}

std::vector<location> machine::words_of(const awaited_packets& given) {
  constexpr std::uint32_t words_of_one = sizeof(detail::peer::packet) / detail::peer::word_bytes;
  std::vector<location> words;
  for (std::uint32_t i = 0; i < given.count * words_of_one; ++i) {
    words.push_back(memory_.at({given.first.space, given.first.word + i}));
  }
  return words;
}

/// Returns, by choice, whether a thread reads words only after they have been overwritten.
bool machine::misses_one(std::uint32_t me, const std::vector<location>& words, std::uint32_t tag) {
  bool misses = false;
  for (const location at : words) {
    const position newest = static_cast<position>(memory_.count(at) - 1);
    if (memory_.writes(at)[newest].tag == tag || find_tagged(me, at, tag) > newest) continue;
    misses = misses || scheduler_.pick(2) == 1;
    if (misses) threads_[me].generic.raise(at, newest);
  }
  return misses;
}

/// Polls by ld.relaxed.sys.b128 until all packets have the tag. An acquire is a fence.acquire.sys
/// after that (8.8, 9.7.13.4): it joins the views that the packets carry. If a packet is
/// overwritten before a look at it, the thread may miss it for ever.
std::vector<std::uint32_t> machine::poll_packets(std::uint32_t me, const awaited_packets& given, bool is_acquire) {
  const std::vector<location> words = words_of(given);
  const location off = memory_.at(given.unless.value_or(given.first));
  const auto have_come = [&] {
    return std::all_of(words.begin(), words.end(),
                       [&](location at) { return find_tagged(me, at, given.tag) < memory_.count(at); });
  };
  const auto is_off = [&] { return given.unless && find(me, off, 1) < memory_.count(off); };
  const auto wait = [&] {
    return scheduler_.step(
        me, [&] { return have_come() || is_off(); }, given.deadline);
  };
  bool is_late = !wait();
  if (!is_late && misses_one(me, words, given.tag)) is_late = !wait();
  const bool is_vain = is_late || (is_off() && ends_early(me, off, have_come()));
  note(me, is_vain ? "waited in vain for packets" : "took packets", given.first, given.tag);
  if (is_vain) return {};
  std::vector<std::uint32_t> found;
  view released{};
  for (const location at : words) {
    const write& taken = memory_.writes(at)[find_tagged(me, at, given.tag)];
    found.push_back(taken.value);
    released.join(taken.released);
  }
  if (is_acquire) threads_[me].generic.join(released);
  return found;
}

}  // namespace tmap::ranks
