// SPDX-License-Identifier: Apache-2.0
#pragma once

// Measures an operation that is captured as a graph: as a whole, and each part of its launches
// alone.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "apps/support/timing.hpp"

namespace tmap::apps::bench {

/// Microseconds of one call in a chain. The launches of the whole operation overlap; those of a
/// part alone do not.
struct operation_parts {
  double whole;
  double planning;  ///< all launches except the last
  double work;      ///< the last launch, which uses the results of planning
  std::size_t planning_launches;
};

namespace detail {

/// Returns the nodes of a graph that is a single chain, in order.
inline std::vector<cudaGraphNode_t> chain_of(cudaGraph_t graph) {
  std::size_t count = 1;
  cudaGraphNode_t node{};
  require(cudaGraphGetRootNodes(graph, &node, &count));
  std::vector<cudaGraphNode_t> chain;
  while (count == 1) {
    chain.push_back(node);
    cudaGraphEdgeData edge{};
    require(cudaGraphNodeGetDependentNodes(chain.back(), &node, &edge, &count));
  }
  require(cudaGraphGetNodes(graph, nullptr, &count));
  require(count == chain.size());
  return chain;
}

/// Keeps nodes `first` to `last - 1` of every `period` nodes and links them.
inline void keep_part(cudaGraph_t graph, std::size_t period, std::size_t first, std::size_t last) {
  const std::vector<cudaGraphNode_t> chain = chain_of(graph);
  require(chain.size() % period == 0);
  cudaGraphNode_t before{};
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const std::size_t at = i % period;
    if (at < first || at >= last) {
      require(cudaGraphDestroyNode(chain[i]));
      continue;
    }
    if (at == first && before != nullptr) require(cudaGraphAddDependencies(graph, &before, &chain[i], nullptr, 1));
    before = chain[i];
  }
}

}  // namespace detail

/// `enqueue` calls the operation. Its last launch uses what the launches before it planned. All
/// calls must leave the same contents in the workspace.
template <class Enqueue>
operation_parts time_parts(const timer& clock, const Enqueue& enqueue, int chain = 5, int repeats = 9) {
  const captured_graph one(clock.stream(), enqueue, 1);
  const std::size_t launches = detail::chain_of(one.get()).size();
  const auto time = [&](std::size_t first, std::size_t last) {
    const captured_graph graph(clock.stream(), enqueue, chain);
    if (last - first < launches) detail::keep_part(graph.get(), launches, first, last);
    return clock.graph_microseconds(graph, chain, repeats);
  };
  const double whole = time(0, launches);
  return {whole, time(0, launches - 1), time(launches - 1, launches), launches - 1};
}

}  // namespace tmap::apps::bench
