// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes the list of results that a combine fetches home one by one, of the places of rows that
// their ranks have sent. Functions touch the own window alone.

#include "kernels/peer/expert_records.hpp"

namespace tmap::kernels::peer {

/// Returns how many entries results have that come home: one for each choice of each record.
template <class Link>
[[nodiscard]] TMAP_HOST_DEVICE std::uint32_t count_returns(Link& link, const expert_arrays& at) {
  return sum_of_counts(link, at.departed) * at.k;
}

/// Writes entry `number` of the results that come home, of `total`.
template <class Link>
TMAP_HOST_DEVICE void write_return_entry(Link& link, const expert_arrays& at, std::uint32_t number, std::uint32_t total,
                                         std::uint32_t row, std::uint32_t choice) {
  const std::uint32_t me = link.rank();
  const std::uint64_t entry = std::uint64_t{list_deal{total, at.list_parts}.place(number)} * entry_words(1);
  link.store(me, word_at(at.return_list, entry + entry_word::row), row);
  link.store(me, word_at(at.return_list, entry + entry_word::source), rank_of_record(link, at.departed, number / at.k));
  link.store(me, word_at(at.return_list, entry + entry_word::group), 0);
  link.store(me, word_at(at.return_list, entry + entry_word::places), choice);
}

/// Writes the entries of a choice of this rank's tokens, one for each record of its token. One of
/// them at most has a row: it is fetched to the place of the choice.
template <class Link>
TMAP_HOST_DEVICE void write_return(Link& link, const expert_arrays& at, std::uint32_t choice) {
  const std::uint32_t me = link.rank(), first = choice / at.k * at.k, number = choice % at.k;
  const std::uint32_t total = count_returns(link, at);
  std::uint32_t landed = none;
  TMAP_KEEP_ROLLED
  for (std::uint32_t j = 0; j < at.k; ++j) {
    const std::uint32_t i = link.load(me, word_at(at.record_of_choice, first + j));
    if (i == none) continue;
    const std::uint32_t row = link.load(me, word_at(at.returned_places, std::uint64_t{i} * place_words(at.k) + number));
    write_return_entry(link, at, i * at.k + number, total, row, choice);
    if (row != none) landed = choice;
  }
  link.store(me, word_at(at.landed, choice), landed);
}

/// Makes the list of results to fetch home, if the places of rows have come. Otherwise the arrays
/// may be those of a dispatch of other sizes.
template <class Link>
TMAP_HOST_DEVICE void write_returns(Link& link, const expert_arrays& at, const worker& thread) {
  if (!is_success(link, offsetof(window_header, verdict))) return;
  if (thread.number == 0) link.store(link.rank(), at.return_count, count_returns(link, at));
  share(thread, std::uint64_t{at.tokens} * at.k,
        [&](std::uint64_t choice) { write_return(link, at, static_cast<std::uint32_t>(choice)); });
}

}  // namespace tmap::kernels::peer
