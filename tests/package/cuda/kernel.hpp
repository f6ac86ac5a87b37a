// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tile.hpp>
#include <tmap/typed_maps.hpp>

#include <cuda_runtime_api.h>

// [tile]
inline constexpr unsigned columns = 16, box_rows = 8;
using group_tile = tmap::tile<float, tmap::swizzle::none, columns, box_rows>;  // innermost first
// [tile]

/// Writes the sum of the first tile of map i to sums[i].
cudaError_t sum_first_tiles(const tmap::typed_maps<group_tile>& groups, float* sums, cudaStream_t stream);
