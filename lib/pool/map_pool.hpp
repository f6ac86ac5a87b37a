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

/// How a pool is made. All counts in slots.
struct pool_options {
  std::uint64_t capacity{};
  std::uint64_t max_capacity{};  ///< 0: never grows
  std::uint64_t extra_bytes{};   ///< of device memory behind the first slab, for whoever owns the pool
  void* memory{};                ///< the first slab's and the extra bytes, of the caller, zeroed; null: allocated
  /// What each slab needs before any slot of it is lent; may wait for the device. May be empty.
  std::function<result<void>(void* slab, std::uint64_t capacity)> prepare{};
};

/// Where a lease lies: `count` slots from `first` on in the slab of `slab_capacity` slots at `slab`
/// (slab_layout.hpp).
struct slot_range {
  void* slab;
  std::uint64_t slab_capacity;
  std::uint32_t first;
  std::uint32_t count;
};

/// Slots that nobody else gets. Each copy of the pointer is one hold of a batch, and ends by
/// `map_pool::release`: move the pointer in. Slots of a lease whose last hold just goes are never
/// lent again. Holds its pool.
class lease;
using lease_ptr = std::shared_ptr<lease>;

/// Leases that the work which slots are taken for reads, and a stream of theirs.
struct read_leases {
  std::span<const lease_ptr> leases;
  cudaStream_t home;
};

using capture_id = unsigned long long;

/// A stream that a lease is used on, and the capture in which it came there: 0 outside of any. A
/// stream that is being captured may not be asked for its id, which is then 0. Nor is it asked
/// later: by then it may be captured again.
struct stream_use {
  cudaStream_t stream;
  stream_id id;
  capture_id capture;
};

/// By the ids where both are known: the handle of a stream that is gone may be another's. Of a
/// lease's streams none is gone.
inline bool is_same_stream(const stream_use& a, const stream_use& b) {
  return a.id != 0 && b.id != 0 ? a.id == b.id : a.stream == b.stream;
}

/// Lends contiguous slots and takes them back in stream order: bookkeeping on the host, events on
/// the device. Only growth and the end may wait for the device, since they allocate and free. Where
/// host memory runs out `create`, `take` and `use_on` throw `std::bad_alloc`, before they have
/// changed anything. Thread-safe.
///
/// A range is lent again, in this order of preference: (1) free, the smallest that fits; (2) with
/// slots returned on the very stream that asks and used by no other (a few leases are looked at
/// before (3), the rest after it); (3) with slots whose events have all completed; then another
/// slab is added while that keeps to `max_capacity`; (4) with the slots returned first, by making
/// the asking stream wait for their events. While the asking stream is captured: (1) only, without
/// asking an event.
///
/// A lease has the streams it was taken or used on, and the captures in which it was. When its last
/// hold ends, an event marks each of these streams, save one that is still in the very capture that
/// brought it here. A stream that is in another capture then, or enters one meanwhile (or is the
/// per-thread stream of another thread), is marked by a later call, and must live until then. The
/// slots are lent again after all these events, and after every graph with the lease is gone. A
/// lease from a capture of the per-thread stream must be released by that thread: a captured stream
/// does not tell its id.
class map_pool : public std::enable_shared_from_this<map_pool> {
 public:
  [[nodiscard]] static result<std::shared_ptr<map_pool>> create(const pool_options& options, const pool_calls& calls);

  /// Frees what it allocated, which waits for the device; memory of the caller must be unused by
  /// then. Leaks it after `abandon`, and where the last graph with a lease outlived all else: a
  /// graph ends where CUDA may not be called.
  ~map_pool();

  /// A lease used on `stream`; captured by its graph if it is being captured. Where a `slab` is
  /// named, slots of that one only, and nothing is added. Once there are slots, and before they are
  /// lent, the leases `read` are used on `stream` too, as by `use_on`. Where that fails some of
  /// them are; on any other failure nothing has changed. Fails with `pool_exhausted`,
  /// `invalid_argument` (no slots asked for), as `use_on`, or as a call.
  [[nodiscard]] result<lease_ptr> take(std::uint64_t count, cudaStream_t stream, const void* only_in = nullptr,
                                       const read_leases& read = {});

