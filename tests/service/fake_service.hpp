// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_service.hpp>
#include <tmap/map_template.hpp>

#include <cstdint>
#include <map>
#include <mutex>

#include "lib/service/service_calls.hpp"
#include "support/fake_streams.hpp"

// A machine for a service on the CPU: contexts, memory, and an encoder that makes real maps at the
// moment it is asked, whatever the streams of `fake_streams` do. One for the process; make a
// `fake_machine` at the start of each test. Thread-safe but for the members a test sets.

namespace tmap::testing {

class fake_machine {
 public:
  fake_machine();
  ~fake_machine();
  fake_machine(const fake_machine&) = delete;
  fake_machine& operator=(const fake_machine&) = delete;

  static const service::service_calls& calls();
  static fake_machine& current();

  /// Context ids are never used twice, as in CUDA.
  static std::uint64_t new_context();
  /// What cudaDeviceReset does, also where a context of this thread is not that of the device.
  void reset_device();
  /// Another context for this thread than the primary one, from cuCtxCreate.
  std::uint64_t push_context();
  void pop_context();
  void unbind_thread();

  /// From now on the n-th call of the service's table (1 is the next) answers `code` and does
  /// nothing.
  void fail_call(std::uint64_t n, cudaError_t code);
  std::uint64_t calls_made() const { return made_; }
  /// Of the pool's and the service's table, the questions after process and exit not counted.
  std::uint64_t all_calls() const { return made_ + streams.calls_made(); }
  std::uint64_t host_blocks() const { return host_blocks_.size(); }
  /// Nothing that a service made is left.
  bool is_clean() const;

  fake_streams streams;
  bool is_exiting{};
  int device{};               ///< of every thread; the services' is 0
  result<void> machine;       ///< what `check_machine` answers
  std::uint64_t primary;      ///< of device 0; 0 after a reset
  std::uint64_t wrong_map{};  ///< the n-th map encoded from now on (1 is the next) has a wrong bit
  bool is_blackwell{};        ///< its driver marks every map as large, and no map begins as zeros
  std::int64_t private_streams{};

 private:
  friend struct fake_calls;
  cudaError_t enter();
  bool is_pinned(const void* data);

  std::mutex mutex_;
  std::map<const void*, std::size_t> host_blocks_;  ///< and their bytes
  std::uint64_t made_{};
  std::uint64_t countdown_{};
  cudaError_t code_{};
};

}  // namespace tmap::testing
