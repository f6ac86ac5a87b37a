// SPDX-License-Identifier: Apache-2.0
// Runs exchanges with windows that peers do not reach through the real NCCL. Every byte is compared
// with exchanges that pull.
#include <barrier>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "peer/compared_exchange.hpp"

namespace tmap::testing {
namespace {

/// Runs a thread for each rank. The parameter has the GPU of each.
class exchange_over_nccl : public gpu_test, public ::testing::WithParamInterface<std::vector<int>> {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    int count = 0;
    TMAP_ASSERT_CUDA(cudaGetDeviceCount(&count));
    for (const int gpu : GetParam()) {
      if (gpu >= count) GTEST_SKIP() << "needs " << gpu + 1 << " GPUs";
    }
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  }
};

/// Holds what the calls of one rank gave, or why there were none.
struct calls_of_rank {
  std::vector<exchanged> calls;
  std::string missing;
};

constexpr std::uint32_t replays = 3;

/// Runs all cases, and replays a graph of the last one. Ranks may share a GPU, so nothing allocates
/// while another rank may wait in a kernel.
void run_over_nccl(int gpu, const peer_start& start, const std::vector<parcel_case>& cases, std::barrier<>& together,
                   calls_of_rank& found) {
  EXPECT_EQ(cudaSetDevice(gpu), cudaSuccess);
  result<peer_group> group = peer_group::create(start);
  result<peer_memory> window = group ? group->allocate_local(user_size, pair_size) : failure{group.error()};
  if (!window) {
    found.missing = to_string(window.error());
    together.arrive_and_drop();
    return;
  }
  const rank_with_stream rank{std::move(*window)};
  std::uint32_t call = 0;
  for (const parcel_case& each : cases) {
    rank.write(each, ++call);
    rank.enqueue(each);
    found.calls.push_back(rank.read());
    const result<void> met = barrier_async(rank.window, rank.stream->ref());
    EXPECT_TRUE(met.has_value()) << to_string(met.error());
  }
  EXPECT_EQ(cudaStreamSynchronize(rank.stream->get()), cudaSuccess);
  together.arrive_and_wait();
  const cudaGraphExec_t graph = rank.captured(cases.back());
  together.arrive_and_wait();
  for (std::uint32_t i = 0; i < replays; ++i) {
    rank.write(cases.back(), ++call);
    EXPECT_EQ(cudaGraphLaunch(graph, rank.stream->get()), cudaSuccess);
    found.calls.push_back(rank.read());
  }
  together.arrive_and_wait();
  EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
}

/// Makes the same calls on one GPU with windows that all ranks reach. It also loads all kernels:
/// CUDA may wait for the GPU when it loads one.
std::vector<std::vector<exchanged>> pulled(std::uint32_t count, const std::vector<parcel_case>& cases) {
  const reachable_ranks on(count);
  std::vector<std::vector<exchanged>> all;
  for (std::uint32_t i = 0; i < cases.size() + replays; ++i) {
    all.push_back(exchange(on.ranks, i < cases.size() ? cases[i] : cases.back(), i + 1));
    EXPECT_EQ(all.back()[0].outcome, "success");
  }
  return all;
}

TEST_P(exchange_over_nccl, every_byte_is_that_of_an_exchange_that_pulls) {
  const result<peer_id> id = peer_group::new_id();
  if (!id) GTEST_SKIP() << to_string(id.error());
  const auto count = static_cast<std::uint32_t>(GetParam().size());
  const std::vector<parcel_case> cases = cases_for(count);
  const std::vector<std::vector<exchanged>> expected = pulled(count, cases);
  std::vector<calls_of_rank> found(count);
  std::barrier together{static_cast<std::ptrdiff_t>(count)};
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      run_over_nccl(GetParam()[rank], {.rank = rank, .ranks = count, .id = *id}, cases, together, found[rank]);
    });
  }
  for (std::thread& each : threads) each.join();
  if (!found[0].missing.empty()) GTEST_SKIP() << found[0].missing;
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    ASSERT_EQ(found[rank].calls.size(), expected.size()) << found[rank].missing;
    for (std::uint32_t call = 0; call < expected.size(); ++call) {
      expect_same(found[rank].calls[call], expected[call][rank],
                  "rank " + std::to_string(rank) + ", call " + std::to_string(call));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(one_rank, exchange_over_nccl, ::testing::Values(std::vector<int>{0}));
INSTANTIATE_TEST_SUITE_P(two_gpus, exchange_over_nccl, ::testing::Values(std::vector<int>{0, 1}));
INSTANTIATE_TEST_SUITE_P(two_ranks_of_one_gpu, exchange_over_nccl, ::testing::Values(std::vector<int>{0, 0}));

}  // namespace
}  // namespace tmap::testing
