// SPDX-License-Identifier: Apache-2.0
// The demo on a GPU: the same tiles as in the simulator, byte for byte, and the same verdicts.

#include <gtest/gtest.h>

#include "apps/demo/check.hpp"
#include "device/gpu_fixture.hpp"

namespace tmap::demo {
namespace {

class demo_on_gpu : public testing::gpu_test {};

TEST_F(demo_on_gpu, gives_the_tiles_and_verdicts_of_the_simulator) {
  const demo_batch batch = make_batch();
  const auto simulated = run_in_simulator(batch);
  ASSERT_TRUE(simulated) << simulated.error();
  const auto run = run_on_gpu(batch);
  ASSERT_TRUE(run) << run.error();
  EXPECT_EQ(checksum_of(run->tiles), checksum_of(simulated->tiles));
  EXPECT_EQ(check_tiles(batch, *run).wrong, 0u);
  for (std::size_t i = 0; i < batch.tensors.size(); ++i) {
    EXPECT_EQ(run->verdicts[i].broken, simulated->verdicts[i].broken) << batch.tensors[i].name;
    EXPECT_EQ(run->verdicts[i].is_empty, simulated->verdicts[i].is_empty) << batch.tensors[i].name;
    EXPECT_EQ(run->verdicts[i].map.has_value(), simulated->verdicts[i].map.has_value()) << batch.tensors[i].name;
  }
  ASSERT_TRUE(run->seconds.ceiling);
  EXPECT_GT(*run->seconds.ceiling, 0);
}

}  // namespace
}  // namespace tmap::demo
