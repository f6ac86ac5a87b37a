// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/batch.h>
#include <tmap/encode_batch.hpp>
#include <tmap/map_template.hpp>
#include <tmap/tensor_source.hpp>

#include "lib/interop/call.hpp"

// C's structs of c/batch.h and the library's.

namespace tmap::interop {

/// The struct and the enums of the member that its kind names. Pointers to device memory are left to the encoder.
void check_source(arguments& given, const tmap_patch_source* source, const support::argument& name);

/// Of a checked source.
tensor_source source_of(const tmap_patch_source& source);
workspace scratch_of(const tmap_patch_source& source);

template <class T>
const address_window* windows_of(const T& from) {
  return reinterpret_cast<const address_window*>(from.windows);
}

/// How a call on `stream` encodes from a checked source; of the members that `options` and a service's request share.
template <class Options>
encode_run run_of(const Options& options, const tmap_patch_source& source, tmap_stream stream) {
  encode_run run{{cuda::stream_ref{stream}, scratch_of(source)}};
  run.header = reinterpret_cast<batch_header*>(options.header);
  run.windows = {windows_of(options), options.window_count};
  run.check = static_cast<fault_check>(options.check);
  run.choices = {options.trusted != 0, static_cast<publish>(options.publish)};
  return run;
}

/// The complaint about a run, in the names of what C has in its place: `name` is "options" or "request".
answer complaint_of(const error& e, const char* name);

}  // namespace tmap::interop
