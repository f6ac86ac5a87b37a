// SPDX-License-Identifier: Apache-2.0
#pragma once

// Implements saxpy and max_pool_1d of one long vector without tmap's operations: as plain kernels,
// and as pipelines of asynchronous copies that a user would build from tmap's device headers.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tmap::apps::bench {

/// f32 vectors, 16-byte aligned, n a multiple of 4, without NaN. Saxpy computes y = a * x + y.
/// Pooling sets y to the largest x within `radius`.
struct vector_pair {
  const float* x;
  float* y;
  std::uint64_t n;
};

/// Loads and stores 16 bytes at a time, four in flight per thread.
void plain_saxpy(const vector_pair& vectors, float a, cudaStream_t stream);
/// Fills tiles in shared memory by LDGSTS copies, one tile ahead.
void ldgsts_saxpy(const vector_pair& vectors, float a, cudaStream_t stream);
/// Fills tiles in shared memory by bulk copies through a ring of stages.
void bulk_saxpy(const vector_pair& vectors, float a, cudaStream_t stream);

/// Each thread reads the 2 * radius + 1 elements of its window from a tile in shared memory.
void naive_max_pool(const vector_pair& vectors, std::uint32_t radius, cudaStream_t stream);
/// Does the same with tiles that LDGSTS copies fill one tile ahead.
void ldgsts_max_pool(const vector_pair& vectors, std::uint32_t radius, cudaStream_t stream);
/// Does the same with tiles that bulk copies fill through a ring of stages.
void bulk_max_pool(const vector_pair& vectors, std::uint32_t radius, cudaStream_t stream);

/// The largest radius.
inline constexpr std::uint32_t most_peer_radius = 64;

}  // namespace tmap::apps::bench
