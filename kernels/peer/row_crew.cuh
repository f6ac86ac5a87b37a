// SPDX-License-Identifier: Apache-2.0
#pragma once

// Moves what bulk copies cannot move, by the threads of a block that run no protocol: eager rows,
// and rows at addresses of any alignment.

#include <tmap/device/peer_link.cuh>
#include <tmap/device/warp.cuh>

#include "kernels/peer/protocol_eager.hpp"
#include "kernels/peer/row_piece.hpp"

namespace tmap::kernels::peer {

/// The threads of a block: one that runs a protocol, in a warp of its own, and those of the crew.
inline constexpr std::uint32_t leading_threads = device::warp_lanes;
inline constexpr std::uint32_t crew_threads = 256;
inline constexpr std::uint32_t threads_with_crew = leading_threads + crew_threads;

/// Names what a crew does next.
enum class crew_job : std::uint32_t { leave, store_piece, send_rows, take_rows };

/// Is what the leading thread and the crew share, in shared memory.
struct row_crew {
  device::tile_barrier given;
  device::tile_barrier done;
  crew_job job;
  row_piece piece;  ///< to store, from `shared`
  std::uint32_t shared;
  std::uint32_t call;  ///< whose eager rows are sent or taken
  bool is_pulled;      ///< whether others pull rows of the call
  std::uint64_t deadline;
  std::uint32_t late;  ///< a rank whose eager rows did not come

  __device__ void init() {
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

/// Is the thread of a crew. It has no bulk copies.
class crew_member {
 public:
  __device__ crew_member(row_crew& crew, const peer_memory_ref& window, const exchange_request& request,
                         const unsigned char* shared, packet* taken)
      : crew_(crew), link_(window, nullptr, nullptr, taken), request_(request), shared_(shared) {}

  /// Works until the leading thread dismisses the crew.
  __device__ void serve() {
    if (blockIdx.x == 0) send_rows(link_, request_, of_crew(), *this);
    TMAP_KEEP_ROLLED
    for (;;) {
      await_job();
      if (crew_.job == crew_job::leave) return;
      work();
      end_job();
    }
  }
  /// Is the gate of `send_rows`, which comes before all other jobs. The leader need not give it.
  __device__ bool pass() {
    const bool is_first = !has_job_;
    await_job();
    if (crew_.job != crew_job::send_rows) return false;
    if (is_first) send_slot(link_, link_.rank(), crew_.call, crew_.is_pulled, of_crew().thread());
    return true;
  }
  __device__ std::uint32_t call() const { return crew_.call; }

 private:
  static __device__ word_worker of_crew() {
    const std::uint32_t thread = threadIdx.x - leading_threads;
    return {{thread / device::warp_lanes, crew_threads / device::warp_lanes},
            {thread % device::warp_lanes, device::warp_lanes}};
  }

  __device__ void await_job() {
    if (!has_job_) crew_.given.wait(parity_);
    has_job_ = true;
  }
  __device__ void end_job() {
    crew_.done.arrive();
    parity_ ^= 1;
    has_job_ = false;
  }
  __device__ void work() {
    if (crew_.job == crew_job::store_piece) {
      auto* const window = reinterpret_cast<unsigned char*>(link_.address(link_.rank(), 0));
      store_share(window, crew_.piece, shared_ + crew_.shared, threadIdx.x - leading_threads, crew_threads);
    } else if (crew_.job == crew_job::take_rows) {
      const std::uint32_t late = take_rows(link_, request_, crew_.call, crew_.deadline, of_crew());
      if (late != no_rank) crew_.late = late;
    }
  }

  row_crew& crew_;
  device::peer_link link_;
  const exchange_request& request_;
  const unsigned char* shared_;
  std::uint32_t parity_{0};
  bool has_job_{false};
};

/// Gives a crew its work, for the leading thread.
class crew_leader {
 public:
  explicit __device__ crew_leader(row_crew& crew) : crew_(crew) {}

  __device__ void store(const row_piece& piece, std::uint32_t from_shared) {
    await_work();
    crew_.piece = piece;
    crew_.shared = from_shared;
    give(crew_job::store_piece);
    await_work();
  }
  __device__ void send(const exchange_request&, std::uint32_t call, bool is_pulled) {
    crew_.call = call;
    crew_.is_pulled = is_pulled;
    give(crew_job::send_rows);
  }
  __device__ void begin_take(const exchange_request&, std::uint32_t call, std::uint64_t deadline) {
    await_work();
    crew_.call = call;
    crew_.deadline = deadline;
    give(crew_job::take_rows);
  }
  [[nodiscard]] __device__ std::uint32_t end_take() {
    await_work();
    return crew_.late;
  }
  __device__ void dismiss() {
    await_work();
    give(crew_job::leave);
  }

 private:
  __device__ void give(crew_job job) {
    crew_.job = job;
    crew_.given.arrive();
    is_working_ = true;
  }
  __device__ void await_work() {
    if (!is_working_) return;
    crew_.done.wait(parity_);
    parity_ ^= 1;
    is_working_ = false;
  }

  row_crew& crew_;
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
