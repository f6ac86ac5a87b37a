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

/// The driver's tensor map functions, each looked up at its first use and kept. A failed look-up is tried again at the
/// next use, since its cause may pass. Thread-safe: two threads that look up at once find the same pointer.
class entry_points {
 public:
  explicit entry_points(const runtime_calls& calls) : calls_{calls} {}

  result<encode_tiled_function> encode_tiled();
  result<encode_im2col_function> encode_im2col();
  result<encode_im2col_wide_function> encode_im2col_wide();
  result<replace_address_function> replace_address();

 private:
  using kept_pointer = std::atomic<void*>;

  template <class Function>
  result<Function> find(kept_pointer& kept, const char* symbol, unsigned int version);

  const runtime_calls& calls_;
  kept_pointer encode_tiled_{};
  kept_pointer encode_im2col_{};
  kept_pointer encode_im2col_wide_{};
  kept_pointer replace_address_{};
};

}  // namespace tmap::driver
