// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a ragged operation stands beside (CUB's batched copy, the runtime's) and how its result is
// checked.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "apps/bench/ragged/ragged_batch.hpp"

namespace tmap::apps::bench {

/// Every 8 bytes another number.
void fill_with_noise(const device_array<unsigned char>& memory);
/// Every 4 bytes a float of [-1, 1); another series, other floats.
void fill_with_floats(const device_array<unsigned char>& memory, std::uint32_t series = 0);

/// Elements of `destination` that are not those of `source`. `is_swapped`: dims 0 and 1 of the
/// destination are those of the source exchanged. The smaller dims count.
std::uint64_t count_differences(const tensor_columns& source, const tensor_columns& destination, bool is_swapped);

/// `cub::DeviceMemcpy::Batched`, a buffer a row; contiguous tensors are one row.
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

/// `cudaMemcpyBatchAsync` of contiguous tensors.
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
