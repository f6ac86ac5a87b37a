// SPDX-License-Identifier: Apache-2.0
#pragma once

// What saxpy and max_pool_1d of one long vector look like without tmap's operations: plain kernels,
// and pipelines of asynchronous copies as a user builds them from tmap's device headers.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tmap::apps::bench {

/// f32, 16-byte aligned, n a multiple of 4, without NaN. saxpy: y = a * x + y; pooling: y = the
/// largest of x within `radius`.
struct vector_pair {
  const float* x;
  float* y;
  std::uint64_t n;
};

/// Loads and stores of 16 bytes, four in flight a thread.
void plain_saxpy(const vector_pair& vectors, float a, cudaStream_t stream);
/// Tiles in shared memory, filled by LDGSTS copies one tile ahead.
void ldgsts_saxpy(const vector_pair& vectors, float a, cudaStream_t stream);
/// Tiles in shared memory, filled by bulk copies through a ring of stages.
void bulk_saxpy(const vector_pair& vectors, float a, cudaStream_t stream);

/// A thread reads the 2 * radius + 1 elements of its window from a tile in shared memory.
void naive_max_pool(const vector_pair& vectors, std::uint32_t radius, cudaStream_t stream);
/// The same from tiles that LDGSTS copies fill one tile ahead.
void ldgsts_max_pool(const vector_pair& vectors, std::uint32_t radius, cudaStream_t stream);
/// The same from tiles that bulk copies fill through a ring of stages.
void bulk_max_pool(const vector_pair& vectors, std::uint32_t radius, cudaStream_t stream);

/// Radius up to this.
inline constexpr std::uint32_t most_peer_radius = 64;

}  // namespace tmap::apps::bench
