// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_batch.hpp>

#include <cuda_runtime_api.h>

inline constexpr unsigned columns = 16, box_rows = 8;

/// sums[i]: of the first tile of map i.
cudaError_t sum_first_tiles(const tmap::map_batch_ref& groups, float* sums, cudaStream_t stream);
