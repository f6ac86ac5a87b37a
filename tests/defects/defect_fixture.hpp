// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "device/gpu_fixture.hpp"

// A test of a public defect runs twice: as the library means it, and with the defect seeded into
// the test's own kernel. The seeded run must be seen to fail. Where the hardware hides the fault,
// as docs/measurements/device_tests.md says of some, the seeded run is a test of its own that
// counts and asserts nothing of the count: an observation, which has `observed` at the beginning of
// its name.

namespace tmap::testing {

class defect_test : public gpu_test {
 protected:
  /// For the record: a count that the test asserts nothing of, or one that explains its assertions.
  static void note(const std::string& what, std::uint64_t count) {
    RecordProperty(what, std::to_string(count));
    std::printf("             %s: %llu\n", what.c_str(), static_cast<unsigned long long>(count));
  }

  /// `real` and `seeded` are foreign elements.
  static void expect_foreign_only_when_seeded(std::uint64_t real, std::uint64_t seeded) {
    note("foreign", real);
    note("foreign_when_seeded", seeded);
    EXPECT_EQ(real, 0u);
    EXPECT_GT(seeded, 0u) << "this GPU did not show the seeded fault";
  }

  static std::uint32_t multiprocessors() {
    int count = 0;
    EXPECT_EQ(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0), cudaSuccess);
    return static_cast<std::uint32_t>(count);
  }
};

}  // namespace tmap::testing
