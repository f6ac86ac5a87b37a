// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/error.hpp>
#include <tmap/map_template.hpp>
#include <tmap/tensor_spec.hpp>

namespace tmap {

/// Makes a template through the driver. The fields in `fields` come from each map's patch, so
/// `spec` is ignored there: address, dims and strides are encoded as the smallest legal ones, box
/// and element strides as given. All other fields hold for every map. Maps made from the template
/// equal the driver's in all 128 bytes, with one exception: if a patch changes a box or element
/// stride, word 8 stays the template's. It is the driver's note of the box's bytes, which no copy
/// reads. From compute capability 10 on, maps also lack the mark of large tensors
/// (`decoded_map::large_tensor`), because no patch could remove it from a smaller tensor
/// (documented only). Fails as `encode` does, or with `invalid_argument` if `fields` names an axis
/// beyond the rank.
[[nodiscard]] TMAP_API result<map_template> make_template(const tensor_spec& spec, patch_fields fields);

/// Makes a template without a driver: 128 zero bytes, in which the encoder then writes every field
/// (CUDA programming guide, "Encoding a tensor map on device", sm_90a). Calls on later GPUs fail
/// with `unsupported`. Such maps have L2 promotion `none` for any `spec`, and lack words 8 and 9,
/// the driver's notes.
/// @fails `rule_broken`, or with `invalid_argument` if `fields` names an axis beyond the rank.
[[nodiscard]] TMAP_API result<map_template> make_zeroed_template(const tensor_spec& spec, patch_fields fields);

}  // namespace tmap
