// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/grouped_gemm.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace tmap::testing {

inline void expect_matrix(const gemm::matrix& made, std::uint64_t address, std::uint64_t pitch_bytes) {
  EXPECT_EQ(made.address, address);
  EXPECT_EQ(made.pitch_bytes, pitch_bytes);
}

}  // namespace tmap::testing
