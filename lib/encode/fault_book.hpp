// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps the host's side of the fault records of each context (bad_items.hpp): their address, the
// counts at the last reset, and the counts of checked calls.

#include <tmap/bad_items.hpp>
#include <tmap/error.hpp>
#include <tmap/faults.hpp>

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace tmap {

/// The CUDA calls that fault records need, as pointers, so that tests can simulate kernels that
/// count at the same time.
struct fault_calls {
  cudaError_t (*current_context)(std::uint64_t* id);             ///< 0 when the calling thread has none
  cudaError_t (*find_records)(fault_record** records);           ///< as `kernels::find_fault_records`
  cudaError_t (*allocate_host)(void** data, std::size_t bytes);  ///< pinned
  cudaError_t (*open_stream)(cudaStream_t* stream);              ///< one that does not wait for the legacy stream
  cudaError_t (*copy)(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
  cudaError_t (*clear)(void* data, std::size_t bytes, cudaStream_t stream);
  cudaError_t (*wait)(cudaStream_t stream);
  cudaError_t (*exchange_capture_mode)(cudaStreamCaptureMode* mode);
  cudaError_t (*capture_status)(cudaStream_t stream, cudaStreamCaptureStatus* status);
};
const fault_calls& real_fault_calls();

/// Returns the bad item that a record names; `batch_call::none` where it names none.
bad_item item_of(const fault_record& record);

/// The records of one context, and the counts read from them. Never freed: its stream and memory
/// end with the context.
class fault_page {
 public:
  fault_page(const fault_calls& calls, std::uint64_t context, fault_record* records)
      : calls_{calls}, context_{context}, records_{records} {}

  std::uint64_t context() const { return context_; }
  fault_record* records() const { return records_; }

  /// Reports as `faults` and `reset_faults` do. All functions are thread-safe.
  [[nodiscard]] result<fault_report> report(bool resets);
  /// Reads the record of a kernel that has ended.
  [[nodiscard]] result<fault_record> read(const fault_record* record);
  /// Adds the counts of the record of one call.
  void add(const fault_record& checked);

 private:
  [[nodiscard]] result<fault_record> copy(const fault_record* record);
  [[nodiscard]] result<void> open_first();
  void note(const bad_item& item);

  const fault_calls& calls_;
  const std::uint64_t context_;
  fault_record* const records_;
  std::mutex mutex_;
  cudaStream_t stream_{};
  fault_record* host_{};                                     // pinned
  std::array<std::uint64_t, item_kind_count> discounted_{};  // the device's counts at the last reset
  std::array<std::uint64_t, item_kind_count> checked_{};     // the counts of checked calls since then
  bad_item first_{};
};

/// The pages of all contexts of a process. Thread-safe.
class fault_book {
 public:
  explicit fault_book(const fault_calls& calls) : calls_{calls} {}
  fault_book(const fault_book&) = delete;
  fault_book& operator=(const fault_book&) = delete;

  const fault_calls& calls() const { return calls_; }
  /// Returns the page of the current context, and makes it if there is none.
  [[nodiscard]] result<fault_page*> page();

 private:
  [[nodiscard]] result<fault_page*> find(std::uint64_t context);

  const fault_calls& calls_;
  std::array<std::atomic<fault_page*>, 64> latest_{};  // for a look-up without a lock at every call
  std::mutex mutex_;
  std::vector<std::unique_ptr<fault_page>> pages_;
};

/// Returns the book of this process, over CUDA.
fault_book& process_faults();

}  // namespace tmap
