// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// What protocols between GPUs are written in, as instructions (docs/peers.md, "The link"). The
/// model that checks the protocols has a link with the same calls.

#include <tmap/detail/peer_window.hpp>
#include <tmap/detail/standard.hpp>
#include <tmap/device/bulk_copy.cuh>
#include <tmap/device/peer_order.cuh>
#include <tmap/peer_memory_ref.hpp>

#include <cuda/atomic>
#include <cuda/ptx>

namespace tmap::device {

/// The calls of one thread of a block. Offsets are bytes of a window from the beginning of its
/// header, and bytes of the shared memory that the link was given. The window must outlive the link
/// and should be a kernel parameter: the link does not copy it.
class peer_link {
 public:
  /// Stands for no offset.
  static constexpr std::uint64_t no_word = ~std::uint64_t{0};

  using packet = tmap::detail::peer::packet;
  static constexpr std::uint32_t packet_words = tmap::detail::peer::packet_words;

  /// Puts need shared memory, a multiple of 16. Gets also need a barrier for each set that is
  /// used, at most 32. `init(1)` has made them ready, no phase has passed, and no other thread uses
  /// them. Packets that are taken go to shared memory, too.
  explicit __device__ peer_link(const peer_memory_ref& window, const void* shared = nullptr,
                                tile_barrier* gets = nullptr, packet* taken = nullptr)
      : window_(window), shared_(static_cast<const unsigned char*>(shared)), gets_(gets), taken_(taken) {}

  __device__ std::uint32_t rank() const { return window_.rank; }
  __device__ std::uint32_t ranks() const { return window_.ranks; }

  __device__ std::uint32_t load(std::uint32_t rank, std::uint64_t offset) const { return *word(rank, offset); }
  __device__ void store(std::uint32_t rank, std::uint64_t offset, std::uint32_t value) const {
    *word(rank, offset) = value;
  }

  /// Returns the address of a byte of a window, as this GPU sees it.
  __device__ std::uint64_t address(std::uint32_t rank, std::uint64_t offset) const {
    return window_.windows[rank] + offset;
  }
  /// Stores a word at an address of this GPU's own memory, or of a window.
  __device__ void store_at(std::uint64_t address, std::uint32_t value) const { *word_of(address) = value; }

  /// Starts a copy of shared memory to a window, in this thread's open group of stores.
  __device__ void put(std::uint32_t rank, std::uint64_t offset, std::uint32_t from_shared, std::uint32_t bytes) const {
    store_bytes(at(rank, offset), shared_ + from_shared, bytes);
  }
  /// Starts a copy of a window to shared memory, one of a set. `wait_gets` waits for all copies of
  /// a set, which have less than 1 MiB together.
  __device__ void get(std::uint32_t to_shared, std::uint32_t rank, std::uint64_t offset, std::uint32_t bytes,
                      std::uint32_t set = 0) const {
    namespace ptx = cuda::ptx;  // it announces the bytes; `wait_gets` arrives
    ptx::mbarrier_expect_tx(ptx::sem_relaxed, ptx::scope_cta, ptx::space_shared, gets_[set].word(), bytes);
    load_bytes(const_cast<unsigned char*>(shared_) + to_shared, at(rank, offset), bytes, gets_[set]);
  }
  __device__ void wait_gets(std::uint32_t set = 0) {
    gets_[set].arrive();
    gets_[set].wait(parities_ >> set & 1);
    parities_ ^= 1u << set;
  }

  /// Loads a word of shared memory that a get has filled.
  __device__ std::uint32_t load_shared(std::uint32_t offset) const {
    return *reinterpret_cast<const std::uint32_t*>(shared_ + offset);
  }

