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
  bool is_primary{};  ///< its device's primary context, whose end can be seen
};

/// Returns the current context of the calling thread. A thread without one gets its current
/// device's primary context.
[[nodiscard]] result<home_context> find_home_context(const service_calls& calls);

/// Checks before each call whether CUDA may be called for a service in this process, now and on
/// this thread. Thread-safe.
class context_guard {
 public:
  context_guard(const service_calls& calls, const home_context& home)
      : calls_{calls}, home_{home}, process_id_{calls.process_id()} {}

  /// Fails with `forked`, `service_dead` or `wrong_context`, in this order. A thread without a
  /// context gets the service's, if that is the primary one of the thread's current device, as from
  /// any call of the runtime.
  ///
  /// A service is dead when its context is lost. For a primary context this can be seen: its device
  /// has none, or one of another id (after cudaDeviceReset and a new context). CUDA cannot be asked
  /// about a context from cuCtxCreate that might be destroyed, so the check fails with
  /// `wrong_context` if such a context is not current.
  [[nodiscard]] result<void> check();

  bool is_forked() const { return calls_.process_id() != process_id_; }
  bool is_dead() const { return is_dead_.load(std::memory_order_acquire); }

  /// Makes the service dead if `e` means that its context is broken. The first such error is the
  /// reason from then on. Returns the error for the caller.
  error judge(const error& e);
  /// Returns the outcome of a CUDA call. A failure is judged.
  [[nodiscard]] result<void> as_result(cudaError_t code);
  /// Makes the service dead for a failure of any code after which the device's state is not known.
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
