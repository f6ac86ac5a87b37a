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

// Fault records of contexts, and the calls that read them, as a test says. The newest `fake_faults`
// is asked.

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

  /// Of the current context.
  fault_record* records() { return contexts[context].data(); }
  /// What a kernel does that meets this item; without a record in that of the context.
  void count(const bad_item& item, fault_record* record = nullptr);

  std::uint64_t context{1};
  std::map<std::uint64_t, std::array<fault_record, record_count>> contexts;
  /// Called before each word of a copy, and around clears.
  std::function<void()> between{[] {}};
  std::array<std::size_t, 8> word_order{0, 1, 2, 3, 4, 5, 6, 7};
  cudaStreamCaptureStatus capture{cudaStreamCaptureStatusNone};
  cudaStreamCaptureMode mode{cudaStreamCaptureModeGlobal};
  int fails_in{};  ///< the call that fails, from now on: 1 the next; 0 none
  int copies{};
  int waits{};
  int lookups{};
  std::set<std::string> strict_calls;  ///< made while the thread was not relaxed

  cudaError_t enter(const char* call, bool must_be_relaxed = true);
  fake_faults* const before;
};

const fault_calls& fake_fault_calls();

}  // namespace tmap::testing