  /// From now on the lease is used on `stream` too, which waits for what `home`, a stream of the
  /// lease, has enqueued so far; nothing happens where it is in use there already. A captured
  /// `stream` makes the lease its graph's, and waits only if the lease came to `home` in the same
  /// capture: a graph cannot wait for what ran before it, so whoever launches it does. A `stream`
  /// that waits for a captured `home` joins that capture, as CUDA has it. Fails with
  /// `invalid_argument` (`home` is no stream of the lease), or as a call:
  /// `cudaErrorStreamCaptureIsolation` for a stream that would have to wait for a `home` which is
  /// in a capture that the lease is not from.
  [[nodiscard]] result<void> use_on(const lease_ptr& lease, cudaStream_t stream, cudaStream_t home);

  /// Gives up one hold on the lease; the last one ends it. On failure its slots are never lent
  /// again, and count as pending. Needs no host memory.
  [[nodiscard]] result<void> release(lease_ptr lease) noexcept;

  /// As `release`, for slots whose work could not be enqueued. The graph of an open capture in
  /// which they were taken lets go of them if no node has come to it since: then nothing in it uses
  /// them. Other holds on the lease keep it there.
  [[nodiscard]] result<void> withdraw(lease_ptr lease) noexcept;

  /// To be called when nobody will take from the pool again: warns if graphs hold slots, whose
  /// memory may leak.
  void disown();

  /// Forgets everything without calling CUDA or waiting for another thread: the context is lost,
  /// the process forked or exiting. `take` and `use_on` fail with `service_dead` from then on,
  /// `release` does nothing, all counts are 0.
  void abandon() noexcept;

  // These need no host memory.
  slot_counts counts() const;                 ///< asks the events first, so that `pending` is what is pending now
  std::uint64_t peak_in_use() const;          ///< most slots that were leased or captured at once
  std::uint64_t cross_stream_reuses() const;  ///< takes that (4) served, or (3) after asking another stream's events
  std::uint64_t device_bytes() const;
  void* extra() const;  ///< the extra bytes, which live as long as the slots

 private:
  struct slab {
    void* memory;
    std::uint64_t capacity;
    bool owned;
  };
  /// A stream of an ended lease that could not be marked yet.
  struct late_use {
    holding* slots;
    stream_use use;
  };
  /// An event that nobody else uses, or null, and the youngest mark's age when it was borrowed.
  struct spare_event {
    cudaEvent_t event{};
    std::uint64_t age{};
    bool may_be_captured{};  ///< not to be used again: another thread would record it while that graph is being built
  };
  struct last_look;
  struct graph_hold;
  struct spread;

  map_pool(const pool_options& options, const pool_calls& calls);

  [[nodiscard]] result<void> add_slab(std::uint64_t capacity, void* memory);
  [[nodiscard]] result<bool> grow(std::uint64_t count);

  /// What a take looks for.
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
  /// Names for the marks of streams that are known from captures only: a queue for each mark, as if
  /// of a stream of its own. CUDA counts its ids up from small ones.
  mutable std::atomic<stream_id> last_nameless_{stream_id{1} << 63};
  mutable std::atomic<graph_hold*> dropped_{};  ///< by graphs, to be taken back by the next call

  mutable brief_mutex mutex_;  ///< over all below; most takes and releases call CUDA outside of it
  mutable slot_ledger ledger_;
  std::vector<slab> slabs_;
  mutable std::vector<late_use> late_uses_;  ///< with room for every open mark
  std::uint64_t peak_in_use_{};
  std::uint64_t cross_stream_reuses_{};
};

slot_range range_of(const lease& lease);
/// Of the lease, never 0 and never the same for two leases of one slot within 2^32 - 1 leases.
std::uint32_t generation_of(const lease& lease);

}  // namespace tmap::pool
