// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/device/report_bad.cuh>

#include <cstdint>

namespace tmap::kernels {

/// A `batch_header` that a block counts up in shared memory. It has no initial values, as shared
/// memory takes none. `add_to_header` adds to it.
struct block_header {
  std::uint32_t bad_count;
  std::uint32_t first_bad;
  std::uint32_t empty_count;

  __device__ void reset() {
    const batch_header none;
    bad_count = none.bad_count;
    first_bad = none.first_bad;
    empty_count = none.empty_count;
  }
  __device__ batch_header value() const { return {bad_count, first_bad, empty_count, 0}; }
};

}  // namespace tmap::kernels
