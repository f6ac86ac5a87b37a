// SPDX-License-Identifier: Apache-2.0
// Runs the self-test of a window in graphs, and with faults that it must see: a rank with a wrong
// address of another one, and maps that end elsewhere than they should.
#include <tmap/make_template.hpp>
#include <tmap/peer_exchange.hpp>

#include "kernels/peer/map_test_area.hpp"
#include "peer/map_test_kernel.hpp"
#include "peer/ranks_on_gpus.hpp"

namespace tmap::testing {
namespace {

class self_tests_on_gpus : public ranks_on_gpus {
 protected:
  self_tests_on_gpus() : ranks_on_gpus(1 << 20) {}

  void SetUp() override {
    ranks_on_gpus::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      static_cast<void>(on(rank));
      TMAP_ASSERT_CUDA(load_map_test());
    }
  }

  tensor_spec spec() const { return kernels::peer::map_test_spec(count()); }

  /// Runs the test of maps with what may be wrong on rank 0.
  void test_maps(const peer_memory_ref& mapped, const tensor_spec& shape) const {
    static_cast<void>(on(0));
    const auto sound = make_template(spec(), patch_address), given = make_template(shape, patch_address);
    TMAP_ASSERT_OK(sound);
    TMAP_ASSERT_OK(given);
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      const rank_on_gpu& at = on(rank);
      const peer_memory_ref& own = at.window.ref();
      constexpr std::chrono::nanoseconds deadline = patience;
      launch_map_test(own, rank == 0 ? mapped : own, rank == 0 ? *given : *sound, deadline.count(), at.stream->get());
      TMAP_ASSERT_CUDA(cudaGetLastError());
    }
  }
  const peer_memory_ref& first() const { return on(0).window.ref(); }

  void expect_wrong(std::uint32_t rank, std::uint32_t named) const {
    const result<void> ended = outcome(rank);
    ASSERT_FALSE(ended.has_value()) << rank;
    EXPECT_EQ(ended.error().code, status::self_test_failed) << rank << ": " << to_string(ended.error());
    EXPECT_EQ(ended.error().found, named) << rank;
  }
};

TEST_P(self_tests_on_gpus, a_captured_self_test_passes_in_each_replay) {
  std::vector<cudaGraphExec_t> graphs(count());
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    const rank_on_gpu& at = on(rank);
    cudaGraph_t graph{};
    TMAP_ASSERT_CUDA(cudaStreamBeginCapture(at.stream->get(), cudaStreamCaptureModeGlobal));
    TMAP_ASSERT_OK(self_test_async(at.window, at.stream->ref(), patience));
    TMAP_ASSERT_CUDA(cudaStreamEndCapture(at.stream->get(), &graph));
    TMAP_ASSERT_CUDA(cudaGraphInstantiate(&graphs[rank], graph, 0));
    TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  }
  for (int i = 0; i < 20; ++i) {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      TMAP_ASSERT_CUDA(cudaGraphLaunch(graphs[rank], on(rank).stream->get()));
    }
    for (std::uint32_t rank = 0; rank < count(); ++rank) expect_ok(rank);
  }
  for (const cudaGraphExec_t graph : graphs) EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
}

TEST_P(self_tests_on_gpus, it_leaves_the_bytes_of_the_user) {
  const words before(1 << 18, 0x5a5a5a5a);
  for (std::uint32_t rank = 0; rank < count(); ++rank) upload(rank, 0, before);
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    const rank_on_gpu& at = on(rank);
    TMAP_ASSERT_OK(self_test_async(at.window, at.stream->ref(), patience));
  }
  for (std::uint32_t rank = 0; rank < count(); ++rank) expect_ok(rank);
  for (std::uint32_t rank = 0; rank < count(); ++rank) EXPECT_EQ(download(rank, 0, before.size()), before);
}

TEST_P(self_tests_on_gpus, sound_maps_pass) {
  for (int i = 0; i < 3; ++i) {
    test_maps(first(), spec());
    for (std::uint32_t rank = 0; rank < count(); ++rank) expect_ok(rank);
  }
}

/// Rank 0 takes its own window for that of rank 1.
TEST_P(self_tests_on_gpus, a_wrong_address_in_a_map_is_seen) {
  peer_memory_ref wrong = first();
  wrong.windows[1] = wrong.windows[0];
  test_maps(wrong, spec());
  for (std::uint32_t rank = 0; rank < count(); ++rank) expect_wrong(rank, 0);
}

TEST_P(self_tests_on_gpus, stores_after_the_end_of_rows_are_seen) {
  tensor_spec wide = spec();
  wide.global_dim[0] = kernels::peer::test_tile_columns;
  test_maps(first(), wide);
  for (std::uint32_t rank = 0; rank < count(); ++rank) expect_wrong(rank, 0);
}

/// Each rank finds it in its own memory first.
TEST_P(self_tests_on_gpus, additions_after_the_last_row_are_seen) {
  tensor_spec high = spec();
  ++high.global_dim[1];
  test_maps(first(), high);
  for (std::uint32_t rank = 0; rank < count(); ++rank) expect_wrong(rank, rank);
}

INSTANTIATE_TEST_SUITE_P(two_virtual_ranks, self_tests_on_gpus, ::testing::Values(virtual_ranks(2)));
INSTANTIATE_TEST_SUITE_P(four_virtual_ranks, self_tests_on_gpus, ::testing::Values(virtual_ranks(4)));
INSTANTIATE_TEST_SUITE_P(two_gpus, self_tests_on_gpus, ::testing::Values(ranks_of_process({0, 1})));
INSTANTIATE_TEST_SUITE_P(two_ranks_over_nccl, self_tests_on_gpus, ::testing::Values(ranks_over_nccl({0, 0})));
INSTANTIATE_TEST_SUITE_P(two_gpus_over_nccl, self_tests_on_gpus, ::testing::Values(ranks_over_nccl({0, 1})));

using self_test_of_addresses = gpu_test;

/// Neither rank learns from rank 0 that it has come. So both end, by the deadline or by word of the
/// other.
TEST_F(self_test_of_addresses, a_wrong_buffer_in_a_list_ends_both_ranks_by_their_deadline) {
  constexpr std::uint64_t bytes = peer_header_bytes + 4096;
  device_array<unsigned char> first(bytes), second(bytes), wrong(bytes);
  for (auto* each : {&first, &second, &wrong}) TMAP_ASSERT_CUDA(cudaMemset(each->data(), 0, bytes));
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  const std::vector<device_address> lists[]{{first.address(), wrong.address()}, {first.address(), second.address()}};
  std::vector<peer_memory> windows;
  const own_stream streams[2];
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    auto group = peer_group::from_addresses(rank, lists[rank], bytes);
    TMAP_ASSERT_OK(group);
    auto window = group->allocate(4096);
    TMAP_ASSERT_OK(window);
    windows.push_back(std::move(*window));
  }
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    TMAP_ASSERT_OK(self_test_async(windows[rank], streams[rank].ref(), milliseconds{50}));
  }
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const result<void> ended = last_outcome(windows[rank], streams[rank].ref());
    ASSERT_FALSE(ended.has_value()) << rank;
    const status code = ended.error().code;
    EXPECT_TRUE(code == status::peer_timeout || code == status::group_broken) << to_string(ended.error());
  }
}

}  // namespace
}  // namespace tmap::testing
