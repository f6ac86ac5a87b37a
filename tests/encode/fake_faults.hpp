// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/bad_items.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "lib/encode/fault_book.hpp"

// Fakes the fault records of contexts and the calls that read them. Calls go to the newest
// `fake_faults`.

namespace tmap {

inline bool operator==(const bad_item& a, const bad_item& b) {
  return a.call == b.call && a.number == b.number && a.index == b.index && a.bits == b.bits;
}

}  // namespace tmap

namespace tmap::testing {

struct fake_faults {
  static constexpr std::size_t record_count = 65;

  fake_faults();
  ~fake_faults();
  fake_faults(const fake_faults&) = delete;
  fake_faults& operator=(const fake_faults&) = delete;

  /// Returns the records of the current context.
  fault_record* records() { return contexts[context].data(); }
  /// Does what a kernel does that finds this item. Counts in the context's record if `record` is
  /// null.
  void count(const bad_item& item, fault_record* record = nullptr);

  std::uint64_t context{1};
  std::map<std::uint64_t, std::array<fault_record, record_count>> contexts;
  /// Runs before each word of a copy, and around clears.
  std::function<void()> between{[] {}};
  std::array<std::size_t, 8> word_order{0, 1, 2, 3, 4, 5, 6, 7};
  cudaStreamCaptureStatus capture{cudaStreamCaptureStatusNone};
  cudaStreamCaptureMode mode{cudaStreamCaptureModeGlobal};
  int fails_in{};  ///< the call that fails, counted from now on: 1 is the next, 0 none
  int copies{};
  int waits{};
  int lookups{};
  std::set<std::string> strict_calls;  ///< calls that were made while the thread was not relaxed

  cudaError_t enter(const char* call, bool must_be_relaxed = true);
  fake_faults* const before;
};

const fault_calls& fake_fault_calls();

}  // namespace tmap::testing
