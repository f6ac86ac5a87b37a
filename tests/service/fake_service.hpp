// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_service.hpp>
#include <tmap/map_template.hpp>

#include <cstdint>
#include <map>
#include <mutex>

#include "lib/service/service_calls.hpp"
#include "support/fake_streams.hpp"

// A machine for a service on the CPU: contexts, memory, and an encoder that makes real maps
// immediately, independently of the streams of `fake_streams`. The process has one machine; make a
// `fake_machine` at the start of each test. Thread-safe except for the members that a test sets.

namespace tmap::testing {

class fake_machine {
 public:
  fake_machine();
  ~fake_machine();
  fake_machine(const fake_machine&) = delete;
  fake_machine& operator=(const fake_machine&) = delete;

  static const service::service_calls& calls();
  static fake_machine& current();

  /// Returns a new context id. As in CUDA, no id is used twice.
  static std::uint64_t new_context();
  /// Does what cudaDeviceReset does, even if this thread's context is not that of the device.
  void reset_device();
  /// Gives this thread another context than the primary one, as cuCtxCreate does.
  std::uint64_t push_context();
  void pop_context();
  void unbind_thread();

  /// From now on, the n-th call of the service's table (1 is the next) returns `code` and does
  /// nothing.
  void fail_call(std::uint64_t n, cudaError_t code);
  std::uint64_t calls_made() const { return made_; }
  /// Counts the calls of the pool's and the service's table, without the queries of process and
  /// exit.
  std::uint64_t all_calls() const { return made_ + streams.calls_made(); }
  std::uint64_t host_blocks() const { return host_blocks_.size(); }
  /// Returns whether nothing that a service made is left.
  bool is_clean() const;

  fake_streams streams;
  bool is_exiting{};
  int device{};               ///< the current device of every thread; services use 0
  result<void> machine;       ///< the result of `check_machine`
  std::uint64_t primary;      ///< of device 0; 0 after a reset
  std::uint64_t wrong_map{};  ///< the n-th map that is encoded from now on (1 is the next) gets a wrong bit
  bool is_blackwell{};        ///< its driver marks every map as large, and no map begins as zeros
  std::int64_t private_streams{};

 private:
  friend struct fake_calls;
  cudaError_t enter();
  bool is_pinned(const void* data);

  std::mutex mutex_;
  std::map<const void*, std::size_t> host_blocks_;  ///< with their bytes
  std::uint64_t made_{};
  std::uint64_t countdown_{};
  cudaError_t code_{};
};

}  // namespace tmap::testing
