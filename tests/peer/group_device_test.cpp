// SPDX-License-Identifier: Apache-2.0
// Tests groups on GPUs: windows of one process, and NCCL with a thread for each rank. A test skips
// itself if there are too few GPUs, or no NCCL that fits.
#include <tmap/peer_group.hpp>

#include <algorithm>
#include <barrier>
#include <cstdlib>
#include <thread>

#include "device/gpu_fixture.hpp"
#include "peer/ranks_on_gpus.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t window_size = 1 << 20;

int gpu_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

class group_on_gpus : public gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    setenv("NCCL_NVLS_ENABLE", "0", 1);
  }

  /// Returns why a group over NCCL cannot be made here; empty if it can.
  static std::string missing_nccl() {
    const result<peer_id> id = peer_group::new_id();
    return id ? std::string{} : to_string(id.error());
  }

  /// Copies bytes from any window to the host, by way of the current GPU.
  static std::vector<unsigned char> bytes_at(std::uint64_t address, std::uint64_t bytes) {
    const device_array<unsigned char> local(bytes);
    EXPECT_EQ(cudaMemcpy(local.data(), reinterpret_cast<void*>(address), bytes, cudaMemcpyDeviceToDevice), cudaSuccess);
    return local.download();
  }
  static bool are_all(const std::vector<unsigned char>& bytes, unsigned char value) {
    return std::all_of(bytes.begin(), bytes.end(), [value](unsigned char each) { return each == value; });
  }
};

TEST_F(group_on_gpus, windows_of_one_process_are_reached_from_every_gpu) {
  if (gpu_count() < 2) GTEST_SKIP() << "needs two GPUs";
  auto groups = peer_group::of_process({0, 1});
  if (!groups && groups.error().code == status::no_peer_access) GTEST_SKIP() << to_string(groups.error());
  TMAP_ASSERT_OK(groups);
  std::vector<peer_memory> windows;
  for (peer_group& each : *groups) {
    result<peer_memory> opened = each.allocate(window_size);
    TMAP_ASSERT_OK(opened);
    windows.push_back(std::move(*opened));
  }
  for (std::uint32_t from = 0; from < 2; ++from) {
    TMAP_ASSERT_CUDA(cudaSetDevice(static_cast<int>(from)));
    const peer_memory_ref& ref = windows[from].ref();
    for (std::uint32_t owner = 0; owner < 2; ++owner) {
      const auto value = static_cast<unsigned char>(16 + 2 * from + owner);
      EXPECT_TRUE(are_all(bytes_at(ref.windows[owner], peer_header_bytes), 0));
      TMAP_ASSERT_CUDA(cudaMemset(reinterpret_cast<void*>(ref.address(owner)), value, window_size));
      EXPECT_TRUE(are_all(bytes_at(ref.address(owner), window_size), value));
    }
  }
  TMAP_ASSERT_CUDA(cudaSetDevice(0));
}

TEST_F(group_on_gpus, a_group_of_one_has_a_window_over_nccl) {
  if (const std::string missing = missing_nccl(); !missing.empty()) GTEST_SKIP() << missing;
  const result<peer_id> id = peer_group::new_id();
  result<peer_group> group = peer_group::create({.rank = 0, .ranks = 1, .id = *id});
  TMAP_ASSERT_OK(group);
  const result<peer_memory> memory = group->allocate(window_size);
  TMAP_ASSERT_OK(memory);
  EXPECT_TRUE(are_all(bytes_at(memory->ref().windows[0], peer_header_bytes), 0));
  TMAP_ASSERT_CUDA(cudaMemset(memory->data(), 7, window_size));
  EXPECT_TRUE(are_all(bytes_at(memory->ref().address(0), window_size), 7));
  EXPECT_TRUE(group->check().has_value());
}

/// Lets each rank fill its window and read all others. The windows outlive every read.
void fill_and_read(std::uint32_t rank, std::uint32_t ranks, const peer_id& id, std::barrier<>& together) {
  EXPECT_EQ(cudaSetDevice(static_cast<int>(rank) % gpu_count()), cudaSuccess);
  result<peer_group> group = peer_group::create({.rank = rank, .ranks = ranks, .id = id});
  EXPECT_TRUE(group.has_value()) << to_string(group.error());
  const result<peer_memory> wrong = group ? group->allocate(window_size + rank) : failure{error{}};
  if (group && ranks > 1) {
    EXPECT_EQ(wrong.error().code, status::windows_differ) << to_string(wrong.error());
  }
  const result<peer_memory> memory = group ? group->allocate(window_size) : failure{error{}};
  EXPECT_TRUE(memory.has_value()) << to_string(memory.error());
  if (memory) {
    EXPECT_EQ(cudaMemset(memory->data(), static_cast<int>(rank) + 1, window_size), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  together.arrive_and_wait();
  const device_array<unsigned char> local(window_size);
  for (std::uint32_t owner = 0; memory && owner < ranks; ++owner) {
    const auto* const from = reinterpret_cast<const void*>(memory->ref().address(owner));
    EXPECT_EQ(cudaMemcpy(local.data(), from, window_size, cudaMemcpyDeviceToDevice), cudaSuccess);
    const std::vector<unsigned char> bytes = local.download();
    EXPECT_EQ(static_cast<std::uint64_t>(std::count(bytes.begin(), bytes.end(), owner + 1)), window_size);
  }
  together.arrive_and_wait();
}

TEST_F(group_on_gpus, each_rank_reads_the_windows_of_all_ranks_over_nccl) {
  if (const std::string missing = missing_nccl(); !missing.empty()) GTEST_SKIP() << missing;
  if (const std::string& refusal = groups_over_nccl::of({0, 0}).reason(); gpu_count() < 2 && !refusal.empty()) {
    GTEST_SKIP() << "ranks cannot share a GPU: " << refusal;
  }
  const auto ranks = static_cast<std::uint32_t>(std::clamp(gpu_count(), 2, 8));
  const peer_id id = peer_group::new_id().value();
  std::barrier together{static_cast<std::ptrdiff_t>(ranks)};
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { fill_and_read(rank, ranks, id, together); });
  }
  for (std::thread& each : threads) each.join();
}

TEST_F(group_on_gpus, a_rank_that_is_alone_gives_up_at_the_deadline) {
  if (const std::string missing = missing_nccl(); !missing.empty()) GTEST_SKIP() << missing;
  const peer_id id = peer_group::new_id().value();
  const result<peer_group> group =
      peer_group::create({.rank = 0, .ranks = 2, .id = id, .patience = std::chrono::milliseconds{1500}});
  ASSERT_FALSE(group.has_value());
  EXPECT_EQ(group.error().code, status::peer_timeout) << to_string(group.error());
}

}  // namespace
}  // namespace tmap::testing
