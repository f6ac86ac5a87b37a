// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Host memory that runs out when a test wants. failing_new.cpp replaces `operator new` of a
// program.

namespace tmap::testing {

/// From now on, this thread's n-th allocation (1 is the next, 0 is none) throws `std::bad_alloc`.
/// With `all_after`, each later one does, too.
void fail_allocation(std::uint64_t n, bool all_after = false);

/// Returns the number of allocations in this thread since `fail_allocation`.
std::uint64_t allocations_made();

/// While one exists, this thread's allocations are not counted and do not fail. It is for code that
/// stands for CUDA, which has its own memory, and for a test's own work.
class uncounted_allocations {
 public:
  uncounted_allocations();
  ~uncounted_allocations();
  uncounted_allocations(const uncounted_allocations&) = delete;
  uncounted_allocations& operator=(const uncounted_allocations&) = delete;
};

}  // namespace tmap::testing
