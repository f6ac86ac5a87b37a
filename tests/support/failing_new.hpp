// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Host memory that runs out when a test says. A program with failing_new.cpp has `operator new`
// replaced.

namespace tmap::testing {

/// From now on this thread's n-th allocation (1 is the next, 0 is none), and with `all_after` each
/// one after it, throws `std::bad_alloc`.
void fail_allocation(std::uint64_t n, bool all_after = false);

/// Allocations of this thread since `fail_allocation`.
std::uint64_t allocations_made();

/// While one lives, this thread's allocations are neither counted nor fail: for what stands for
/// CUDA, which has memory of its own, and for what a test does beside the calls it tests.
class uncounted_allocations {
 public:
  uncounted_allocations();
  ~uncounted_allocations();
  uncounted_allocations(const uncounted_allocations&) = delete;
  uncounted_allocations& operator=(const uncounted_allocations&) = delete;
};

}  // namespace tmap::testing
