// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes the list of rows to fetch of the records that came, once their choices are sorted by
// expert. Functions write the own window, and the words of `pending`.

#include "kernels/peer/expert_records.hpp"

namespace tmap::kernels::peer {

/// Writes one of the words of the entries of the list.
template <class Link>
class entry_field {
 public:
  TMAP_HOST_DEVICE entry_field(Link& link, const expert_arrays& at, const list_deal& deal, std::uint32_t word)
      : link_(link), at_(at), deal_(deal), word_(word) {
    const std::uint32_t ended = entry_word::places + at.k;
    from_ = record_word(at, at.arriving, 0, word == entry_word::source ? record::source : record::token);
    step_ = record_words(at.k, at.scales);
    if (word == entry_word::group) take_from(at.first_ids, 1);
    if (entry_word::places <= word && word < ended) take_from(word_at(at.places, word - entry_word::places), at.k);
    is_fixed_ = word >= ended;
  }

  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t load(std::uint32_t i) const {
    return link_.load(link_.rank(), word_at(from_, std::uint64_t{i} * step_));
  }
  TMAP_HOST_DEVICE void use(std::uint32_t i, std::uint32_t value) const {
    const std::uint32_t number = link_.load(link_.rank(), word_at(at_.order, i));
    const std::uint64_t entry = std::uint64_t{deal_.place(number)} * entry_words(at_.k);
    link_.store(link_.rank(), word_at(at_.list, entry + word_), is_fixed_ ? none : value);
  }

 private:
  TMAP_HOST_DEVICE void take_from(std::uint64_t from, std::uint32_t step) {
    from_ = from;
    step_ = step;
  }

  Link& link_;
  const expert_arrays& at_;
  const list_deal& deal_;
  std::uint32_t word_;
  std::uint64_t from_;
  std::uint32_t step_;  ///< words from one record's to the next
  bool is_fixed_;       ///< the same in all entries
};

/// Writes the places of one of the choices of records, from record `first` on, for the ranks that
/// sent them.
template <class Link>
struct sent_place_field {
  Link& link;
  const expert_arrays& at;
  std::uint64_t first;
  std::uint32_t choice;

  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t load(std::uint32_t i) const {
    return choice < at.k ? link.load(link.rank(), word_at(at.places, (first + i) * at.k + choice)) : none;
  }
  TMAP_HOST_DEVICE void use(std::uint32_t i, std::uint32_t value) const {
    link.store(link.rank(), word_at(at.sent_places, (first + i) * place_words(at.k) + choice), value);
  }
};

/// Writes where the sum of record `i` goes, of those that came.
template <class Link>
TMAP_HOST_DEVICE void write_target(Link& link, const expert_arrays& at, std::uint64_t i) {
  const std::uint32_t me = link.rank();
  const auto word = [&](std::uint32_t number) { return link.load(me, record_word(at, at.arriving, i, number)); };
  const std::uint64_t offset = std::uint64_t{word(record::sum_high)} << 32 | word(record::sum_low);
  const std::uint64_t target = link.address(word(record::source), offset);
  link.store(me, word_at(at.targets, 2 * i), static_cast<std::uint32_t>(target));
  link.store(me, word_at(at.targets, 2 * i + 1), static_cast<std::uint32_t>(target >> 32));
}

/// Lets others wait for rows from now on.
template <class Link>
TMAP_HOST_DEVICE void begin_pending(Link& link, const pending_groups& pending, const worker& thread) {
  if (pending.words == 0) return;
  share(thread, pending.groups + 1, [&](std::uint64_t group) {
    link.store_at(pending.word(static_cast<std::uint32_t>(group)), 0 - pending.blocks);
  });
}

/// Lets nobody wait for rows: all have come.
template <class Link>
TMAP_HOST_DEVICE void end_pending(Link& link, const pending_groups& pending, const worker& thread) {
  if (pending.words == 0) return;
  share(thread, pending.groups + 1,
        [&](std::uint64_t group) { link.store_at(pending.word(static_cast<std::uint32_t>(group)), 0); });
}

/// Names some records that follow each other.
struct record_share {
  std::uint32_t begin;
  std::uint32_t end;
};

/// Writes where the sums of records go that came, or the places of their rows, for the combine.
template <class Link>
TMAP_HOST_DEVICE void write_ways_home(Link& link, const expert_arrays& at, const record_share& records,
                                      const word_worker& mine) {
  const std::uint32_t count = records.end - records.begin;
  if (at.place.bytes != 0) {
    share(mine.thread(), count, [&](std::uint64_t i) { write_target(link, at, records.begin + i); });
  } else {
    share_words(mine, count, place_words(at.k), [&](std::uint32_t choice) {
      return sent_place_field<Link>{link, at, records.begin, choice};
    });
  }
}

/// Makes the list of rows to fetch, and that of the places of sums or results.
template <class Link>
TMAP_HOST_DEVICE void write_list(Link& link, const expert_arrays& at, const word_worker& mine) {
  const std::uint32_t total = link.load(link.rank(), at.total);
  const list_deal deal{total, at.list_parts};
  share_words(mine, total, entry_words(at.k),
              [&](std::uint32_t word) { return entry_field<Link>(link, at, deal, word); });
  write_ways_home(link, at, {0, total}, mine);
  begin_pending(link, at.pending, mine.thread());
}

}  // namespace tmap::kernels::peer
