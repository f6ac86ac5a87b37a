// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/batch.h>
#include <tmap/encode_batch.hpp>
#include <tmap/map_template.hpp>
#include <tmap/tensor_batch.hpp>

#include "lib/interop/call.hpp"

// C's structs of c/batch.h and the library's.

namespace tmap::interop {

/// The struct and the enums of the member that its kind names. Pointers to device memory are left to the encoder.
void check_source(arguments& given, const tmap_patch_source* source, const support::argument& name);

/// Of a checked source.
tensor_source source_of(const tmap_patch_source& source);

template <class T>
const address_window* windows_of(const T& from) {
  return reinterpret_cast<const address_window*>(from.windows);
}

/// Null: none.
encode_options options_of(const tmap_encode_options* options);

}  // namespace tmap::interop
