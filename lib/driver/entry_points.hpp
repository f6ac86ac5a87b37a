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
/// kept. A failed look-up is tried again at the next use, because its cause may be gone by then.
/// Thread-safe: two threads that look up at once find the same pointer.
class entry_points {
 public:
  explicit entry_points(const runtime_calls& calls) : calls_{calls} {}

  [[nodiscard]] result<encode_tiled_function> encode_tiled() { return as<encode_tiled_function>(encode_tiled_); }
  [[nodiscard]] result<encode_im2col_function> encode_im2col() { return as<encode_im2col_function>(encode_im2col_); }
  [[nodiscard]] result<encode_im2col_wide_function> encode_im2col_wide() {
    return as<encode_im2col_wide_function>(encode_im2col_wide_);
  }
  [[nodiscard]] result<replace_address_function> replace_address() {
    return as<replace_address_function>(replace_address_);
  }
  [[nodiscard]] result<context_id_function> context_id() { return as<context_id_function>(context_id_); }
  [[nodiscard]] result<get_device_function> get_device() { return as<get_device_function>(get_device_); }
  [[nodiscard]] result<primary_state_function> primary_state() { return as<primary_state_function>(primary_state_); }
  [[nodiscard]] result<primary_retain_function> primary_retain() {
    return as<primary_retain_function>(primary_retain_);
  }
  [[nodiscard]] result<primary_release_function> primary_release() {
    return as<primary_release_function>(primary_release_);
  }
  [[nodiscard]] result<event_query_function> event_query() { return as<event_query_function>(event_query_); }

 private:
  struct kept_pointer {
    const char* symbol;
    unsigned int version;
    std::atomic<void*> function{};
  };

  [[nodiscard]] result<void*> find(kept_pointer& kept) const;
  template <class Function>
  [[nodiscard]] result<Function> as(kept_pointer& kept) const {
    return find(kept).transform([](void* function) { return reinterpret_cast<Function>(function); });
  }

  const runtime_calls& calls_;
  kept_pointer encode_tiled_{"cuTensorMapEncodeTiled", 12000};
  kept_pointer encode_im2col_{"cuTensorMapEncodeIm2col", 12000};
  kept_pointer encode_im2col_wide_{"cuTensorMapEncodeIm2colWide", 12080};
  kept_pointer replace_address_{"cuTensorMapReplaceAddress", 12000};
  kept_pointer context_id_{"cuCtxGetId", 12000};
  kept_pointer get_device_{"cuDeviceGet", 12000};
  kept_pointer primary_state_{"cuDevicePrimaryCtxGetState", 12000};
  kept_pointer primary_retain_{"cuDevicePrimaryCtxRetain", 12000};
  kept_pointer primary_release_{"cuDevicePrimaryCtxRelease", 12000};
  kept_pointer event_query_{"cuEventQuery", 12000};
};

}  // namespace tmap::driver
