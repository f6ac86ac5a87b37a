// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "lib/service/service_calls.hpp"

namespace tmap::service {

/// The context a service was made in.
struct home_context {
  std::uint64_t id{};
  int device{};
  bool is_primary{};  ///< its device's primary one, whose end can be told from the outside
};

/// The current context of the calling thread, which gets its current device's primary one if it has
/// none.
[[nodiscard]] result<home_context> find_home_context(const service_calls& calls);

/// Asks before each call whether CUDA may be called for a service at all, in this process, now and
/// on this thread. Thread-safe.
class context_guard {
 public:
  context_guard(const service_calls& calls, const home_context& home)
      : calls_{calls}, home_{home}, process_id_{calls.process_id()} {}

  /// Fails with `forked`, `service_dead` or `wrong_context`, in this order. A thread without a
  /// context gets the service's, if that is the primary one of the thread's current device, as from
  /// any call of the runtime.
  ///
  /// A service is dead when its context is lost. That is certain for a primary context: its device
  /// then has none, or one of another id (cudaDeviceReset and a context made anew). Nothing may be
  /// asked of a context from cuCtxCreate once it might be destroyed, so where that is not current
  /// the answer is `wrong_context`.
  [[nodiscard]] result<void> check();

  bool is_forked() const { return calls_.process_id() != process_id_; }
  bool is_dead() const { return is_dead_.load(std::memory_order_acquire); }

  /// Makes the service dead if `e` says that its context is broken; the first such error is the
  /// reason given from then on. What the caller is told.
  error judge(const error& e);
  /// The outcome of a CUDA call; a failure is judged.
  [[nodiscard]] result<void> as_result(cudaError_t code);
  /// The same for a failure after which nobody knows what the device does, whatever its code.
  error die(const error& reason);

 private:
  [[nodiscard]] result<void> check_other(std::uint64_t current);
  [[nodiscard]] result<void> enter_home(std::uint64_t current);
  error death() const;

  const service_calls& calls_;
  const home_context home_;
  const int process_id_;
  std::atomic<bool> is_dead_{false};
  std::mutex dying_;
  std::int32_t cuda_code_{};  // the reason; written before is_dead_
};

}  // namespace tmap::service