  __device__ void flush() const { device::flush(); }
  __device__ void quiet() const { device::quiet(); }
  /// Lets `raise_released_at` carry the puts before this thread's last `flush`, for this GPU. Later
  /// ones go on.
  __device__ void quiet_flushed() const {
    commit_stores();
    wait_stores_written<1>();
    cuda::ptx::fence(cuda::ptx::sem_acq_rel, cuda::ptx::scope_gpu);
  }
  /// Waits until all puts have completed. Later kernels of this rank find them. To announce them
  /// takes `quiet`.
  __device__ void settle() const {
    commit_stores();
    wait_stores_written();
  }
  __device__ void raise(std::uint32_t rank, std::uint64_t signal, std::uint32_t by) const {
    device::raise(word(rank, signal), by);
  }
  /// Raises a signal of the own window for other blocks of this rank.
  __device__ void raise_here(std::uint64_t signal, std::uint32_t by) const {
    ptx::red_add_release_gpu(word(rank(), signal), by);
  }
  /// Adds 1 to a word of the own window, which deals work to blocks, and returns what it was. It
  /// carries nothing.
  __device__ std::uint32_t deal(std::uint64_t word_offset) const { return atomicAdd(word(rank(), word_offset), 1u); }
  /// Adds 1 to a word of the own window, and returns what it was. Blocks of this rank that count
  /// later see what this thread has seen and written.
  __device__ std::uint32_t count_here(std::uint64_t word_offset) const {
    cuda::atomic_ref<std::uint32_t, cuda::thread_scope_device> counted(*word(rank(), word_offset));
    return counted.fetch_add(1, cuda::memory_order_acq_rel);
  }
  /// Lets `raise_released` and `send` carry what this thread has seen and written, as `quiet` does.
  /// One serves many.
  __device__ void release() const { cuda::ptx::fence(cuda::ptx::sem_acq_rel, cuda::ptx::scope_sys); }
  __device__ void raise_released(std::uint32_t rank, std::uint64_t signal, std::uint32_t by) const {
    device::raise_released(word(rank, signal), by);
  }
  /// Raises a word at an address of this GPU's own memory, or of a window. It carries what
  /// `release` let it carry, or, on this GPU alone, what `quiet_flushed` did.
  __device__ void raise_released_at(std::uint64_t address, std::uint32_t by) const {
    device::raise_released(word_of(address), by);
  }
  /// Sends a packet. It carries what this thread had seen and written at its last `release`.
  __device__ void send(std::uint32_t rank, std::uint64_t offset, const packet& given) const {
    ptx::st_relaxed_sys(reinterpret_cast<uint4*>(at(rank, offset)),
                        uint4{given.words[0], given.words[1], given.words[2], given.tag});
  }
  /// Writes a word of the packets taken, `offset` bytes after the first one: of packets that this
  /// block has, or will send.
  __device__ void keep(std::uint32_t offset, std::uint32_t value) const {
    *reinterpret_cast<std::uint32_t*>(reinterpret_cast<unsigned char*>(taken_) + offset) = value;
  }
  /// Returns a word of the packets taken: from number 0 on, `offset` bytes after it. After `sync`
  /// other threads of the block may, too.
  __device__ std::uint32_t taken(std::uint32_t offset) const {
    return *reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const unsigned char*>(taken_) + offset);
  }
  /// Waits for packets with a tag that follow each other in the own window, at least one, or until
  /// the word `unless` of it is not zero. The block has them as number `to` and the next.
  [[nodiscard]] __device__ bool take(std::uint64_t first, std::uint32_t packets, std::uint32_t tag, std::uint32_t to,
                                     std::uint64_t deadline, std::uint64_t unless = no_word) const {
    const auto* const sent = reinterpret_cast<const uint4*>(at(rank(), first));
    const auto has_come = [&](std::uint32_t i, const uint4& found) {
      if (found.w == tag) taken_[to + i] = {{found.x, found.y, found.z}, found.w};
      return found.w == tag;
    };
    constexpr std::uint32_t packets_at_once = 3;  // with more, a dispatch of few tokens lacks registers
    const auto look = [&] {
      bool all = true;
      TMAP_KEEP_ROLLED
      for (std::uint32_t i = 0; i < packets; i += packets_at_once) {
        uint4 found[packets_at_once];
#pragma unroll
        for (std::uint32_t j = 0; j < packets_at_once; ++j) {
          if (i + j < packets) found[j] = ptx::ld_relaxed_sys(sent + i + j);
        }
#pragma unroll
        for (std::uint32_t j = 0; j < packets_at_once; ++j) {
          if (i + j < packets) all &= has_come(i + j, found[j]);
        }
      }
      return all;
    };
    return detail::poll_and_acquire(look, deadline, unless == no_word ? nullptr : word(rank(), unless));
  }
  /// Waits for packets with a tag in the own window, or until the word `unless` of it is not zero.
  /// There are `count` of them, one at least, `step` packets from one to the next. This thread
  /// alone has them, and learns nothing but their words.
  template <std::uint32_t Most>
  [[nodiscard]] __device__ bool await_packets(std::uint64_t first, std::uint32_t step, std::uint32_t count,
                                              std::uint32_t tag, packet (&found)[Most], std::uint64_t deadline,
                                              std::uint64_t unless = no_word) const {
    const auto look = [&] { return look_packets(first, step, count, tag, found); };
    return detail::poll_relaxed(look, deadline, unless == no_word ? nullptr : word(rank(), unless));
  }
  /// Looks once for the packets of `await_packets`, of which there may be none. Returns whether all
  /// are there. The thread goes on until it uses the result.
  template <std::uint32_t Most>
  [[nodiscard]] __device__ bool look_packets(std::uint64_t first, std::uint32_t step, std::uint32_t count,
                                             std::uint32_t tag, packet (&found)[Most]) const {
    const auto* const sent = reinterpret_cast<const uint4*>(at(rank(), first));
    bool all = true;
#pragma unroll
    for (std::uint32_t i = 0; i < Most; ++i) {
      if (i >= count) continue;
      const uint4 each = ptx::ld_relaxed_sys(sent + i * step);
      found[i] = {{each.x, each.y, each.z}, each.w};
    }
#pragma unroll
    for (std::uint32_t i = 0; i < Most; ++i) all &= i >= count || found[i].tag == tag;
    return all;
  }
  /// Loads and stores so many words of a row, at any byte of a window. They are those of a packet.
  [[nodiscard]] __device__ packet load_row_words(std::uint64_t offset, std::uint32_t words) const {
    const unsigned char* const from = at(rank(), offset);
    packet found{};
    if (offset % sizeof(std::uint32_t) == 0) {
#pragma unroll
      for (std::uint32_t i = 0; i < packet_words; ++i) {
        if (i < words) found.words[i] = reinterpret_cast<const std::uint32_t*>(from)[i];
      }
      return found;
    }
#pragma unroll
    for (std::uint32_t i = 0; i < packet_words; ++i) {
      const unsigned char* const bytes = from + i * sizeof(std::uint32_t);
      if (i < words) found.words[i] = bytes[0] | bytes[1] << 8 | bytes[2] << 16 | std::uint32_t{bytes[3]} << 24;
    }
    return found;
  }
  __device__ void store_row_words(std::uint64_t offset, std::uint32_t words, const packet& given) const {
    unsigned char* const to = at(rank(), offset);
    const bool is_aligned = offset % sizeof(std::uint32_t) == 0;
#pragma unroll
    for (std::uint32_t i = 0; i < packet_words; ++i) {
      if (is_aligned && i < words) reinterpret_cast<std::uint32_t*>(to)[i] = given.words[i];
    }
    if (is_aligned) return;
#pragma unroll
    for (std::uint32_t i = 0; i < sizeof(given.words); ++i) {
      if (i / sizeof(std::uint32_t) < words) {
        to[i] = static_cast<unsigned char>(given.words[i / sizeof(std::uint32_t)] >> 8 * (i % sizeof(std::uint32_t)));
      }
    }
  }
  /// Looks at a signal of the own window once, and learns nothing else. The thread goes on until it
  /// uses the result.
  [[nodiscard]] __device__ std::uint32_t look(std::uint64_t signal) const {
    return ptx::ld_relaxed_sys(word(rank(), signal));
  }
  /// Waits for a signal of the own window, or until the word `unless` of it is not zero.
  [[nodiscard]] __device__ bool wait(std::uint64_t signal, std::uint32_t value, std::uint64_t deadline,
                                     std::uint64_t unless = no_word) const {
    return wait_until(word(rank(), signal), value, deadline, unless == no_word ? nullptr : word(rank(), unless));
  }
  __device__ void proxy_fence() const {
    fence_global_accesses();
  }
  __device__ void sync() const {
    __syncthreads();
  }
  /// Waits for the other threads of the block. Returns whether one of them passed true.
  [[nodiscard]] __device__ bool sync_or(bool mine) const {
    return __syncthreads_or(mine ? 1 : 0) != 0;
  }
  __device__ std::uint64_t now() const {
    return clock_now();
  }

 private:
  __device__ unsigned char* at(std::uint32_t rank, std::uint64_t offset) const {
    return static_cast<unsigned char*>(__cvta_global_to_generic(window_.windows[rank] + offset));
  }
  static __device__ std::uint32_t* word_of(std::uint64_t address) {
    return reinterpret_cast<std::uint32_t*>(address);
  }
  __device__ std::uint32_t* word(std::uint32_t rank, std::uint64_t offset) const {
    return reinterpret_cast<std::uint32_t*>(at(rank, offset));
  }

  const peer_memory_ref& window_;
  const unsigned char* shared_;
  tile_barrier* gets_;
  packet* taken_;
  std::uint32_t parities_{};  // bit i: the phase that set i waits for
};

}  // namespace tmap::device
