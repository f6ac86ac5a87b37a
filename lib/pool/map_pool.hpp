// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/slot_counts.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/pool/brief_mutex.hpp"
#include "lib/pool/pool_calls.hpp"
#include "lib/pool/slot_ledger.hpp"

namespace tmap::pool {

/// The options of a pool. All counts are slots.
struct pool_options {
  std::uint64_t capacity{};
  std::uint64_t max_capacity{};  ///< 0: never grows
  std::uint64_t extra_bytes{};   ///< of device memory after the first slab, for the owner of the pool
  void* memory{};                ///< of the caller, zeroed, for the first slab and the extra bytes; null: allocated
  /// Prepares each slab before its slots are lent; may wait for the device. May be empty.
  std::function<result<void>(void* slab, std::uint64_t capacity)> prepare{};
};

/// The slots of a lease: `count` slots from `first` on in the slab of `slab_capacity` slots at
/// `slab` (slab_layout.hpp).
struct slot_range {
  void* slab;
  std::uint64_t slab_capacity;
  std::uint32_t first;
  std::uint32_t count;
};

/// Slots that nobody else gets. Each copy of the pointer is one hold of a batch. Move it into
/// `map_pool::release` to end the hold: if the last hold is only destroyed, its slots are never
/// lent again. A lease keeps its pool alive.
class lease;
using lease_ptr = std::shared_ptr<lease>;

/// The leases that the work in the new slots reads, and one of their streams.
struct read_leases {
  std::span<const lease_ptr> leases;
  cudaStream_t home;
};

using capture_id = unsigned long long;

/// A stream that a lease is used on, and the capture in which the use began (0 for none). CUDA does
/// not allow a query for the id of a stream that is being captured, so `id` is then 0. It is not
/// queried later either, because the stream may then be captured again.
struct stream_use {
  cudaStream_t stream;
  stream_id id;
  capture_id capture;
};

/// Compares ids if both are known, because the handle of a destroyed stream may be used again. The
/// streams of a lease still exist.
inline bool is_same_stream(const stream_use& a, const stream_use& b) {
  return a.id != 0 && b.id != 0 ? a.id == b.id : a.stream == b.stream;
}

/// Lends contiguous slots and takes them back in stream order, with bookkeeping on the host and
/// events on the device. Only growth and destruction may wait for the device, because they allocate
/// and free. If host memory runs out, `create`, `take` and `use_on` throw `std::bad_alloc` before
/// they change anything. Thread-safe.
///
/// A take tries these in order:
///
/// 1. The smallest free range that fits.
/// 2. Slots returned on the same stream and used on no other. It checks a few leases before step 3,
///    and the rest after it.
/// 3. Slots whose events have all completed.
/// 4. A new slab, within `max_capacity`.
/// 5. The slots returned first. It makes the stream wait for their events.
///
/// A captured stream gets only step 1, without a query of events.
///
/// A lease records the streams it was taken or used on, and the captures of these uses. When its
/// last hold ends, an event marks each of these streams, except a stream that is still in the
/// capture of its use. Some streams cannot be marked then: one that is in another capture, one that
/// enters a capture during the call, and the per-thread stream of another thread. A later call
/// marks them, and they must live until then. The slots are lent again after all these events, and
/// after every graph with the lease is gone. A lease from a capture of the per-thread stream must
/// be released by that thread, because the id of a captured stream is not known.
class map_pool : public std::enable_shared_from_this<map_pool> {
 public:
  [[nodiscard]] static result<std::shared_ptr<map_pool>> create(const pool_options& options, const pool_calls& calls);

  /// Frees what it allocated, which waits for the device. Memory of the caller must be unused by
  /// then. Leaks its memory after `abandon`. Also leaks it if the last graph with a lease outlived
  /// all else, because a graph ends on a thread that may not call CUDA.
  ~map_pool();

  /// Lends slots that are used on `stream`. If `stream` is being captured, its graph gets the
  /// lease. With `only_in`, takes slots of that slab only and adds none. When slots are found, the
  /// leases `read` are used on `stream` too, as by `use_on`. If that fails, some of them are; any
  /// other failure changes nothing. Fails with `pool_exhausted`, `invalid_argument` (`count` is 0),
  /// as `use_on`, or as a CUDA call.
  [[nodiscard]] result<lease_ptr> take(std::uint64_t count, cudaStream_t stream, const void* only_in = nullptr,
                                       const read_leases& read = {});

  /// From now on the lease is also used on `stream`, which waits for the work enqueued so far on
  /// `home`, a stream of the lease. Does nothing if the lease is already used there. If `stream` is
  /// being captured, its graph gets the lease, and it waits only if the lease came to `home` in the
  /// same capture. A graph cannot wait for work outside it, so its user must. A `stream` that waits
  /// for a captured `home` joins that capture, by CUDA's rules. Fails with `invalid_argument`
  /// (`home` is no stream of the lease), or as a CUDA call: `cudaErrorStreamCaptureIsolation` if
  /// `stream` would have to wait for a `home` whose capture the lease is not from.
  [[nodiscard]] result<void> use_on(const lease_ptr& lease, cudaStream_t stream, cudaStream_t home);

  /// Ends one hold on the lease; the last one ends the lease. On failure its slots are never lent
  /// again and count as pending. Allocates no host memory.
  [[nodiscard]] result<void> release(lease_ptr lease) noexcept;

  /// Ends a hold as `release` does, for slots whose work could not be enqueued. The graph of an
  /// open capture in which they were taken gives them back if it has no new node since, because
  /// then nothing in it uses them. It keeps them if the lease has other holds.
  [[nodiscard]] result<void> withdraw(lease_ptr lease) noexcept;

