// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/ragged.hpp>
#include <tmap/tensor_batch.hpp>

#include "lib/simulator/ragged_elements.hpp"
#include "lib/simulator/ragged_tensors.hpp"
#include "lib/simulator/ragged_verdict.hpp"

#include <cstdint>
#include <new>

// Shared by all operations on the host after the checks of their arguments: the walk over the
// tensors and the verdicts.

namespace tmap::simulator {

/// Fails where the environment names no policy.
[[nodiscard]] inline result<route_options> routes_of(const ragged::choices& made) {
  const result<route_policy> policy = made.policy ? *made.policy : policy_from_environment();
  if (!policy) return failure{policy.error()};
  return route_options{*policy, made.allowed};
}

/// Judges each pair of tensors. `next(pair)` fills in the sides. `work(pair, routes)` does the
/// work, for good and bad pairs.
template <class Next, class Work>
[[nodiscard]] result<void> for_each_pair(const judging_call& call, const pair_terms& terms, const ragged::run& with,
                                         Next&& next, Work&& work) try {
  const auto routes = routes_of(with.choices);
  if (!routes) return failure{routes.error()};
  verdict_writer verdicts{call, with};
  for (std::uint64_t i = 0; i < call.items; ++i) {
    tensor_pair pair;
    pair.index = i;
    next(pair);
    judge(pair, terms, call.grid);
    verdicts.write(i, pair.status);
    const result<void> done = work(pair, *routes);
    if (!done) return done;
  }
  return verdicts.close();
} catch (const std::bad_alloc&) {
  return failure{error{status::out_of_memory}};
}

/// Does the same for two batches, and works on good tensors only.
template <class Work>
[[nodiscard]] result<void> for_each_good_pair(batch_call which, const tensor_batch& source,
                                              const tensor_batch& destination, shape_relation relation,
                                              const ragged::run& with, Work&& work) {
  tensor_reader sources{source};
  tensor_reader destinations{destination};
  const auto next = [&](tensor_pair& pair) {
    pair.source = sources.next();
    pair.destination = destinations.next();
  };
  const pair_terms terms = terms_of(relation, source.element_bytes, destination.element_bytes, source.count, with);
  return for_each_pair({which, source.count}, terms, with, next,
                       [&](const tensor_pair& pair, const route_options& routes) -> result<void> {
                         if (!pair.status.is_good()) return {};
                         return work(pair, routes);
                       });
}

/// Fills each good destination with `compute(pair, elements of the source, routes)`.
template <class Compute>
[[nodiscard]] result<void> transform(batch_call which, const tensor_batch& source, const tensor_batch& destination,
                                     shape_relation relation, const ragged::run& with, Compute&& compute) {
  const auto work = [&](const tensor_pair& pair, const route_options& routes) -> result<void> {
    auto elements = read_elements(pair.source, routes);
    if (!elements) return failure{elements.error()};
    const result<element_bytes_t> made = compute(pair, std::move(*elements), routes);
    if (!made) return failure{made.error()};
    return write_elements(pair.destination, *made, routes);
  };
  return for_each_good_pair(which, source, destination, relation, with, work);
}

}  // namespace tmap::simulator
