// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "lib/support/check.hpp"

namespace tmap::support {

/// While it lives, this thread's CUDA calls do not break another thread's stream capture, and are
/// not refused because of one. `Calls` has the pointer `exchange_capture_mode`.
template <class Calls>
class relaxed_capture {
 public:
  explicit relaxed_capture(const Calls& calls) : calls_(calls), code_(exchange()) {}
  /// If this fails the thread stays relaxed, which harms no capture.
  ~relaxed_capture() {
    if (code_ == cudaSuccess) static_cast<void>(exchange());
  }
  relaxed_capture(const relaxed_capture&) = delete;
  relaxed_capture& operator=(const relaxed_capture&) = delete;

  cudaError_t code() const { return code_; }

 private:
  cudaError_t exchange() {
    const cudaError_t code = calls_.exchange_capture_mode(&mode_);
    if (code != cudaSuccess) clear_last_error(code);
    return code;
  }

  const Calls& calls_;
  cudaStreamCaptureMode mode_{cudaStreamCaptureModeRelaxed};
  cudaError_t code_;
};

}  // namespace tmap::support
