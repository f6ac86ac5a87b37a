// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/encode.hpp>

#include "kernels/gemm_launch.hpp"
#include "lib/gemm/checks.hpp"
#include "peer/ranks_on_gpus.hpp"

namespace tmap::testing {

/// Skips a test whose GPUs have no kernels of products.
class ranks_with_products : public ranks_on_gpus {
 protected:
  using ranks_on_gpus::ranks_on_gpus;

  void SetUp() override {
    ranks_on_gpus::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    static_cast<void>(on(0));
    const auto limits = query_device_limits();
    if (!limits || !gemm::check_gpu(*limits, kernels::has_gemm_kernels())) GTEST_SKIP() << "no GPU with products";
  }
};

}  // namespace tmap::testing
