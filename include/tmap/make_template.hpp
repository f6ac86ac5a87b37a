// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/error.hpp>
#include <tmap/map_template.hpp>
#include <tmap/tensor_spec.hpp>

namespace tmap {

/// A template through the driver. Fields named in `fields` come from each map's patch, so their
/// value in `spec` is ignored (address, dims and strides are encoded as the smallest legal ones,
/// box and element strides as given); all others hold for every map. Maps made from it equal the
/// driver's in all 128 bytes, but where a patch changes a box or element stride: word 8, the
/// driver's note of the box's bytes, which no copy reads, then stays the template's. From compute
/// capability 10 on they also lack the mark of large tensors (`decoded_map::large_tensor`), which
/// no patch could take back from a tensor that became small: documented only. Fails as `encode`
/// does.
[[nodiscard]] TMAP_API result<map_template> make_template(const tensor_spec& spec, patch_fields fields);

/// A template without a driver: 128 zero bytes, every field of which the encoder then writes (CUDA
/// programming guide, "Encoding a tensor map on device", sm_90a: calls on later GPUs refuse it as
/// `unsupported`). Such maps have L2 promotion `none`, whatever `spec` says, and lack words 8 and
/// 9, the driver's notes. Fails with `rule_broken`, or with `invalid_argument` when `fields` names
/// an axis beyond the rank.
[[nodiscard]] TMAP_API result<map_template> make_zeroed_template(const tensor_spec& spec, patch_fields fields);

}  // namespace tmap
