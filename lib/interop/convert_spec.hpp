// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/spec.h>
#include <tmap/decode.hpp>
#include <tmap/device_limits.hpp>
#include <tmap/tensor_map.hpp>
#include <tmap/tensor_spec.hpp>

// C's structs of c/spec.h and the library's, each way. Types and modes pass as they are: `validate` names the rule that
// an unknown one breaks.

namespace tmap::interop {

tensor_spec spec_of(const tmap_tensor_spec& spec);
im2col_spec spec_of(const tmap_im2col_spec& spec);
/// Null: a Hopper GPU.
device_limits limits_of(const tmap_device_limits* limits);
tensor_map map_of(const tmap_tensor_map& map);

tmap_tensor_spec c_spec_of(const tensor_spec& spec);
tmap_decoded_map c_decoded_of(const decoded_map& decoded);
tmap_tensor_map c_map_of(const tensor_map& map);

}  // namespace tmap::interop
