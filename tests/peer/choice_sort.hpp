// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "kernels/peer/expert_records.hpp"

// Sorts choices over the model by one thread, as `moe::route` does on a GPU.

namespace tmap::testing {

inline constexpr std::uint32_t most_sorted = 8;  ///< ranks, and experts of a rank

/// Describes a sort of choices by expert, in their order.
struct choice_sort {
  std::uint32_t choices;
  std::uint32_t experts;
  std::uint32_t alignment;
  std::uint64_t rows;
  std::uint64_t places;
  std::uint64_t counts;  ///< 0: not wanted
};

/// Returns the experts of choices that are words of the own window from `ids` on.
template <class Link>
auto words_at(Link& link, std::uint64_t ids) {
  return [&link, ids](std::uint32_t i) { return link.load(link.rank(), detail::peer::word_at(ids, i)); };
}

/// Returns how many choices have no row. `id_of(i)` returns the expert of choice i, and
/// `keep(i, row)` gets its row.
template <class Link, class IdOf, class Keep>
std::uint32_t sort_each(Link& link, const IdOf& id_of, const choice_sort& work, const Keep& keep) {
  std::array<std::uint64_t, most_sorted> counts{}, next{};
  for (std::uint32_t i = 0; i < work.choices; ++i) {
    const std::uint32_t id = id_of(i);
    if (id < work.experts) ++counts.at(id);
  }
  for (std::uint32_t e = 1; e < work.experts; ++e) {
    const std::uint64_t end = next.at(e - 1) + counts.at(e - 1);
    next.at(e) = (end + work.alignment - 1) / work.alignment * work.alignment;
  }
  for (std::uint32_t e = 0; work.counts != 0 && e < work.experts; ++e) {
    const auto count = static_cast<std::uint32_t>(counts.at(e));
    link.store(link.rank(), detail::peer::word_at(work.counts, e), count);
  }
  std::uint32_t lost = 0;
  for (std::uint32_t i = 0; i < work.choices; ++i) {
    const std::uint32_t id = id_of(i);
    const std::uint64_t row = id < work.experts ? next.at(id)++ : work.rows;
    const bool has_row = row < work.rows;
    lost += id < work.experts && !has_row;
    keep(i, has_row ? static_cast<std::uint32_t>(row) : kernels::peer::none);
  }
  return lost;
}

/// Does the same, and stores the rows at `places`.
template <class Link, class IdOf>
std::uint32_t sort_choices(Link& link, const IdOf& id_of, const choice_sort& work) {
  return sort_each(link, id_of, work, [&](std::uint32_t i, std::uint32_t row) {
    link.store(link.rank(), detail::peer::word_at(work.places, i), row);
  });
}

}  // namespace tmap::testing
