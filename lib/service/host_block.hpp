// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/encode_status.hpp>
#include <tmap/slot_record.hpp>

#include <utility>

#include "lib/service/service_calls.hpp"

namespace tmap::service {

/// What kernels of a service add to and the host reads, in pinned mapped host memory.
struct device_counts {
  batch_totals totals;
  hazard_log hazards;
};

/// The memory of one `device_counts`. Owned.
class host_block {
 public:
  explicit host_block(const service_calls& calls) : calls_{&calls} {}
  host_block(host_block&& other) noexcept : calls_{other.calls_}, data_{std::exchange(other.data_, nullptr)} {}
  host_block& operator=(host_block&&) = delete;
  ~host_block() {
    if (data_ != nullptr) static_cast<void>(calls_->free_host(data_));
  }

  cudaError_t allocate() { return calls_->allocate_host(&data_, sizeof(device_counts)); }
  /// Lets go of memory that kernels may still write, or that is gone.
  void leak() { data_ = nullptr; }
  device_counts* get() const { return static_cast<device_counts*>(data_); }

 private:
  const service_calls* calls_;
  void* data_{};
};

}  // namespace tmap::service
