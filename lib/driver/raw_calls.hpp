// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_map.hpp>
#include <tmap/tensor_spec.hpp>

#include "lib/driver/entry_points.hpp"

// Each function makes one driver call without any check, for `encode` and for the tests that
// compare the driver's verdict with ours. `map` is zeroed first, so that bytes the driver does not
// write are zero.

namespace tmap::driver {

CUresult raw_encode(encode_tiled_function function, const tensor_spec& spec, tensor_map& map);
CUresult raw_encode(encode_im2col_function function, const im2col_spec& spec, tensor_map& map);
CUresult raw_encode(encode_im2col_wide_function function, const im2col_wide_spec& spec, tensor_map& map);
CUresult raw_replace_address(replace_address_function function, tensor_map& map, std::uint64_t global_address);

}  // namespace tmap::driver
