// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <tmap/encode.hpp>

#include "device/gpu_fixture.hpp"
#include "kernels/gemm_launch.hpp"
#include "lib/gemm/checks.hpp"

namespace tmap::gemm::testing {

/// Skips tests without a Hopper GPU, and waits for all work after a test.
class gemm_test : public tmap::testing::gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    const auto limits = query_device_limits();
    if (!limits || !check_gpu(*limits, kernels::has_gemm_kernels())) GTEST_SKIP() << "no GPU with products";
  }
};

}  // namespace tmap::gemm::testing
