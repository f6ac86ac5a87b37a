// SPDX-License-Identifier: Apache-2.0
// Tests the parts of the real table that need no GPU.
#include <gtest/gtest.h>

#include <cstdlib>

#include "lib/peer/nccl.hpp"
#include "lib/peer/peer_calls.hpp"

namespace tmap::testing {
namespace {

TEST(real_peer_calls, the_clock_goes_on_and_a_nap_ends) {
  const peer::peer_calls& calls = peer::real_peer_calls();
  const std::uint64_t begin = calls.milliseconds();
  while (calls.milliseconds() - begin < 3) calls.nap();
  EXPECT_LT(calls.milliseconds() - begin, 60'000u);
}

TEST(real_peer_calls, the_environment_is_that_of_the_process) {
  ASSERT_EQ(setenv("TMAP_OF_A_TEST", "7", 1), 0);
  EXPECT_STREQ(peer::real_peer_calls().environment("TMAP_OF_A_TEST"), "7");
  ASSERT_EQ(unsetenv("TMAP_OF_A_TEST"), 0);
  EXPECT_EQ(peer::real_peer_calls().environment("TMAP_OF_A_TEST"), nullptr);
}

/// NCCL has the names of all functions, or is not there, or is another than tmap was built with.
TEST(real_peer_calls, nccl_is_found_or_the_reason_why_not) {
  ASSERT_EQ(setenv("NCCL_NVLS_ENABLE", "0", 1), 0);
  const result<peer::nccl_functions> nccl = peer::find_nccl(peer::real_peer_calls());
  ASSERT_EQ(unsetenv("NCCL_NVLS_ENABLE"), 0);
  if (!nccl) {
    const error& e = nccl.error();
    const bool is_another =
        e.found < e.allowed && e.found != static_cast<std::uint64_t>(peer::real_peer_calls().ask_window_version());
    EXPECT_TRUE(e.code == status::nccl_missing || (e.code == status::nccl_version && is_another)) << to_string(e);
    return;
  }
  EXPECT_GE(nccl->version, 22703);
  EXPECT_TRUE(nccl->open_window != nullptr && nccl->all_gather != nullptr);
}

}  // namespace
}  // namespace tmap::testing
