// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/peer_exchange.hpp>
#include <tmap/peer_group.hpp>

#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "device/own_stream.hpp"

// Ranks for tests of kernels. Ranks that share a GPU have a stream of their own each. They prove
// what the kernels compute, and nothing about order between GPUs.

namespace tmap::testing {

using std::chrono::milliseconds;

inline constexpr milliseconds patience{2000};

/// Each stream of a virtual rank needs a queue of its own: a kernel that waits for another rank
/// would hold up that rank's kernels in the same queue. CUDA reads this when it starts.
inline const int has_queues = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);

/// One rank: its window, and a stream on its GPU.
struct rank_on_gpu {
  int gpu;
  peer_memory window;
  std::unique_ptr<own_stream> stream;
};

/// Names the GPU of each rank, and how the ranks find each other's windows.
struct rank_places {
  enum class provider : std::uint8_t { given_addresses, same_process, nccl };

  provider by;
  std::vector<int> gpus;
};

inline void PrintTo(const rank_places& places, std::ostream* out) {
  constexpr const char* names[]{"given addresses", "one process", "NCCL"};
  *out << names[static_cast<int>(places.by)] << ", GPUs" << ::testing::PrintToString(places.gpus);
}

inline rank_places virtual_ranks(std::size_t count) {
  return {rank_places::provider::given_addresses, std::vector<int>(count, 0)};
}
inline rank_places ranks_of_process(std::vector<int> gpus) {
  return {rank_places::provider::same_process, std::move(gpus)};
}
inline rank_places ranks_over_nccl(std::vector<int> gpus) {
  return {rank_places::provider::nccl, std::move(gpus)};
}

/// Makes the groups of all ranks over NCCL, once for the process. Newer versions of NCCL let ranks
/// share a GPU if the environment allows it.
class groups_over_nccl {
 public:
  static groups_over_nccl& of(const std::vector<int>& gpus) {
    static std::map<std::vector<int>, groups_over_nccl> all;
    const auto [at, is_new] = all.try_emplace(gpus);
    if (is_new) at->second.make(gpus);
    return at->second;
  }

  /// Empty if the groups were made.
  const std::string& reason() const { return reason_; }

  std::vector<result<peer_memory>> allocate(std::uint64_t bytes) {
    return for_each_rank<peer_memory>(groups_.size(), [&](std::size_t rank) { return groups_[rank].allocate(bytes); });
  }

 private:
  void make(const std::vector<int>& gpus) {
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    const result<peer_id> id = peer_group::new_id();
    if (!id) {
      reason_ = to_string(id.error());
      return;
    }
    const auto ranks = static_cast<std::uint32_t>(gpus.size());
    auto made = for_each_rank<peer_group>(gpus.size(), [&](std::size_t rank) -> result<peer_group> {
      if (cudaSetDevice(gpus[rank]) != cudaSuccess) return failure{error{status::no_device}};
      return peer_group::create({.rank = static_cast<std::uint32_t>(rank), .ranks = ranks, .id = *id});
    });
    for (auto& each : made) {
      if (!each) reason_ = to_string(each.error());
    }
    for (auto& each : made) {
      if (reason_.empty()) groups_.push_back(std::move(*each));
    }
  }

  /// Calls `run` in a thread for each rank: calls of a group wait for the other ranks.
  template <class T, class Run>
  static std::vector<result<T>> for_each_rank(std::size_t ranks, const Run& run) {
    std::vector<std::future<result<T>>> calls;
    for (std::size_t rank = 0; rank < ranks; ++rank) calls.push_back(std::async(std::launch::async, run, rank));
    std::vector<result<T>> made;
    for (auto& each : calls) made.push_back(each.get());
    return made;
  }

  std::vector<peer_group> groups_;
  std::string reason_;
};

/// Makes the ranks of the parameter. Windows have `user_bytes`.
class ranks_on_gpus : public gpu_test, public ::testing::WithParamInterface<rank_places> {
 protected:
  using words = std::vector<std::uint32_t>;

