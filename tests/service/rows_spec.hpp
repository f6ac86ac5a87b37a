// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_spec.hpp>

namespace tmap::testing {

/// Returns the template of tensors of 64 x rows floats.
inline tensor_spec rows_spec() {
  tensor_spec spec;
  spec.global_address = 4096;
  spec.type = element_type::f32;
  spec.rank = 2;
  spec.global_dim[0] = 64;
  spec.global_dim[1] = 1;
  spec.global_stride_bytes[0] = 256;
  spec.box_dim[0] = 32;
  spec.box_dim[1] = 8;
  spec.swizzle = swizzle::bytes_128;
  spec.l2_promotion = l2_promotion::bytes_128;
  return spec;
}

}  // namespace tmap::testing
