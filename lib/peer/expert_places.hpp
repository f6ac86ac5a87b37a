// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cuts the workspace of dispatch and combine into parts.

#include <tmap/expert_parallel.hpp>

#include <cstdint>

#include "kernels/peer_launch.hpp"

namespace tmap::expert_parallel {

using kernels::peer::most_prepared_choices;

/// Holds the parts, as bytes after the beginning of the workspace.
struct places {
  std::uint64_t outcome;  ///< of the last dispatch
  std::uint64_t total;    ///< of the tokens that came
  std::uint64_t header;   ///< of the choices of these
  std::uint64_t departed, arrived;
  std::uint64_t rank_of_choice, record_of_choice, token_of_record, departing;
  std::uint64_t arriving, ids, weights, row_of_choice, first_ids, order, list;
  std::uint64_t targets, returned;                                 ///< `return_kind::sums`
  std::uint64_t sent_places, place_counts, returned_places;        ///< `return_kind::rows`
  std::uint64_t return_list, return_count, row_of_landed, landed;  ///< the same
  std::uint64_t scratch, scratch_bytes;                            ///< of routes
  std::uint64_t end;
};

/// Returns how many records a rank sends at most.
std::uint64_t departures(const shape& sizes, std::uint32_t ranks);
std::uint64_t sum_bytes(const shape& sizes);
kernels::peer::sum_place place_of_sum(const shape& sizes);

/// Describes how choices are sorted: those of this rank's tokens by rank, and those that came by
/// expert.
moe::route_problem departing_route(const shape& sizes, std::uint32_t ranks, const void* rank_of_choice);
moe::route_problem arriving_route(const shape& sizes, std::uint32_t ranks, const void* ids, const float* weights);
/// Describes how the records that came are sorted by their first expert.
moe::route_problem fetching_route(const shape& sizes, std::uint32_t ranks, const void* first_ids);

/// Returns whether a rank has room for the rows of any tokens that it has room for.
bool has_all_rows(const shape& sizes, std::uint32_t ranks);

/// Returns whether one block prepares a dispatch: this rank has few choices, and room for few.
bool are_few(const shape& sizes);

/// The sizes are good.
[[nodiscard]] result<places> place(const shape& sizes, std::uint32_t ranks);

}  // namespace tmap::expert_parallel
