// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "lib/service/service_calls.hpp"

namespace tmap::service {

/// A stream for a service's own work. Owned; null until opened.
class private_stream {
 public:
  explicit private_stream(const service_calls& calls) : calls_{&calls} {}
  private_stream(private_stream&& other) noexcept
      : calls_{other.calls_}, stream_{std::exchange(other.stream_, nullptr)} {}
  private_stream& operator=(private_stream&&) = delete;
  ~private_stream() { close(); }

  cudaError_t open() { return calls_->open_stream(&stream_); }
  void close() {
    if (stream_ != nullptr) static_cast<void>(calls_->close_stream(std::exchange(stream_, nullptr)));
  }
  /// Gives up a stream that ended with its context.
  void leak() { stream_ = nullptr; }

  cudaStream_t get() const { return stream_; }

 private:
  const service_calls* calls_;
  cudaStream_t stream_{};
};

}  // namespace tmap::service
