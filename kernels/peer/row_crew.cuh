// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stores rows that bulk copies cannot store, by the threads of a block that run no protocol.

#include <tmap/device/peer_link.cuh>
#include <tmap/device/warp.cuh>

#include "kernels/peer/row_piece.hpp"

namespace tmap::kernels::peer {

/// The threads of a block: one that runs a protocol, in a warp of its own, and those of the crew. A
/// block without a crew has one thread.
inline constexpr std::uint32_t leading_threads = device::warp_lanes;
inline constexpr std::uint32_t most_crew_threads = 256;

/// Returns the threads of a block that moves rows. `places` has the bits of all addresses, sizes
/// and pitches. Rows that bulk copies can store need no crew, which takes its time to start and to
/// end.
inline std::uint32_t threads_for(std::uint64_t places) {
  return places % bulk_unit == 0 ? 1 : leading_threads + most_crew_threads;
}

/// Is what the leading thread and the crew share, in shared memory.
struct row_crew {
  device::tile_barrier given;
  device::tile_barrier done;
  row_piece piece;  ///< no rows: the crew may go
  std::uint32_t shared;

  __device__ void init() {
    given.init(1);
    done.init(blockDim.x - leading_threads);
  }
  static __device__ bool is_there() { return blockDim.x > leading_threads; }
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

/// Runs in all threads of a crew until the leading thread dismisses it.
__device__ inline void serve(row_crew& crew, unsigned char* window, const unsigned char* shared) {
  TMAP_KEEP_ROLLED
  for (std::uint32_t parity = 0;; parity ^= 1) {
    crew.given.wait(parity);
    if (crew.piece.rows == 0) return;
    store_share(window, crew.piece, shared + crew.shared, threadIdx.x - leading_threads, blockDim.x - leading_threads);
    crew.done.arrive();
  }
}

/// The link of an exchange by one thread, which stores rows itself.
class lone_link : public device::peer_link {
 public:
  __device__ lone_link(const peer_memory_ref& window, const unsigned char* shared, device::tile_barrier* gets,
                       packet* taken = nullptr)
      : peer_link(window, shared, gets, taken), own_(bytes_of(window)), shared_(shared) {}

  static __device__ unsigned char* bytes_of(const peer_memory_ref& window) {
    return reinterpret_cast<unsigned char*>(window.windows[window.rank] + 0);
  }

  __device__ void store_rows(const row_piece& rows, std::uint32_t from_shared) const {
    store_share(own_, rows, shared_ + from_shared, 0, 1);
  }

 private:
  unsigned char* own_;
  const unsigned char* shared_;
};

/// The same with a crew, if there is one.
class crew_link : public lone_link {
 public:
  __device__ crew_link(const peer_memory_ref& window, const unsigned char* shared, device::tile_barrier* gets,
                       row_crew& crew, packet* taken = nullptr)
      : lone_link(window, shared, gets, taken), crew_(crew) {}

  __device__ void store_rows(const row_piece& rows, std::uint32_t from_shared) {
    if (!row_crew::is_there()) return lone_link::store_rows(rows, from_shared);
    give(rows, from_shared);
    crew_.done.wait(parity_);
    parity_ ^= 1;
  }
  __device__ void dismiss() {
    if (row_crew::is_there()) give({}, 0);
  }

 private:
  __device__ void give(const row_piece& rows, std::uint32_t from_shared) {
    crew_.piece = rows;
    crew_.shared = from_shared;
    crew_.given.arrive();
  }

  row_crew& crew_;
  std::uint32_t parity_{0};
};

}  // namespace tmap::kernels::peer
