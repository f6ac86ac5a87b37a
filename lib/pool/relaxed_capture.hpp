// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/pool/pool_calls.hpp"

namespace tmap::pool {

/// While it lives, this thread's CUDA calls neither break another thread's stream capture nor are refused for it.
class relaxed_capture {
 public:
  explicit relaxed_capture(const pool_calls& calls) : calls_(calls), code_(calls.exchange_capture_mode(&mode_)) {}
  /// Where this fails the thread stays relaxed, which harms no capture.
  ~relaxed_capture() {
    if (code_ == cudaSuccess) static_cast<void>(calls_.exchange_capture_mode(&mode_));
  }
  relaxed_capture(const relaxed_capture&) = delete;
  relaxed_capture& operator=(const relaxed_capture&) = delete;

  cudaError_t code() const { return code_; }

 private:
  const pool_calls& calls_;
  cudaStreamCaptureMode mode_{cudaStreamCaptureModeRelaxed};
  cudaError_t code_;
};

}  // namespace tmap::pool
