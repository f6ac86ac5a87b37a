// SPDX-License-Identifier: Apache-2.0
#pragma once

// Moves what bulk copies cannot move, by the threads of a block that run no protocol: eager rows,
// and rows at addresses of any alignment.

#include <tmap/device/peer_link.cuh>
#include <tmap/device/warp.cuh>

#include "kernels/peer/protocol_exchange.hpp"
#include "kernels/peer/row_piece.hpp"

namespace tmap::kernels::peer {

/// The threads of a block: one that runs a protocol, in a warp of its own, and those of the crew.
inline constexpr std::uint32_t leading_threads = device::warp_lanes;
inline constexpr std::uint32_t crew_threads = 256;
inline constexpr std::uint32_t threads_with_crew = leading_threads + crew_threads;

/// Names what a crew does next.
enum class crew_job : std::uint32_t { leave, store_piece };

/// So often do the leading thread and its crew meet in a call.
inline constexpr std::uint32_t most_meetings = 4;

/// Is what the leading thread and the crew share, in shared memory.
struct row_crew {
  device::tile_barrier met;
  std::uint32_t objections[most_meetings];  ///< not 0: a thread had one
  device::tile_barrier given;
  device::tile_barrier done;
  crew_job job;
  row_piece piece;  ///< to store, from `shared`
  std::uint32_t shared;
  std::uint32_t late;  ///< a rank whose eager rows did not come

  __device__ void init() {
    met.init(1 + crew_threads);
    for (std::uint32_t& each : objections) each = 0;
    given.init(1);
    done.init(crew_threads);
    late = no_rank;
  }
};

/// Loads 16 bytes of shared memory at any address.
__device__ inline uint4 load_unit(const unsigned char* from) {
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  const auto* const words = reinterpret_cast<const std::uint32_t*>(address & ~std::uintptr_t{3});
  const std::uint32_t shift = 8 * static_cast<std::uint32_t>(address & 3);
  return {__funnelshift_r(words[0], words[1], shift), __funnelshift_r(words[1], words[2], shift),
          __funnelshift_r(words[2], words[3], shift), __funnelshift_r(words[3], words[4], shift)};
}

/// Stores those of the 16 bytes from `unit` on that belong to a row.
__device__ inline void store_unit(unsigned char* unit, unsigned char* row, std::uint32_t bytes,
                                  const unsigned char* from) {
  if (unit >= row && unit + bulk_unit <= row + bytes) {
    *reinterpret_cast<uint4*>(unit) = load_unit(from + (unit - row));
    return;
  }
  TMAP_KEEP_ROLLED
  for (unsigned char* at = unit; at < unit + bulk_unit; ++at) {
    if (at >= row && at < row + bytes) *at = from[at - row];
  }
}

/// Stores the share of one of so many threads. `window` is this rank's own, and aligned. It is no
/// part of the code that fast exchanges fetch.
static __device__ __noinline__ void store_share(unsigned char* window, const row_piece& piece,
                                                const unsigned char* shared, std::uint32_t thread,
                                                std::uint32_t threads) {
  const std::uint32_t units = (piece.bytes + 2 * bulk_unit - 2) / bulk_unit;  // that a row touches at most
  TMAP_KEEP_ROLLED
  for (std::uint32_t i = thread; i < piece.rows * units; i += threads) {
    const std::uint32_t row = i / units;
    const std::uint64_t target = piece.target_of(row);
    unsigned char* const unit = window + target / bulk_unit * bulk_unit + std::uint64_t{i % units} * bulk_unit;
    store_unit(unit, window + target, piece.bytes, shared + row * piece.room() + piece.skew_of(row));
  }
}

/// Lets the leading thread and its crew meet. A barrier of the block would need all threads of the
/// leader's warp.
class crew_meeting {
 public:
  explicit __device__ crew_meeting(row_crew& crew) : crew_(crew) {}

  /// Waits until all have come, and returns whether one of them has passed true.
  [[nodiscard]] __device__ bool any(bool mine) {
    if (mine) crew_.objections[met_] = 1;
    crew_.met.arrive();
    crew_.met.wait(met_ & 1);
    return crew_.objections[met_++] != 0;
  }

 private:
  row_crew& crew_;
  std::uint32_t met_{0};
};

/// Returns the thread of a crew among its others.
__device__ inline word_worker thread_of_crew() {
  const std::uint32_t thread = threadIdx.x - leading_threads;
  return {{thread / device::warp_lanes, crew_threads / device::warp_lanes},
          {thread % device::warp_lanes, device::warp_lanes}};
}

/// Is a thread of a crew, which shares an exchange. It has no bulk copies.
class crew_member {
 public:
  /// The exchange is one of so many ranks. What follows from that is known before the kernel ahead
  /// of this one ends.
  __device__ crew_member(row_crew& crew, std::uint32_t ranks, std::uint32_t row_bytes)
      : crew_(crew),
        meeting_(crew),
        mine_(thread_of_crew().thread()),
        ranks_(deal_to_warps(thread_of_crew(), ranks)),
        packing_(row_bytes) {}

