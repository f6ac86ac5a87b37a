// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/slot_record.hpp>

#include <utility>

#include "lib/service/service_calls.hpp"

namespace tmap::service {

/// Pinned host memory of a service, for a copy of its totals and, if hazards are checked, for the
/// reports of its kernels. Owned.
class host_block {
 public:
  explicit host_block(const service_calls& calls) : calls_{&calls} {}
  host_block(host_block&& other) noexcept : calls_{other.calls_}, data_{std::exchange(other.data_, nullptr)} {}
  host_block& operator=(host_block&&) = delete;
  ~host_block() { free(); }

  cudaError_t allocate() {
    return calls_->allocate_host(&data_, checks_hazards ? sizeof(parts) : sizeof(kernels::batch_totals));
  }
  void free() {
    if (data_ != nullptr) static_cast<void>(calls_->free_host(std::exchange(data_, nullptr)));
  }
  /// Gives up memory that kernels may still write, or that is gone.
  void leak() { data_ = nullptr; }

  kernels::batch_totals* totals() const { return &static_cast<parts*>(data_)->totals; }
  /// Null unless hazards are checked.
  hazard_log* hazards() const { return checks_hazards ? &static_cast<parts*>(data_)->hazards : nullptr; }

 private:
  struct parts {
    kernels::batch_totals totals;
    hazard_log hazards;
  };

  const service_calls* calls_;
  void* data_{};
};

}  // namespace tmap::service
