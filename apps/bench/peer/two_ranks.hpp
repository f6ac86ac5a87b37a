// SPDX-License-Identifier: Apache-2.0
#pragma once

// Two ranks of one process, on two GPUs or both on one, and how to time what they do together.

#include <cuda_runtime_api.h>
#include <tmap/peer_exchange.hpp>
#include <tmap/peer_group.hpp>

#include <cstdint>
#include <functional>
#include <vector>

#include "apps/support/device_memory.hpp"

namespace tmap::apps::bench {

class two_ranks {
 public:
  static constexpr std::uint32_t count = 2;

  /// Makes windows of `bytes` on GPUs 0 and 1, or both on GPU 0.
  two_ranks(std::uint64_t bytes, bool are_virtual);
  ~two_ranks();
  two_ranks(const two_ranks&) = delete;
  two_ranks& operator=(const two_ranks&) = delete;

  bool are_virtual() const { return are_virtual_; }
  int gpu(std::uint32_t rank) const { return are_virtual_ ? 0 : static_cast<int>(rank); }
  cudaStream_t stream(std::uint32_t rank) const { return ranks_[rank].stream; }
  const peer_memory& window(std::uint32_t rank) const { return ranks_[rank].window; }
  /// Returns a byte of a rank's window as that rank's GPU sees it.
  void* at(std::uint32_t rank, std::uint64_t offset) const;

  /// Makes the GPU of a rank current.
  void use(std::uint32_t rank) const;
  void for_each(const std::function<void(std::uint32_t)>& function) const;
  /// Waits for the streams of both ranks.
  void drain() const;

  /// Returns the microseconds that both streams need for what `enqueue` puts on them, a median.
  /// Both begin at a barrier, when the host has enqueued everything, which must take less than
  /// `delay`.
  double microseconds(const std::function<void()>& enqueue, std::uint64_t delay = 1000, int repeats = 7) const;

  void fill(std::uint32_t rank, std::uint64_t offset, int byte, std::uint64_t bytes) const;
  std::vector<unsigned char> read(std::uint32_t rank, std::uint64_t offset, std::uint64_t bytes) const;
  void write(std::uint32_t rank, std::uint64_t offset, const void* data, std::uint64_t bytes) const;

 private:
  struct rank_state {
    peer_memory window;
    cudaStream_t stream{};
    cudaEvent_t begin{};
    cudaEvent_t end{};
  };

  double once(const std::function<void()>& enqueue, std::uint64_t delay) const;

  bool are_virtual_;
  std::vector<device_memory> buffers_;  ///< of virtual ranks
  std::vector<rank_state> ranks_;
};

}  // namespace tmap::apps::bench
