// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/pool/pool_calls.hpp"
#include "lib/support/relaxed_capture.hpp"

namespace tmap::pool {

using relaxed_capture = support::relaxed_capture<pool_calls>;

/// Whether this result of a query of an event, or of a wait for it, means that the event was
/// recorded in a capture. If that capture has ended, CUDA returns only "invalid value" (measured on
/// an H200, driver 580.159.04).
inline bool is_captured_event(cudaError_t code) {
  return code == cudaErrorCapturedEvent || code == cudaErrorStreamCaptureIsolation || code == cudaErrorInvalidValue;
}

}  // namespace tmap::pool
