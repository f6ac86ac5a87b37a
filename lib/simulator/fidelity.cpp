// SPDX-License-Identifier: Apache-2.0
#include <tmap/simulator.hpp>

// The counts are recorded: tests/conformance writes the file on a GPU, and a host test compares it
// with the golden record. A feature with no case on hardware is documented only.

namespace tmap::simulator {
namespace {

constexpr feature_fidelity row(const char* feature, std::uint64_t cases) {
  return {feature, cases == 0 ? fidelity::documented_only : fidelity::verified_on_hardware, cases};
}

constexpr feature_fidelity table[] = {
#define TMAP_FEATURE(name, cases) row(name, cases),
#include "lib/simulator/fidelity_counts.inc"
#undef TMAP_FEATURE
};

}  // namespace

cuda::std::span<const feature_fidelity> fidelity_table() {
  return table;
}

}  // namespace tmap::simulator
