// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "device/gpu_fixture.hpp"

namespace tmap::gemm::testing {

/// Skips what only a Hopper GPU runs, and leaves no work behind.
class gemm_test : public tmap::testing::gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    int major = 0;
    if (!IsSkipped() &&
        (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) != cudaSuccess || major != 9)) {
      GTEST_SKIP() << "no Hopper GPU";
    }
  }
};

}  // namespace tmap::gemm::testing
