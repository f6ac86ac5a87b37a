// SPDX-License-Identifier: Apache-2.0
// Tests groups of the C interface on a GPU: rows and tokens that come to their ranks, and results
// that come home from experts.
#include "interop/c_device_peers.hpp"

namespace tmap::testing {
namespace {

TEST_F(c_device_peers, rows_come_to_their_ranks) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank) write(rank);
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    ASSERT_EQ(tmap_peer_self_test(windows_[rank], 0, streams_[rank]), TMAP_OK);
  }
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const tmap_exchange_problem all = problem(rank);
    ASSERT_EQ(tmap_peer_exchange_rows(windows_[rank], &all, streams_[rank]), TMAP_OK);
  }
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    ASSERT_EQ(tmap_peer_await_pulls(windows_[rank], 0, streams_[rank]), TMAP_OK);
    ASSERT_EQ(tmap_peer_barrier(windows_[rank], 0, streams_[rank]), TMAP_OK);
  }
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(tmap_peer_last_outcome(windows_[rank], streams_[rank]), TMAP_OK);
    expect_rows(rank);
  }
}

TEST_F(c_device_peers, an_aborted_group_is_broken) {
  ASSERT_EQ(tmap_peer_abort(windows_[0]), TMAP_OK);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    ASSERT_EQ(tmap_peer_barrier(windows_[rank], 0, streams_[rank]), TMAP_OK);
    EXPECT_EQ(tmap_peer_last_outcome(windows_[rank], streams_[rank]), TMAP_GROUP_BROKEN);
  }
}

TEST_F(c_device_experts, tokens_come_to_their_experts_and_sums_come_home) {
  run_layer();
}

TEST_F(c_device_experts, results_come_home_one_by_one) {
  returned_ = TMAP_RETURN_ROWS;
  run_layer();
}

}  // namespace
}  // namespace tmap::testing
