// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/moe.hpp>

#include <cstdint>
#include <functional>
#include <optional>

#include "kernels/peer/expert_records.hpp"

// Describes dispatches and combines over the model, and where their arrays lie.

namespace tmap::testing {

using detail::peer::word_at;
using kernels::peer::expert_arrays;

/// Returns the expert, of all ranks, of choice `j` of a token of rank `from`. -1: none.
using expert_choice =
    std::function<std::int32_t(std::uint32_t call, std::uint32_t from, std::uint32_t token, std::uint32_t j)>;

struct experts_case {
  std::uint32_t ranks{2};
  std::uint32_t experts{2};  ///< of each rank
  std::uint32_t k{2};
  std::uint32_t tokens{2};  ///< of each rank
  std::uint32_t blocks{1};
  std::uint32_t calls{1};
  expert_choice chosen;
  std::uint32_t arrivals{16};
  std::uint32_t rows{64};
  std::uint32_t alignment{1};
  std::uint32_t stages{2};
  std::uint32_t entries{2};
  std::uint32_t row_bytes{16};
  std::uint32_t staging_bytes{16};
  std::optional<std::uint32_t> odd_rank{};  ///< a rank whose sizes differ from those of the others
  bool returns_rows{false};                 ///< results come home one by one, not as sums
  std::uint32_t threads{0};                 ///< of the block that prepares few tokens; 0: each step is a kernel
  std::uint32_t fetching_threads{1};        ///< of a block that takes their records and fetches their rows
  bool combines_twice{false};               ///< without a dispatch in between
  bool combines_never{false};               ///< nothing but credits stands between dispatches
  bool combines_otherwise{false};           ///< first with a shape that is not the dispatch's
  bool odd_ranks_have_many{false};          ///< so many tokens that each step is a kernel there
  bool is_awaited{false};                   ///< a thread of each rank waits for rows while they come
  bool pulls_all{false};                    ///< also the records and places that might come with the announcement
  bool odd_ranks_announce_late{false};      ///< the fetch of rows; ranks that lack no room announce it early

  std::uint32_t threads_of(std::uint32_t rank) const { return odd_ranks_have_many && rank % 2 == 1 ? 0 : threads; }
  bool announces_early(std::uint32_t rank) const {
    const bool has_all_rows = rows >= moe::most_rows(arrivals, experts, k, alignment);
    return has_all_rows && !(odd_ranks_announce_late && rank % 2 == 1);
  }
};

/// Holds the arrays of one rank, as offsets in its window.
struct expert_windows {
  explicit expert_windows(const experts_case& given) {
    const std::uint64_t choices = given.tokens * given.k, departures = given.tokens * given.ranks;
    const std::uint64_t record = 4 * kernels::peer::record_words(given.k, 0);
    const std::uint64_t entry = 4 * kernels::peer::entry_words(given.k);
    const std::uint64_t places = 4 * kernels::peer::place_words(given.k);
    const kernels::peer::sum_place place{16};
    at = {given.tokens,
          given.k,
          given.experts,
          0,
          given.arrivals,
          take(4 * choices),
          take(4 * choices),
          take(4 * departures),
          take(departures * record),
          take(given.arrivals * record),
          take(4 * given.ranks),
          take(4),
          take(4 * given.arrivals * given.k),
          take(4 * given.arrivals * given.k),
          take(4 * given.arrivals * given.k),
          take(4 * given.arrivals),
          take(4 * given.arrivals),
          take(given.arrivals * entry),
          given.blocks,
          {},
          take(departures * place.pitch()),
          given.returns_rows ? kernels::peer::sum_place{} : place,
          take(8 * given.arrivals),
          take(4 * given.ranks),
          take(given.arrivals * places),
          take(departures * places),
          take(departures * given.k * 16),
          take(4),
          take(4 * choices)};
    pending = take(4 * (given.experts + 1));
    returned_splits = take(4 * given.ranks);
    outcome = take(4);
    lacking = take(4);
    x = take(given.tokens * given.row_bytes);
    values = take(given.rows * 16);
    landed = take(choices * 16);
    out = take((given.rows + 1) * given.row_bytes);  // a canary follows the last row
  }

  expert_arrays at;
  std::uint64_t pending, returned_splits, outcome, lacking, x, values, landed, out;

 private:
  std::uint64_t take(std::uint64_t bytes) {
    const std::uint64_t begin = end_;
    end_ += (bytes + 15) / 16 * 16;
    return begin;
  }
  std::uint64_t end_{peer_header_bytes};
};

}  // namespace tmap::testing
