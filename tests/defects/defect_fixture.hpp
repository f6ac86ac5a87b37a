// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "device/gpu_fixture.hpp"

// A test of a public defect runs twice: as the library intends, and with the defect seeded into the
// test's own kernel. The seeded run must visibly fail. Some hardware hides the fault
// (docs/measurements/device_tests.md lists the cases). The seeded run is then a separate test that
// records the count without asserting it, and its name begins with `observed`.

namespace tmap::testing {

class defect_test : public gpu_test {
 protected:
  /// Records a count that the test does not assert, or one that explains its assertions.
  static void note(const std::string& what, std::uint64_t count) {
    RecordProperty(what, std::to_string(count));
    std::printf("             %s: %llu\n", what.c_str(), static_cast<unsigned long long>(count));
  }

  /// Both `real` and `seeded` count foreign elements.
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
