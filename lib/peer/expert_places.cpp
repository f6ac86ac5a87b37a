// SPDX-License-Identifier: Apache-2.0
#include "lib/peer/expert_places.hpp"

#include <tmap/bad_items.hpp>

#include <algorithm>
#include <cstddef>

#include "kernels/moe_launch.hpp"
#include "lib/batch/workspace.hpp"

namespace tmap::expert_parallel {

std::uint64_t departures(const shape& sizes, std::uint32_t ranks) {
  return sizes.tokens * std::min(sizes.k, ranks);
}

std::uint64_t sum_bytes(const shape& sizes) {
  return sizes.columns * moe::float_bytes(sizes.result_type);
}

kernels::peer::sum_place place_of_sum(const shape& sizes) {
  return {sizes.returned == return_kind::sums ? static_cast<std::uint32_t>(sum_bytes(sizes)) : 0};
}

moe::route_problem departing_route(const shape& sizes, std::uint32_t ranks, const void* rank_of_choice) {
  moe::route_problem made;
  made.tokens = sizes.tokens;
  made.experts = ranks;
  made.k = sizes.k;
  made.choices = moe::given_choices{.ids = rank_of_choice};
  made.rows = departures(sizes, ranks);
  return made;
}

moe::route_problem arriving_route(const shape& sizes, std::uint32_t ranks, const void* ids, const float* weights) {
  moe::route_problem made;
  made.tokens = sizes.arrivals;
  made.experts = sizes.experts / ranks;
  made.k = sizes.k;
  made.choices = moe::given_choices{.ids = ids, .weights = weights};
  made.alignment = sizes.alignment;
  made.rows = sizes.rows;
  return made;
}

moe::route_problem fetching_route(const shape& sizes, std::uint32_t ranks, const void* first_ids) {
  moe::route_problem made;
  made.tokens = sizes.arrivals;
  made.experts = sizes.experts / ranks;
  made.k = 1;
  made.choices = moe::given_choices{.ids = first_ids};
  made.rows = sizes.arrivals;
  return made;
}

bool has_all_rows(const shape& sizes, std::uint32_t ranks) {
  shape unbounded = sizes;
  unbounded.rows = 0;
  return row_count(sizes, ranks) >= row_count(unbounded, ranks);
}

bool are_few(const shape& sizes) {
  return std::max(sizes.tokens, sizes.arrivals) * sizes.k <= most_prepared_choices;
}

result<places> place(const shape& sizes, std::uint32_t ranks) {
  const result<std::uint64_t> leaving = moe::workspace_bytes(departing_route(sizes, ranks, nullptr));
  if (!leaving) return failure{leaving.error()};
  const result<std::uint64_t> coming = moe::workspace_bytes(arriving_route(sizes, ranks, nullptr, nullptr));
  if (!coming) return failure{coming.error()};
  const result<std::uint64_t> fetching = moe::workspace_bytes(fetching_route(sizes, ranks, nullptr));
  if (!fetching) return failure{fetching.error()};
  constexpr std::uint64_t word = sizeof(std::uint32_t);
  const std::uint64_t record = word * kernels::peer::record_words(sizes.k, sizes.scales);
  const std::uint64_t leave = departures(sizes, ranks), choices = word * sizes.tokens * sizes.k;
  const std::uint64_t came = word * sizes.arrivals * sizes.k;
  std::uint64_t end = 0;
  const auto take = [&](std::uint64_t bytes) {
    const std::uint64_t begin = end;
    end += round_up(bytes, workspace_alignment);
    return begin;
  };
  places made{};
  made.outcome = take(2 * word);
  made.total = made.outcome + word;
  made.header = take(sizeof(batch_header));
  made.departed = take(word * ranks);
  made.arrived = take(word * ranks);
  made.rank_of_choice = take(choices);
  made.record_of_choice = take(choices);
  made.token_of_record = take(word * leave);
  made.departing = take(record * leave);
  made.arriving = take(record * sizes.arrivals);
  made.ids = take(came);
  made.weights = take(came);
  made.row_of_choice = take(came);
  made.first_ids = take(word * sizes.arrivals);
  made.order = take(word * sizes.arrivals);
  made.list = take(word * kernels::peer::entry_words(sizes.k) * sizes.arrivals);
  if (sizes.returned == return_kind::sums) {
    made.targets = take(sizeof(std::uint64_t) * sizes.arrivals);
    made.returned = take(place_of_sum(sizes).pitch() * leave);
  } else {
    made.sent_places = take(word * kernels::peer::place_words(sizes.k) * sizes.arrivals);
    made.place_counts = take(word * ranks);
    made.returned_places = take(word * kernels::peer::place_words(sizes.k) * leave);
    made.return_list = take(word * kernels::peer::entry_words(1) * leave * sizes.k);
    made.return_count = take(word);
    made.row_of_landed = take(choices);
    made.landed = take(sum_bytes(sizes) * sizes.tokens * sizes.k);
  }
  made.scratch_bytes = std::max({*leaving, *coming, *fetching});
  made.scratch = take(made.scratch_bytes);
  made.end = end;
  return made;
}

}  // namespace tmap::expert_parallel
