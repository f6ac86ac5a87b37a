// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lib/pool/map_pool.hpp"
#include "lib/pool/slab_layout.hpp"
#include "support/fake_streams.hpp"
#include "support/refusal.hpp"

// A pool over the fake streams, and batches that write their id into each slot and read it back.

namespace tmap::testing {

inline std::uint64_t sum_of(const slot_counts& counts) {
  return counts.free + counts.leased + counts.pending + counts.captured;
}

inline std::uint64_t next_batch_id() {
  static std::atomic<std::uint64_t> last{};
  return ++last;
}

/// Holds one batch's slots and the id that it writes there.
struct fake_batch {
  pool::lease_ptr lease;
  std::uint64_t id{};

  void* slots() const {
    const pool::slot_range range = pool::range_of(*lease);
    return pool::slots_of(range.slab) + range.first;
  }
  std::uint64_t count() const { return pool::range_of(*lease).count; }
};

class pool_fixture : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(cuda.violations().empty()) << cuda.violations().front(); }

  void make_pool(std::uint64_t capacity, std::uint64_t max_capacity = 0) {
    auto made = pool::map_pool::create({.capacity = capacity, .max_capacity = max_capacity}, fake_streams::calls());
    ASSERT_TRUE(made.has_value()) << to_string(made.error());
    maps = *made;
  }

  /// Takes a lease on `stream` and writes its slots there. Returns a batch without a lease if there
  /// are no slots.
  fake_batch encode(std::uint64_t count, cudaStream_t stream) {
    auto taken = maps->take(count, stream);
    if (!taken) return {};
    fake_batch batch{std::move(*taken), next_batch_id()};
    cuda.write(stream, batch.slots(), batch.count(), batch.id);
    return batch;
  }

  void consume(const fake_batch& batch, cudaStream_t stream) {
    cuda.read(stream, batch.slots(), batch.count(), batch.id);
  }

  void release(fake_batch&& batch) {
    const auto released = maps->release(std::move(batch.lease));
    EXPECT_TRUE(released.has_value()) << to_string(released.error());
  }

  /// Encodes, consumes and releases a batch. Returns its place.
  pool::slot_range use_once(std::uint64_t count, cudaStream_t stream) {
    fake_batch batch = encode(count, stream);
    if (batch.lease == nullptr) {
      ADD_FAILURE() << "no lease";
      return {};
    }
    const pool::slot_range place = pool::range_of(*batch.lease);
    consume(batch, stream);
    release(std::move(batch));
    return place;
  }

  /// Captures a graph that encodes `batch` into its own slots and reads them. Returns its
  /// executable.
  cudaGraphExec_t capture_batch(std::uint64_t count, cudaStream_t stream, fake_batch& batch) {
    cuda.begin_capture(stream);
    batch = encode(count, stream);
    if (batch.lease != nullptr) consume(batch, stream);
    return end_capture(stream);
  }

  cudaGraphExec_t end_capture(cudaStream_t stream) {
    const cudaGraph_t graph = cuda.end_capture(stream);
    const cudaGraphExec_t exec = cuda.instantiate(graph);
    cuda.destroy_graph(graph);
    return exec;
  }

  void run_and_expect_no_foreign_id() {
    cuda.run_all();
    EXPECT_EQ(cuda.foreign_ids(), 0u);
  }

  void expect_counts(std::uint64_t free, std::uint64_t leased, std::uint64_t pending, std::uint64_t captured) const {
    const slot_counts counts = maps->counts();
    EXPECT_EQ(counts.free, free);
    EXPECT_EQ(counts.leased, leased);
    EXPECT_EQ(counts.pending, pending);
    EXPECT_EQ(counts.captured, captured);
    EXPECT_EQ(sum_of(counts), counts.capacity);
  }

  fake_streams cuda;
  std::shared_ptr<pool::map_pool> maps;
};

}  // namespace tmap::testing
