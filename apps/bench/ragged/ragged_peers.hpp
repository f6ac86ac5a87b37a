// SPDX-License-Identifier: Apache-2.0
#pragma once

// The peers of a ragged operation (CUB's batched copy and the runtime's) and the check of its
// result.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "apps/bench/ragged/ragged_batch.hpp"

namespace tmap::apps::bench {

/// Writes a different number every 8 bytes.
void fill_with_noise(const device_array<unsigned char>& memory);
/// Writes a float in [-1, 1) every 4 bytes. Another series gives other floats.
void fill_with_floats(const device_array<unsigned char>& memory, std::uint32_t series = 0);

/// Counts the elements of `destination` that differ from those of `source`. If `is_swapped`, dims 0
/// and 1 of the destination are those of the source exchanged. Compares the smaller of both dims.
std::uint64_t count_differences(const tensor_columns& source, const tensor_columns& destination, bool is_swapped);

/// Runs `cub::DeviceMemcpy::Batched` with one buffer per row; a contiguous tensor is one row.
class cub_batched_copy {
 public:
  cub_batched_copy(const device_batch& source, const device_batch& destination);
  void enqueue(cudaStream_t stream) const;

 private:
  device_array<void*> from_;
  device_array<void*> to_;
  device_array<std::uint32_t> bytes_;
  device_array<unsigned char> scratch_;
};

/// Runs `cudaMemcpyBatchAsync` on contiguous tensors.
class runtime_batched_copy {
 public:
  runtime_batched_copy(const device_batch& source, const device_batch& destination);
  void enqueue(cudaStream_t stream) const;

 private:
  std::vector<const void*> from_;
  std::vector<void*> to_;
  std::vector<std::size_t> bytes_;
};

}  // namespace tmap::apps::bench
