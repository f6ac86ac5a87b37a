// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/peer_group.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/peer/nccl.hpp"
#include "lib/peer/peer_calls.hpp"

/// A communicator of the fake NCCL, as one rank sees it.
struct ncclComm {
  int rank{};
  int ranks{};
  int device{};
};

namespace tmap::testing {

// A machine for groups: GPUs, their memory, a clock, and an NCCL that plays all other ranks. The
// process has one machine, the latest `fake_peers` that exists. Thread-safe except for the members
// that a test sets.

class fake_peers {
 public:
  fake_peers();
  ~fake_peers();
  fake_peers(const fake_peers&) = delete;
  fake_peers& operator=(const fake_peers&) = delete;

  static const peer::peer_calls& calls();
  static fake_peers& current();

  /// From now on, the n-th call of CUDA (1 is the next, 0 is none) returns `code` and does nothing.
  void fail_cuda(std::uint64_t n, cudaError_t code = cudaErrorUnknown);
  /// From now on, the n-th call of NCCL returns `code` and does nothing.
  void fail_nccl(std::uint64_t n, peer::nccl_result code);
  std::uint64_t cuda_calls() const { return cuda_.made; }
  std::uint64_t nccl_calls() const { return nccl_.made; }
  /// Returns whether nothing that a group or a window made is left.
  bool is_clean() const;
  /// Returns a device's memory that holds `data`, or -1.
  int device_of(const void* data) const;
  /// Returns an existing communicator of a program.
  ncclComm* program_communicator(int rank, int ranks, int device);

  // The system.
  bool is_exiting{};
  int process{100};
  std::optional<std::string> multicast{"0"};  ///< NCCL_NVLS_ENABLE
  std::uint64_t clock{};                      ///< in milliseconds; each nap lasts 10
  std::function<void()> on_nap;

  // CUDA.
  int devices{4};
  std::set<std::pair<int, int>> unreachable;  ///< a GPU and the one whose memory it cannot reach
  std::set<std::pair<int, int>> opened;
  std::map<void*, int> memory;  ///< each allocation and its GPU
  int open_streams{};
  bool is_stream_stuck{};  ///< the work of each stream is never done
  bool has_bad_links{};    ///< the self-test finds wrong bytes

  // NCCL.
  bool is_nccl_loaded{true};
  bool is_nccl_installed{true};
  int nccl_version{23007};
  int kernel_version{};
  std::set<std::string> missing_functions;
  /// Lists what NCCL did and which kernels ran, in order: "gather 4096", "pack".
  std::vector<std::string> done;
  /// Returns what another rank brings to the n-th exchange (0 is the first), where this rank brings
  /// `mine`.
  std::function<std::uint64_t(int n, int rank, std::uint64_t mine)> other_ranks;
  peer::nccl_result state{peer::nccl_result::success};  ///< of every communicator
  int polls_in_progress{};                              ///< that calls of NCCL take before they are done
  std::set<int> ranks_out_of_reach;
  bool are_windows_refused{};  ///< NCCL registers buffers of another kind, as without peer access
  std::set<ncclComm*> communicators;
  std::set<void*> windows;
  std::set<void*> nccl_memory;
  static constexpr std::uint64_t stride = std::uint64_t{1} << 37;  ///< from one rank's window to the next rank's

 private:
  friend struct fake_peer_calls;
  struct counted_calls {
    std::uint64_t made{};
    std::uint64_t failing{};
    int code{};
    bool fails() { return ++made == failing; }
  };

  fake_peers* before_{};
  mutable std::mutex mutex_;
  counted_calls cuda_;
  counted_calls nccl_;
  int exchanges_{};
  std::function<void()> end_of_job_;  ///< of a window; runs when the state is asked for next
  std::vector<std::unique_ptr<ncclComm>> of_program_;
};

}  // namespace tmap::testing
