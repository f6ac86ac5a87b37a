// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/tile_engine.hpp"

#include <gtest/gtest.h>

// What every engine must do, written once. An engine's test file is one line:
//   INSTANTIATE_TEST_SUITE_P(simulator, tile_contract, ::testing::Values(&make_simulator_engine));

namespace tmap::conformance {

class tile_contract : public ::testing::TestWithParam<engine_factory> {
 protected:
  void SetUp() override {
    engine_ = GetParam()();
    if (const std::string why = engine_->unavailable(); !why.empty()) GTEST_SKIP() << "skipped: " << why;
  }

  tile_engine& engine() { return *engine_; }

 private:
  std::unique_ptr<tile_engine> engine_;
};

/// Empty when both left the same bytes, else the first that differ.
std::string difference(const outcome& expected, const outcome& found);

}  // namespace tmap::conformance