  static constexpr __device__ bool leads() { return false; }
  __device__ const worker& work() const { return mine_; }
  __device__ bool any(const device::peer_link&, bool mine) { return meeting_.any(mine); }
  template <class MaySend>
  __device__ bool send(device::peer_link& link, const exchange_request& request, std::uint32_t call,
                       const MaySend& may_send) const {
    return send_rows(link, request, call, packing_, ranks_, may_send);
  }
  template <class MayTake>
  __device__ std::uint32_t take(device::peer_link& link, const exchange_request& request, std::uint32_t call,
                                std::uint64_t deadline, const MayTake& may_take) const {
    return take_rows(link, request, call, deadline, packing_, ranks_, may_take);
  }

  /// Works on an exchange until the leading thread dismisses the crew.
  __device__ void serve(device::peer_link& link, const exchange_request& request, const unsigned char* shared,
                        std::uint64_t patience) {
    const std::uint64_t deadline = link.now() + patience;
    const std::uint32_t call = link.load(link.rank(), offsetof(window_header, exchanges)) + 1;
    const shared_exchange done = share_exchange(link, request, call, deadline, *this);
    if (done.late != no_rank) crew_.late = done.late;
    if (done.moves && request.block == 0) crew_.done.arrive();
    store_pieces(link, shared);
  }
  /// Stores what the leading thread has pulled to shared memory, until that dismisses the crew.
  __device__ void store_pieces(const device::peer_link& link, const unsigned char* shared) const {
    auto* const window = reinterpret_cast<unsigned char*>(link.address(link.rank(), 0));
    TMAP_KEEP_ROLLED
    for (std::uint32_t parity = 0;; parity ^= 1) {
      crew_.given.wait(parity);
      if (crew_.job == crew_job::leave) return;
      store_share(window, crew_.piece, shared + crew_.shared, static_cast<std::uint32_t>(mine_.number), crew_threads);
      crew_.done.arrive();
    }
  }

 private:
  row_crew& crew_;
  crew_meeting meeting_;
  worker mine_;
  dealt_items ranks_;
  row_packing packing_;
};

/// Is the thread that leads a crew. It shares nothing.
class crew_leader {
 public:
  explicit __device__ crew_leader(row_crew& crew) : crew_(crew), meeting_(crew) {}

  static constexpr __device__ bool leads() { return true; }
  static constexpr __device__ worker work() { return {~std::uint64_t{0}, 1}; }
  __device__ bool any(const device::peer_link&, bool mine) { return meeting_.any(mine); }
  template <class MaySend>
  static __device__ bool send(const device::peer_link&, const exchange_request&, std::uint32_t,
                              const MaySend& may_send) {
    return may_send(false);
  }

  /// The crew takes eager rows, once all have heard that they may move.
  __device__ void begin_take(device::peer_link&, const exchange_request&, std::uint32_t, std::uint64_t) {
    is_working_ = true;
  }
  [[nodiscard]] __device__ std::uint32_t end_take() {
    await_work();
    return crew_.late;
  }
  __device__ void store(const row_piece& piece, std::uint32_t from_shared) {
    await_work();
    crew_.piece = piece;
    crew_.shared = from_shared;
    give(crew_job::store_piece);
    is_working_ = true;
    await_work();
  }
  __device__ void dismiss() {
    await_work();
    give(crew_job::leave);
  }

 private:
  __device__ void give(crew_job job) {
    crew_.job = job;
    crew_.given.arrive();
  }
  __device__ void await_work() {
    if (!is_working_) return;
    crew_.done.wait(parity_);
    parity_ ^= 1;
    is_working_ = false;
  }

  row_crew& crew_;
  crew_meeting meeting_;
  std::uint32_t parity_{0};
  bool is_working_{false};
};

/// The link of an exchange by a thread that leads a crew.
class crew_link : public device::peer_link {
 public:
  __device__ crew_link(const peer_memory_ref& window, const unsigned char* shared, device::tile_barrier* gets,
                       crew_leader& crew, packet* taken)
      : peer_link(window, shared, gets, taken), crew_(crew) {}

  __device__ void store_rows(const row_piece& rows, std::uint32_t from_shared) const { crew_.store(rows, from_shared); }

 private:
  crew_leader& crew_;
};

}  // namespace tmap::kernels::peer