  explicit ranks_on_gpus(std::uint64_t user_bytes) : user_bytes_(user_bytes) {}

  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    int count = 0;
    TMAP_ASSERT_CUDA(cudaGetDeviceCount(&count));
    for (const int gpu : GetParam().gpus) {
      if (gpu >= count) GTEST_SKIP() << "needs " << gpu + 1 << " GPUs";
    }
    make_ranks();
  }
  void TearDown() override {
    ranks_.clear();
    cudaSetDevice(0);
    gpu_test::TearDown();
  }

  /// Ends the ranks and makes new ones, as programs do once a group is broken.
  void rebuild() {
    ranks_.clear();
    memory_.clear();
    make_ranks();
  }

  std::uint32_t count() const { return static_cast<std::uint32_t>(ranks_.size()); }
  const rank_on_gpu& on(std::uint32_t rank) const {
    EXPECT_EQ(cudaSetDevice(ranks_[rank].gpu), cudaSuccess);
    return ranks_[rank];
  }

  template <class T>
  void upload(std::uint32_t rank, std::uint64_t offset, const std::vector<T>& values) const {
    const rank_on_gpu& at = on(rank);
    EXPECT_EQ(cudaMemcpyAsync(reinterpret_cast<void*>(at.window.ref().address(rank, offset)), values.data(),
                              sizeof(T) * values.size(), cudaMemcpyHostToDevice, at.stream->get()),
              cudaSuccess);
  }
  void upload(std::uint32_t rank, std::uint64_t offset, const words& values) const {
    upload<std::uint32_t>(rank, offset, values);
  }
  template <class T = std::uint32_t>
  std::vector<T> download(std::uint32_t rank, std::uint64_t offset, std::uint64_t count) const {
    const rank_on_gpu& at = on(rank);
    std::vector<T> values(count);
    EXPECT_EQ(cudaMemcpyAsync(values.data(), reinterpret_cast<void*>(at.window.ref().address(rank, offset)),
                              sizeof(T) * count, cudaMemcpyDeviceToHost, at.stream->get()),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(at.stream->get()), cudaSuccess);
    return values;
  }

  result<void> outcome(std::uint32_t rank) const {
    const rank_on_gpu& at = on(rank);
    return last_outcome(at.window, at.stream->ref());
  }
  void expect_ok(std::uint32_t rank) const {
    const result<void> ended = outcome(rank);
    EXPECT_TRUE(ended.has_value()) << "rank " << rank << ": " << to_string(ended.error());
  }
  void expect_status(std::uint32_t rank, status code) const {
    const result<void> ended = outcome(rank);
    ASSERT_FALSE(ended.has_value()) << rank;
    EXPECT_EQ(ended.error().code, code) << rank << ": " << to_string(ended.error());
  }
  /// Expects that one rank at least ends by a mismatch, and the others so, or because one did.
  void expect_mismatch() const {
    bool is_named = false;
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      const result<void> ended = outcome(rank);
      ASSERT_FALSE(ended.has_value()) << rank;
      is_named |= ended.error().code == status::peer_mismatch;
      EXPECT_TRUE(ended.error().code == status::peer_mismatch || ended.error().code == status::group_broken);
    }
    EXPECT_TRUE(is_named);
  }

 private:
  void make_ranks() {
    switch (GetParam().by) {
      case rank_places::provider::given_addresses: return make_virtual_ranks();
      case rank_places::provider::same_process: return make_ranks_of_process();
      case rank_places::provider::nccl: return make_ranks_over_nccl();
    }
  }
  void add(int gpu, result<peer_memory> window) {
    TMAP_ASSERT_OK(window);
    TMAP_ASSERT_CUDA(cudaSetDevice(gpu));
    ranks_.push_back({gpu, std::move(*window), std::make_unique<own_stream>()});
  }
  void make_virtual_ranks() {
    std::vector<device_address> windows;
    for (std::size_t i = 0; i < GetParam().gpus.size(); ++i) {
      memory_.push_back(std::make_unique<device_array<unsigned char>>(peer_header_bytes + user_bytes_));
      TMAP_ASSERT_CUDA(cudaMemset(memory_.back()->data(), 0, peer_header_bytes));
      windows.push_back(memory_.back()->address());
    }
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    for (std::uint32_t rank = 0; rank < windows.size(); ++rank) {
      auto group = peer_group::from_addresses(rank, windows, peer_header_bytes + user_bytes_);
      TMAP_ASSERT_OK(group);
      add(0, group->allocate(user_bytes_));
    }
  }
  void make_ranks_of_process() {
    auto groups = peer_group::of_process(GetParam().gpus);
    if (!groups && groups.error().code == status::no_peer_access) GTEST_SKIP() << to_string(groups.error());
    TMAP_ASSERT_OK(groups);
    for (std::size_t rank = 0; rank < groups->size(); ++rank)
      add(GetParam().gpus[rank], (*groups)[rank].allocate(user_bytes_));
  }
  void make_ranks_over_nccl() {
    groups_over_nccl& groups = groups_over_nccl::of(GetParam().gpus);
    if (!groups.reason().empty()) GTEST_SKIP() << groups.reason();
    auto windows = groups.allocate(user_bytes_);
    for (std::size_t rank = 0; rank < windows.size(); ++rank) add(GetParam().gpus[rank], std::move(windows[rank]));
  }

  std::uint64_t user_bytes_;
  std::vector<std::unique_ptr<device_array<unsigned char>>> memory_;
  std::vector<rank_on_gpu> ranks_;
};

}  // namespace tmap::testing
