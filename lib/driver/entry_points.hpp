// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>

#include <cudaTypedefs.h>

#include <atomic>

#include "lib/driver/runtime_calls.hpp"

namespace tmap::driver {

using encode_tiled_function = PFN_cuTensorMapEncodeTiled_v12000;
using encode_im2col_function = PFN_cuTensorMapEncodeIm2col_v12000;
using encode_im2col_wide_function = PFN_cuTensorMapEncodeIm2colWide_v12080;
using replace_address_function = PFN_cuTensorMapReplaceAddress_v12000;
using context_id_function = PFN_cuCtxGetId_v12000;
using get_device_function = PFN_cuDeviceGet_v2000;
using primary_state_function = PFN_cuDevicePrimaryCtxGetState_v7000;
using primary_retain_function = PFN_cuDevicePrimaryCtxRetain_v7000;
using primary_release_function = PFN_cuDevicePrimaryCtxRelease_v11000;
using event_query_function = PFN_cuEventQuery_v2000;

/// The driver's functions for tensor maps, contexts and events, each looked up at its first use and
/// kept. A failed look-up is tried again at the next use, since its cause may pass. Thread-safe:
/// two threads that look up at once find the same pointer.
class entry_points {
 public:
  explicit entry_points(const runtime_calls& calls) : calls_{calls} {}

  [[nodiscard]] result<encode_tiled_function> encode_tiled();
  [[nodiscard]] result<encode_im2col_function> encode_im2col();
  [[nodiscard]] result<encode_im2col_wide_function> encode_im2col_wide();
  [[nodiscard]] result<replace_address_function> replace_address();
  [[nodiscard]] result<context_id_function> context_id();
  [[nodiscard]] result<get_device_function> get_device();
  [[nodiscard]] result<primary_state_function> primary_state();
  [[nodiscard]] result<primary_retain_function> primary_retain();
  [[nodiscard]] result<primary_release_function> primary_release();
  [[nodiscard]] result<event_query_function> event_query();

 private:
  using kept_pointer = std::atomic<void*>;

  template <class Function>
  [[nodiscard]] result<Function> find(kept_pointer& kept, const char* symbol, unsigned int version);

  const runtime_calls& calls_;
  kept_pointer encode_tiled_{};
  kept_pointer encode_im2col_{};
  kept_pointer encode_im2col_wide_{};
  kept_pointer replace_address_{};
  kept_pointer context_id_{};
  kept_pointer get_device_{};
  kept_pointer primary_state_{};
  kept_pointer primary_retain_{};
  kept_pointer primary_release_{};
  kept_pointer event_query_{};
};

}  // namespace tmap::driver
