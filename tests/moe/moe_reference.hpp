// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/moe.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

// The results of `route` by definition, in plain loops. Scores and weights are computed in f64.

namespace tmap::moe::testing {

/// The sizes of a problem.
struct route_sizes {
  std::uint64_t tokens{};
  std::uint32_t experts{};
  std::uint32_t k{};
  std::uint32_t alignment{1};
  std::uint64_t rows{};  ///< 0: `most_rows`

  std::uint64_t choices() const { return tokens * k; }
  std::uint64_t row_count() const { return rows != 0 ? rows : most_rows(tokens, experts, k, alignment); }
};

/// The order by expert.
struct sorted_choices {
  std::vector<std::int32_t> counts;
  std::vector<std::int32_t> begins;
  std::vector<std::int32_t> ends;
  std::vector<std::int32_t> row_of_choice;
  std::vector<std::int32_t> token_of_row;
  std::vector<float> weight_of_row;
  std::vector<choice_status> statuses;
  batch_header header{};
};

inline choice_status status_of(fault f) {
  return {static_cast<std::uint32_t>(f)};
}

inline batch_header header_of(const std::vector<choice_status>& statuses) {
  batch_header made;
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    if (statuses[i].is_empty()) ++made.empty_count;
    if (!statuses[i].is_bad()) continue;
    if (made.bad_count++ == 0) made.first_bad = static_cast<std::uint32_t>(i);
  }
  return made;
}

/// `weights` may be empty: then all are 1.
inline sorted_choices sort_by_expert(const route_sizes& sizes, const std::vector<std::int64_t>& ids,
                                     const std::vector<float>& weights) {
  const std::uint64_t rows = sizes.row_count();
  const auto clipped = [&](std::uint64_t row) { return static_cast<std::int32_t>(std::min(row, rows)); };
  const auto exists = [&](std::int64_t id) { return id >= 0 && id < std::int64_t{sizes.experts}; };
  sorted_choices made;
  std::vector<std::uint64_t> counts(sizes.experts);
  for (const std::int64_t id : ids) {
    if (exists(id)) ++counts[static_cast<std::size_t>(id)];
  }
  std::vector<std::uint64_t> next;
  std::uint64_t used = 0;
  for (const std::uint64_t count : counts) {
    made.counts.push_back(static_cast<std::int32_t>(count));
    made.begins.push_back(clipped(used));
    made.ends.push_back(clipped(used + count));
    next.push_back(used);
    used += (count + sizes.alignment - 1) / sizes.alignment * sizes.alignment;
  }
  made.begins.push_back(clipped(used));
  made.token_of_row.assign(rows, -1);
  made.weight_of_row.assign(rows, 0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::uint64_t row = exists(ids[i]) ? next[static_cast<std::size_t>(ids[i])]++ : rows;
    const bool has_row = row < rows;
    made.row_of_choice.push_back(has_row ? static_cast<std::int32_t>(row) : -1);
    if (has_row) {
      made.statuses.emplace_back();
      made.token_of_row[row] = static_cast<std::int32_t>(i / sizes.k);
      made.weight_of_row[row] = weights.empty() ? 1 : weights[i];
    } else if (exists(ids[i])) {
      made.statuses.push_back(status_of(fault::capacity));
    } else {
      made.statuses.push_back(ids[i] == -1 ? choice_status{choice_status::empty_bit} : status_of(fault::expert));
    }
  }
  made.header = header_of(made.statuses);
  return made;
}

/// How logits become choices: the members of `logits` that are no pointers.
struct score_settings {
  moe::scoring scoring{};
  expert_groups groups{};
  bool renormalise{};
  float scale{1};
};

/// The choices of one token.
struct token_choices {
  std::vector<std::int32_t> ids;
  std::vector<double> weights;
  /// Whether scores lie so close together, without being equal, that f32 may order them otherwise.
  bool is_unclear{};
};

