// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/slot_counts.hpp>

#include <cstdint>
#include <memory>

#include "lib/pool/pool_calls.hpp"

namespace tmap::pool {

/// How a pool is made. All counts in slots.
struct pool_options {
  std::uint64_t capacity{};
  std::uint64_t max_capacity{};    ///< 0: never grows
  std::uint64_t bytes_per_slot{};  ///< of a slab: its slots and what lies beside them (slab_layout.hpp)
  void* memory{};                  ///< the first slab's, of the caller, zeroed; null: allocated
};

/// Where a lease lies: `count` slots from `first` on in the slab of `slab_capacity` slots at `slab`.
struct slot_range {
  void* slab;
  std::uint64_t slab_capacity;
  std::uint32_t first;
  std::uint32_t count;
};

class map_pool;

/// Slots that nobody else gets. Shared by the batches that use them and by the graphs that captured them; ends with the
/// last of them.
class lease;
using lease_ptr = std::shared_ptr<lease>;

/// Lends contiguous slots and takes them back in stream order: bookkeeping on the host, events on the device, never a
/// wait of the host. Thread-safe.
///
/// A returned range is lent again, in this order of preference: (1) free; (2) returned on the very stream that asks and
/// used by no other; (3) after all its events have completed; (4) by making the asking stream wait for its events.
/// While the asking stream is captured: (1) only, without asking an event.
class map_pool : public std::enable_shared_from_this<map_pool> {
 public:
  static result<std::shared_ptr<map_pool>> create(const pool_options& options, const pool_calls& calls);
  ~map_pool();

  /// A lease used on `stream`; captured by its graph if it is being captured. Fails with `pool_exhausted`, or as a
  /// call.
  result<lease_ptr> take(std::uint64_t count, cudaStream_t stream);

  /// From now on the lease is used on `stream` too, which waits for what `home` has enqueued so far; nothing happens
  /// where it is in use there already. A captured `stream` makes the lease its graph's.
  result<void> use_on(const lease_ptr& lease, cudaStream_t stream, cudaStream_t home);

  /// Gives up one hold on the lease. The last one records an event on each of its streams, and the slots are pending. A
  /// stream that is being captured now is asked again by later calls. On failure the slots are never lent again.
  result<void> release(lease_ptr lease);

  /// Forgets everything without calling CUDA: the context is lost, the process forked or exiting.
  void abandon() noexcept;

  slot_counts counts() const;
  std::uint64_t peak_in_use() const;
  std::uint64_t cross_stream_reuses() const;
  std::uint64_t device_bytes() const;
};

slot_range range_of(const lease& lease);
/// Of the lease, never 0 and never the same for two leases of one slot within 2^32 - 1 leases.
std::uint32_t generation_of(const lease& lease);

}  // namespace tmap::pool
