// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/tile_engine.hpp"

#include <gtest/gtest.h>

// Tests the contract of every engine. An engine's test file is one line:
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

/// Compares the bytes of both results. Returns an empty text if they are equal, else the first
/// difference.
std::string difference(const outcome& expected, const outcome& found);

}  // namespace tmap::conformance