/// Returns the numbers of the `count` largest scores, in falling order; of equal ones, the lowest
/// first.
inline std::vector<std::int32_t> largest(const std::vector<double>& scores, std::uint32_t count, bool& is_unclear) {
  constexpr double resolution = 1e-5;
  std::vector<std::int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto score = [&](std::int32_t i) { return scores[static_cast<std::size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return score(a) > score(b); });
  for (std::size_t i = 0; i < count && i + 1 < order.size(); ++i) {
    const double gap = score(order[i]) - score(order[i + 1]);
    if (gap > 0 && gap < resolution) is_unclear = true;
  }
  order.resize(count);
  return order;
}

constexpr double infinity = std::numeric_limits<double>::infinity();

inline double sigmoid_of(double x) {
  return 1 / (1 + std::exp(-x));
}

/// Removes the experts of all but the best groups by a score of NaN, which `largest` never sees.
inline std::vector<bool> members_of_best(const std::vector<double>& scores, const expert_groups& groups,
                                         bool& is_unclear) {
  const std::size_t size = scores.size() / groups.count;
  std::vector<double> of_groups;
  for (std::size_t g = 0; g < groups.count; ++g) {
    std::vector<double> members(scores.begin() + static_cast<std::ptrdiff_t>(g * size),
                                scores.begin() + static_cast<std::ptrdiff_t>((g + 1) * size));
    std::sort(members.rbegin(), members.rend());
    const double sum = groups.score == group_scoring::largest ? members[0] : members[0] + members[1];
    of_groups.push_back(std::isnan(sum) ? -infinity : sum);
  }
  std::vector<bool> made(scores.size());
  for (const std::int32_t g : largest(of_groups, groups.chosen, is_unclear)) {
    for (std::size_t i = 0; i < size; ++i) made[static_cast<std::size_t>(g) * size + i] = true;
  }
  return made;
}

/// Returns e^(x - most) of each, which is 1 for equal infinities, divided by their sum.
inline std::vector<double> softmax(const std::vector<double>& logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  std::vector<double> made;
  for (const double x : logits) made.push_back(x == most ? 1 : std::exp(x - most));
  const double sum = std::accumulate(made.begin(), made.end(), 0.0);
  for (double& x : made) x /= sum;
  return made;
}

/// `bias` may be empty.
inline token_choices choose(std::vector<double> logits, const std::vector<float>& bias, const score_settings& with,
                            std::uint32_t k) {
  token_choices made;
  for (double& x : logits) x = std::isnan(x) ? -infinity : x;
  std::vector<double> scores = logits;
  if (with.scoring == scoring::sigmoid) {
    for (std::size_t e = 0; e < scores.size(); ++e) scores[e] = sigmoid_of(logits[e]) + (bias.empty() ? 0 : bias[e]);
  }
  const std::vector<bool> may = members_of_best(scores, with.groups, made.is_unclear);
  std::vector<std::int32_t> numbers;
  std::vector<double> open;
  for (std::size_t e = 0; e < scores.size(); ++e) {
    if (!may[e]) continue;
    numbers.push_back(static_cast<std::int32_t>(e));
    open.push_back(scores[e]);
  }
  for (const std::int32_t i : largest(open, k, made.is_unclear))
    made.ids.push_back(numbers[static_cast<std::size_t>(i)]);
  const std::vector<double> parts = softmax(logits);
  std::vector<double> chosen;
  for (const std::int32_t e : made.ids) chosen.push_back(logits[static_cast<std::size_t>(e)]);
  for (const std::int32_t e : made.ids) {
    const auto at = static_cast<std::size_t>(e);
    made.weights.push_back(with.scoring == scoring::sigmoid ? sigmoid_of(logits[at]) : parts[at]);
  }
  if (with.scoring == scoring::top_k_then_softmax) made.weights = softmax(chosen);
  const double sum = std::accumulate(made.weights.begin(), made.weights.end(), 0.0);
  for (double& w : made.weights) {
    if (with.renormalise && sum != 0) w /= sum;
    w *= double{with.scale};
  }
  return made;
}

}  // namespace tmap::moe::testing
