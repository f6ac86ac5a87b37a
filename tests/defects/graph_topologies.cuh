// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_service.hpp>

#include "defects/captured_graph.hpp"
#include "defects/graph_work.cuh"
#include "defects/tagged_lines.hpp"

// Provides the three graphs that the graph test captures. They place encodes and their consumers
// differently on streams.

namespace tmap::testing {

/// Holds the device arrays of one graph, and a second stream for it.
class graph_workload {
 public:
  graph_workload() {
    replay_.upload({0});
    EXPECT_EQ(cudaEventCreateWithFlags(&joined_, cudaEventDisableTiming), cudaSuccess);
  }
  graph_workload(const graph_workload&) = delete;
  graph_workload& operator=(const graph_workload&) = delete;
  ~graph_workload() { cudaEventDestroy(joined_); }

  graph_arrays arrays() const {
    return {lines_.data(),        replay_.data(),  patches_.data(), uses_.data(),
            updated_uses_.data(), changed_.data(), found_.data()};
  }
  cudaStream_t second_stream() const { return second_.get(); }
  std::uint64_t replays() const { return replay_.download()[0]; }
  consumed_lines found() const { return found_.download()[0]; }

  /// Makes the first stream wait for the second.
  void join(cudaStream_t first) const {
    EXPECT_EQ(cudaEventRecord(joined_, second_.get()), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(first, joined_), cudaSuccess);
  }

 private:
  tagged_lines lines_{graph_lines};
  device_array<std::uint32_t> replay_{1};
  device_array<map_patch> patches_{graph_sources * graph_maps};
  device_array<line_use> uses_{graph_sources * graph_maps};
  device_array<line_use> updated_uses_{graph_maps};
  device_array<std::uint32_t> changed_{graph_changes};
  device_array<consumed_lines> found_{std::vector<consumed_lines>(1)};
  own_stream second_;
  cudaEvent_t joined_{};
};

/// Describes one of the graphs: what it enqueues on a stream, the tiles that each replay loads, and
/// the least number of slots that a graph of it keeps.
struct topology {
  const char* name;
  result<void> (*enqueue)(map_service& service, const map_template& base, const graph_workload& work,
                          cudaStream_t stream);
  std::uint32_t tiles;
  std::uint32_t slots;
};

/// Encodes and consumes on one stream.
result<void> enqueue_linear(map_service& service, const map_template& base, const graph_workload& work,
                            cudaStream_t stream);

/// Shares a batch between two streams, each of which consumes half of it.
result<void> enqueue_fork_join(map_service& service, const map_template& base, const graph_workload& work,
                               cudaStream_t stream);

/// Feeds one consumer with two encodes and an update of the first.
result<void> enqueue_update(map_service& service, const map_template& base, const graph_workload& work,
                            cudaStream_t stream);

inline constexpr topology topologies[] = {
    {"linear", enqueue_linear, graph_maps, graph_maps},
    {"fork_join", enqueue_fork_join, graph_maps, graph_maps},
    {"two_encodes_and_an_update", enqueue_update, 2 * graph_maps, 2 * graph_maps + graph_changes},
};

}  // namespace tmap::testing
