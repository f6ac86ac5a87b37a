// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/peer_exchange.hpp>
#include <tmap/peer_group.hpp>

#include <memory>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "device/own_stream.hpp"

// Ranks for tests of kernels. Virtual ranks are windows on one GPU, each with a stream of its own.
// They prove what the kernels compute, and nothing about order between GPUs.

namespace tmap::testing {

using std::chrono::milliseconds;

inline constexpr milliseconds patience{2000};

/// One rank: its window, and a stream on its GPU.
struct rank_on_gpu {
  int gpu;
  peer_memory window;
  std::unique_ptr<own_stream> stream;
};

/// Makes ranks, each on a GPU of the parameter. Windows have `user_bytes`.
class ranks_on_gpus : public gpu_test, public ::testing::WithParamInterface<std::vector<int>> {
 protected:
  using words = std::vector<std::uint32_t>;

  explicit ranks_on_gpus(std::uint64_t user_bytes) : user_bytes_(user_bytes) {}

  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    int count = 0;
    TMAP_ASSERT_CUDA(cudaGetDeviceCount(&count));
    for (const int gpu : GetParam()) {
      if (gpu >= count) GTEST_SKIP() << "needs " << gpu + 1 << " GPUs";
    }
    if (GetParam().back() == 0) {
      make_virtual_ranks();
    } else {
      make_ranks();
    }
  }
  void TearDown() override {
    ranks_.clear();
    cudaSetDevice(0);
    gpu_test::TearDown();
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

 private:
  void add(int gpu, result<peer_memory> window) {
    TMAP_ASSERT_OK(window);
    TMAP_ASSERT_CUDA(cudaSetDevice(gpu));
    ranks_.push_back({gpu, std::move(*window), std::make_unique<own_stream>()});
  }
  void make_virtual_ranks() {
    std::vector<device_address> windows;
    for (std::size_t i = 0; i < GetParam().size(); ++i) {
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
  void make_ranks() {
    auto groups = peer_group::of_process(GetParam());
    if (!groups && groups.error().code == status::no_peer_access) GTEST_SKIP() << to_string(groups.error());
    TMAP_ASSERT_OK(groups);
    for (std::size_t rank = 0; rank < groups->size(); ++rank)
      add(GetParam()[rank], (*groups)[rank].allocate(user_bytes_));
  }

  std::uint64_t user_bytes_;
  std::vector<std::unique_ptr<device_array<unsigned char>>> memory_;
  std::vector<rank_on_gpu> ranks_;
};

}  // namespace tmap::testing
