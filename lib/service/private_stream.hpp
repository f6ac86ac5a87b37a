// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/service/service_calls.hpp"

namespace tmap::service {

/// A stream for what a service does before anybody uses it. Owned; null until opened.
class private_stream {
 public:
  explicit private_stream(const service_calls& calls) : calls_{calls} {}
  private_stream(const private_stream&) = delete;
  private_stream& operator=(const private_stream&) = delete;
  ~private_stream() {
    if (stream_ != nullptr) static_cast<void>(calls_.close_stream(stream_));
  }

  cudaError_t open() { return calls_.open_stream(&stream_); }
  cudaStream_t get() const { return stream_; }

 private:
  const service_calls& calls_;
  cudaStream_t stream_{};
};

}  // namespace tmap::service
