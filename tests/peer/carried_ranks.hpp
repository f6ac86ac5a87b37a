// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/peer_exchange.hpp>
#include <tmap/peer_group.hpp>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/peer/make_group.hpp"
#include "lib/peer/nccl.hpp"

// Groups of virtual ranks that do not use each other's windows. What looks like NCCL to them is
// made of copies on the GPU between two barriers of other windows, so one thread serves all ranks,
// and graphs capture it.

namespace tmap::testing {
class carrier;
}  // namespace tmap::testing

/// A communicator of one virtual rank.
struct ncclComm {
  int rank;
  tmap::testing::carrier* all;
};

namespace tmap::testing {

/// Carries parcels among the ranks of one GPU. `meeting` has a window of each rank that others
/// reach.
class carrier {
 public:
  explicit carrier(const std::vector<const peer_memory*>& meeting) : meeting_{meeting} {
    for (int rank = 0; rank < ranks(); ++rank) communicators_.push_back({rank, this});
  }
  carrier(const carrier&) = delete;
  carrier& operator=(const carrier&) = delete;

  /// Makes a window of each rank.
  std::vector<peer_memory> allocate(std::uint64_t bytes, std::uint64_t pair_bytes) {
    windows_.clear();
    std::vector<peer_memory> made;
    for (ncclComm& each : communicators_) {
      auto group = peer::group_from_nccl(&each, std::chrono::milliseconds{5000}, calls());
      auto window = group ? group->allocate_local(bytes, pair_bytes) : failure{group.error()};
      EXPECT_TRUE(window.has_value()) << to_string(window.error());
      if (window) made.push_back(std::move(*window));
    }
    for (const peer_memory& each : made) windows_.push_back(each.ref().windows[each.ref().rank]);
    return made;
  }
  std::uint64_t carried() const { return carried_; }

 private:
  using result_of_nccl = peer::nccl_result;

  int ranks() const { return static_cast<int>(meeting_.size()); }

  static result_of_nccl outcome(cudaError_t code) {
    return code == cudaSuccess ? result_of_nccl::success : result_of_nccl::unhandled_cuda_error;
  }

  cudaError_t meet(int rank, cudaStream_t stream) const {
    const result<void> met =
        barrier_async(*meeting_[static_cast<std::size_t>(rank)], cuda::stream_ref{stream}, std::chrono::seconds{5});
    return met ? cudaSuccess : cudaErrorUnknown;
  }

  /// Copies the parcel of every rank. All windows have one layout. The first call of a window comes
  /// before the others are there, and carries nothing.
  static result_of_nccl all_to_all(const void* from, void* to, std::size_t count, int, ncclComm* communicator,
                                   cudaStream_t stream) {
    carrier& all = *communicator->all;
    const std::size_t bytes = 8 * count, me = static_cast<std::size_t>(communicator->rank);
    if (all.windows_.empty()) return result_of_nccl::success;
    ++all.carried_;
    cudaError_t code = all.meet(communicator->rank, stream);
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(from) - all.windows_[me] + me * bytes;
    for (std::size_t source = 0; code == cudaSuccess && source < all.windows_.size(); ++source) {
      code = cudaMemcpyAsync(static_cast<unsigned char*>(to) + source * bytes,
                             reinterpret_cast<const void*>(all.windows_[source] + offset), bytes,
                             cudaMemcpyDeviceToDevice, stream);
    }
    return outcome(code == cudaSuccess ? all.meet(communicator->rank, stream) : code);
  }
  /// Gives a rank its own number for those of all ranks: they ask for the same windows.
  static result_of_nccl all_gather(const void* from, void* to, std::size_t, int, ncclComm* communicator,
                                   cudaStream_t stream) {
    cudaError_t code = cudaSuccess;
    for (int rank = 0; code == cudaSuccess && rank < communicator->all->ranks(); ++rank) {
      code = cudaMemcpyAsync(static_cast<std::uint64_t*>(to) + rank, from, 8, cudaMemcpyDeviceToDevice, stream);
    }
    return outcome(code);
  }
  static result_of_nccl number(int* to, int value) {
    *to = value;
    return result_of_nccl::success;
  }

  static void* find_function(void*, const char* name) {
    const auto any = [](auto* function) { return reinterpret_cast<void*>(function); };
    static const std::map<std::string, void*> all{
        {"ncclGetVersion", any(+[](int* to) { return number(to, 23007); })},
        {"ncclCommGetAsyncError", any(+[](ncclComm*, result_of_nccl* to) { return *to = result_of_nccl::success; })},
        {"ncclCommCount", any(+[](const ncclComm* of, int* to) { return number(to, of->all->ranks()); })},
        {"ncclCommUserRank", any(+[](const ncclComm* of, int* to) { return number(to, of->rank); })},
        {"ncclCommCuDevice", any(+[](const ncclComm*, int* to) { return number(to, 0); })},
        {"ncclAllGather", any(&all_gather)},
        {"ncclAlltoAll", any(&all_to_all)},
    };
    const auto found = all.find(name);
    return found != all.end() ? found->second : any(+[] { return result_of_nccl::invalid_usage; });
  }

  static const peer::peer_calls& calls() {
    static const peer::peer_calls all = [] {
      peer::peer_calls made = peer::real_peer_calls();
      made.environment = [](const char*) { return "0"; };
      made.open_library = [](const char*, int) -> void* { return &made_of_functions; };
      made.find_function = &find_function;
      return made;
    }();
    return all;
  }
  static inline int made_of_functions{};

  std::vector<const peer_memory*> meeting_;
  std::vector<ncclComm> communicators_;
  std::vector<std::uint64_t> windows_;
  std::uint64_t carried_{};
};

}  // namespace tmap::testing
