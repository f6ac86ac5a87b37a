// SPDX-License-Identifier: Apache-2.0
#pragma once

// An operation captured as a graph, taken apart: what it needs in all, and its launches by
// themselves.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "apps/support/timing.hpp"

namespace tmap::apps::bench {

/// Microseconds of one call in a chain. Both parts by themselves have full launches between them,
/// where the whole operation has its launches overlap.
struct operation_parts {
  double whole;
  double planning;  ///< all launches but the last
  double work;      ///< the last one, on what planning left behind
  std::size_t planning_launches;
};

namespace detail {

/// All nodes of a graph that is one chain.
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

/// Of each `period` nodes, those from `first` to `last - 1` stay and follow each other.
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

/// `enqueue` calls the operation, whose last launch works on what those before it plan. What it
/// leaves in its workspace must not change from call to call.
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
