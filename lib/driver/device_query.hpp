// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/device_limits.hpp>
#include <tmap/error.hpp>

#include <array>
#include <atomic>
#include <cstdint>

#include "lib/driver/runtime_calls.hpp"

namespace tmap::driver {

/// Fails with `compute_capability_too_low` for a GPU without tensor maps.
[[nodiscard]] result<void> require_copy_engine(const device_limits& limits);

/// Returns the limits of the calling thread's current device and reads them once for each device.
/// Thread-safe.
class device_query {
 public:
  explicit device_query(const runtime_calls& calls) : calls_{calls} {}

  [[nodiscard]] result<device_limits> current();

 private:
  [[nodiscard]] result<int> current_device() const;
  [[nodiscard]] result<device_limits> read(int device) const;
  [[nodiscard]] result<device_limits> read_and_keep(int device);

  /// Devices from this number on are read at each call.
  static constexpr int kept_devices = 64;

  const runtime_calls& calls_;
  /// compute_capability << 32 | shared_memory_bytes; 0 until read.
  std::array<std::atomic<std::uint64_t>, kept_devices> kept_{};
};

}  // namespace tmap::driver
