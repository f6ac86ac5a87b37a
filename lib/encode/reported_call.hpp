// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reporting for every call that judges a batch on the device. The call gets a number, its kernels
// get a record in which to count bad items, and a checked call waits and reads that record.

#include <tmap/bad_items.hpp>
#include <tmap/error.hpp>

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "lib/encode/device.hpp"
#include "lib/encode/fault_book.hpp"

namespace tmap {

struct reported_call {
  batch_call which;
  std::uint64_t items;  ///< of its batch
  fault_check check;
  cudaStream_t stream;
};

/// The records for single calls that are in use in any context. A checked call has one until it
/// ends. Thread-safe.
class call_records {
 public:
  /// Waits while all are in use.
  std::uint32_t take();
  void give_back(std::uint32_t record);

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  std::uint64_t used_{};  // a bit each
};

/// The record in which the kernels of one call report.
class call_report {
 public:
  /// Fails if there is no record, or as a CUDA call.
  [[nodiscard]] static result<void> open(const reported_call& call, fault_book& book, call_records& records,
                                         call_report& report);
  call_report() = default;
  call_report(const call_report&) = delete;
  call_report& operator=(const call_report&) = delete;
  /// Waits for the work of a checked call that was not closed.
  ~call_report();

  const fault_sink& sink() const { return sink_; }
  /// Ends the call after all its work is enqueued; waits only if the call is checked. Fails with
  /// `bad_items`, or as a CUDA call.
  [[nodiscard]] result<void> close();

 private:
  [[nodiscard]] result<void> take_record();
  void give_back();

  reported_call call_{};
  const fault_calls* calls_{};
  fault_page* page_{};
  call_records* records_{};  // null: the call has no record of its own
  std::uint32_t record_{};
  fault_sink sink_{};
};

call_records& process_call_records();

/// `enqueue(sink)` enqueues all of a call's work.
template <class Enqueue>
[[nodiscard]] result<void> report_call(const reported_call& call, const Enqueue& enqueue) {
  if (const result<void> has_kernels = require_kernels(); !has_kernels) return has_kernels;
  call_report report;
  if (const result<void> opened = call_report::open(call, process_faults(), process_call_records(), report); !opened) {
    return opened;
  }
  if (const result<void> enqueued = enqueue(report.sink()); !enqueued) return enqueued;
  return report.close();
}

}  // namespace tmap