  /// Call it when nobody will take from the pool again. Warns if graphs hold slots, whose memory
  /// may leak.
  void disown();

  /// Gives up everything without calling CUDA or waiting for another thread, because the context is
  /// lost or the process has forked or exits. From then on `take` and `use_on` fail with
  /// `service_dead`, `release` does nothing, and all counts are 0.
  void abandon() noexcept;

  // These allocate no host memory.
  slot_counts counts() const;         ///< queries the events first, so that `pending` is exact
  std::uint64_t peak_in_use() const;  ///< most slots that were leased or captured at once
  /// Takes that step 5 served, or step 3 after asking another stream's events.
  std::uint64_t cross_stream_reuses() const;
  std::uint64_t device_bytes() const;
  void* extra() const;  ///< the extra bytes, which live as long as the slots

 private:
  struct slab {
    void* memory;
    std::uint64_t capacity;
    bool owned;
  };
  /// A stream of an ended lease that is not marked yet.
  struct late_use {
    holding* slots;
    stream_use use;
  };
  /// An event that nobody else uses, or null, and the age of the youngest mark when it was
  /// borrowed.
  struct spare_event {
    cudaEvent_t event{};
    std::uint64_t age{};
    bool may_be_captured{};  ///< not to be used again, because a graph that is being built may contain it
  };
  struct last_look;
  struct graph_hold;
  struct spread;

  map_pool(const pool_options& options, const pool_calls& calls);

  [[nodiscard]] result<void> add_slab(std::uint64_t capacity, void* memory);
  [[nodiscard]] result<bool> grow(std::uint64_t count);

  /// The slots that a take searches for.
  struct demand {
    std::uint64_t count;
    stream_use use;
    slot_window bounds;
  };
  slot_window window_of(const void* only_in) const;
  [[nodiscard]] result<slot_window> find_window(const demand& wanted);
  [[nodiscard]] result<std::optional<slot_window>> find_completed(const demand& wanted);
  [[nodiscard]] result<std::optional<slot_window>> find_after_asking(stream_id asked, const demand& wanted);
  [[nodiscard]] result<bool> grow_for(const demand& wanted);
  [[nodiscard]] result<std::optional<slot_window>> find_by_waiting(const demand& wanted);
  [[nodiscard]] result<lease_ptr> lend(lease_ptr made, std::unique_ptr<graph_hold> hold, const slot_window& window,
                                       const stream_use& use);
  failure exhausted(std::uint64_t count) const;

  [[nodiscard]] result<stream_use> look_at(cudaStream_t stream) const;
  [[nodiscard]] result<void> order_after(cudaStream_t stream, const stream_use& home);
  [[nodiscard]] result<void> record_and_wait(cudaStream_t stream, cudaStream_t home, spare_event& by) const;
  std::unique_ptr<graph_hold> prepare_use(lease& lease, capture_id capture, std::uint64_t before);
  [[nodiscard]] result<spread> prepare_spread(lease& lease, const stream_use& from, const stream_use& to,
                                              std::uint64_t before);
  [[nodiscard]] result<std::vector<spread>> prepare_spreads(const read_leases& read, const stream_use& to);
  [[nodiscard]] result<void> carry_out(spread& prepared);
  void add_use(lease& lease, const stream_use& use);
  [[nodiscard]] result<void> pin(lease& lease, cudaStream_t stream, capture_id capture,
                                 std::unique_ptr<graph_hold> hold);
  static void drop(void* hold);
  void collect_dropped() const;

  cudaError_t leave_graph(const lease& lease) const;
  [[nodiscard]] result<void> end(const lease& lease, spare_event spare);
  [[nodiscard]] result<last_look> look_at_end(const stream_use& use) const;
  [[nodiscard]] result<last_look> record_end(spare_event& spare, const stream_use& use, const last_look& look) const;
  [[nodiscard]] result<bool> settle(holding* slots, const stream_use& use, const last_look& look, spare_event& spare);
  [[nodiscard]] result<bool> mark_late_end(const late_use& late);
  [[nodiscard]] result<void> mark_late_ends();
  spare_event borrow_event();
  void give_back(const spare_event& spare);
  void discard(cudaEvent_t event) const;
  [[nodiscard]] result<void> record(spare_event& spare, cudaStream_t stream) const;
  [[nodiscard]] result<bool> ask_events(stream_id stream) const;
  void make_late(stream_id stream, event_handle event) const;

  const pool_calls calls_;
  const pool_options options_;
  std::atomic<bool> abandoned_{};
  /// Ids for the marks of streams that are known only from captures. Each mark gets a queue, as if
  /// it were on a stream of its own. CUDA's own ids count up from small numbers.
  mutable std::atomic<stream_id> last_nameless_{stream_id{1} << 63};
  mutable std::atomic<graph_hold*> dropped_{};  ///< by graphs; the next call takes them back

  mutable brief_mutex mutex_;  ///< guards all members below; most takes and releases call CUDA without it
  mutable slot_ledger ledger_;
  std::vector<slab> slabs_;
  mutable std::vector<late_use> late_uses_;  ///< with room for every open mark
  std::uint64_t peak_in_use_{};
  std::uint64_t cross_stream_reuses_{};
};

slot_range range_of(const lease& lease);
/// Returns the lease's generation. It is never 0, and differs for two leases of one slot within
/// 2^32 - 1 leases.
std::uint32_t generation_of(const lease& lease);

}  // namespace tmap::pool
