// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/peer_group.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>

#include "lib/peer/nccl.hpp"
#include "lib/peer/provider.hpp"

namespace tmap::peer {

/// One number of each rank.
using rank_values = std::array<std::uint64_t, max_group_ranks>;

/// A communicator of NCCL, with what a group needs to talk over it: a stream and a few bytes of
/// device memory. Everything that waits has the group's patience. A call that runs out of it breaks
/// the communicator, because its work may still be in progress.
class communicator {
 public:
  /// Takes one of the caller, who keeps it.
  [[nodiscard]] static result<std::shared_ptr<communicator>> adopt(ncclComm* given, std::chrono::milliseconds patience,
                                                                   const nccl_functions& nccl, const peer_calls& calls);
  /// Makes one together with the other ranks.
  [[nodiscard]] static result<std::shared_ptr<communicator>> make(const peer_start& start, const peer_id& id,
                                                                  const nccl_functions& nccl, const peer_calls& calls);

  communicator(const peer_calls& calls, const nccl_functions& nccl, std::chrono::milliseconds patience);
  ~communicator();
  communicator(const communicator&) = delete;
  communicator& operator=(const communicator&) = delete;

  std::uint32_t rank() const { return rank_; }
  std::uint32_t ranks() const { return ranks_; }
  int device() const { return device_; }
  ncclComm* get() const { return communicator_; }
  const nccl_functions& nccl() const { return nccl_; }
  const peer_calls& calls() const { return calls_; }
  /// Returns whether a destructor may call CUDA and NCCL, and no work is in progress.
  bool may_end() const { return birthplace_.may_end() && !is_broken_; }

  /// Fails if the communicator cannot be used any more.
  [[nodiscard]] result<void> check();
  /// Waits until NCCL has finished a call that returned `code`.
  [[nodiscard]] result<void> settle(nccl_result code);
  /// Gives every rank the numbers of all ranks, in order. Collective.
  [[nodiscard]] result<rank_values> exchange(std::uint64_t mine);
  /// Enqueues that each rank gives `count` numbers to every rank. It runs without a deadline.
  /// Collective.
  [[nodiscard]] result<void> all_to_all(const std::uint64_t* from, std::uint64_t* to, std::uint64_t count,
                                        cudaStream_t stream);
  /// Runs collective work on the stream of this communicator, and waits for it.
  template <class Work>
  [[nodiscard]] result<void> run(const Work& work) {
    result<void> done = work(stream_);
    if (done) done = wait_for_stream();
    if (!done) return break_for(done.error());
    return done;
  }
  /// Asks a window for the addresses of all ranks, by a kernel.
  [[nodiscard]] result<rank_values> ask(nccl_window_handle window);

 private:
  nccl_result state() const;
  [[nodiscard]] result<void> read_ranks();
  [[nodiscard]] result<void> open_stream();
  [[nodiscard]] result<void> wait_for_stream();
  [[nodiscard]] result<rank_values> gather(std::uint64_t mine);
  [[nodiscard]] result<rank_values> fetch();
  /// Breaks the communicator for `reason`, and returns it.
  failure break_for(const error& reason);
  failure out_of_patience();

  const peer_calls& calls_;
  const nccl_functions nccl_;
  const birthplace birthplace_;
  const std::uint64_t patience_;  // milliseconds
  ncclComm* communicator_{};
  bool is_own_{};
  bool is_broken_{};
  std::uint32_t rank_{};
  std::uint32_t ranks_{};
  int device_{};
  cudaStream_t stream_{};
  std::uint64_t* numbers_{};  // of all ranks, then this rank's own
};

}  // namespace tmap::peer
