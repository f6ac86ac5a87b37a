// SPDX-License-Identifier: Apache-2.0
#include <cub/device/device_memcpy.cuh>

#include <vector>

#include "apps/bench/ragged/noise.cuh"
#include "apps/bench/ragged/ragged_peers.hpp"
#include "apps/support/require.hpp"

namespace tmap::apps::bench {
namespace {

__global__ void noise_kernel(std::uint64_t* words, std::uint64_t count) {
  for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < count;
       i += std::uint64_t{gridDim.x} * blockDim.x) {
    words[i] = noise(i);
  }
}

__global__ void floats_kernel(float* values, std::uint64_t count, std::uint32_t series) {
  for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < count;
       i += std::uint64_t{gridDim.x} * blockDim.x) {
    values[i] = noise_float(i, series);
  }
}

__device__ std::uint64_t address_of(const tensor_columns& columns, std::uint64_t tensor, const std::uint64_t* at) {
  std::uint64_t address = columns.address[tensor] + at[0] * columns.element_bytes;
  for (std::uint32_t axis = 1; axis < max_rank; ++axis) address += at[axis] * columns.stride[axis - 1][tensor];
  return address;
}

__device__ bool differs(std::uint64_t a, std::uint64_t b, std::uint32_t bytes) {
  for (std::uint32_t i = 0; i < bytes; ++i) {
    if (reinterpret_cast<const unsigned char*>(a)[i] != reinterpret_cast<const unsigned char*>(b)[i]) return true;
  }
  return false;
}

// Blocks take tensors in turn.
__global__ void differences_kernel(const __grid_constant__ tensor_columns source,
                                   const __grid_constant__ tensor_columns destination, bool is_swapped,
                                   unsigned long long* different) {
  unsigned long long mine = 0;
  for (std::uint64_t tensor = blockIdx.x; tensor < source.count; tensor += gridDim.x) {
    std::uint64_t dim[max_rank];
    std::uint64_t elements = 1;
    for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
      const std::uint32_t other = is_swapped && axis < 2 ? 1 - axis : axis;
      dim[axis] = min(source.dim[axis][tensor], destination.dim[other][tensor]);
      elements *= dim[axis];
    }
    for (std::uint64_t i = threadIdx.x; i < elements; i += blockDim.x) {
      std::uint64_t at[max_rank];
      std::uint64_t left = i;
      for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
        at[axis] = left % dim[axis];
        left /= dim[axis];
      }
      const std::uint64_t to[max_rank]{at[is_swapped ? 1 : 0], at[is_swapped ? 0 : 1], at[2], at[3], at[4]};
      mine += differs(address_of(source, tensor, at), address_of(destination, tensor, to), source.element_bytes);
    }
  }
  if (mine != 0) atomicAdd(different, mine);
}

struct rows {
  std::vector<void*> address;
  std::vector<std::uint32_t> bytes;
};

rows rows_of(const device_batch& batch) {
  rows all;
  const std::uint32_t element_bytes = batch.described().element_bytes;
  for (std::uint64_t i = 0; i < batch.tensors().size(); ++i) {
    const placed_tensor& tensor = batch.tensors()[i];
    const std::uint64_t row_bytes = tensor.dim[0] * element_bytes;
    const bool is_packed = tensor.stride_bytes[0] == row_bytes;
    const std::uint64_t count = is_packed ? 1 : tensor.dim[1];
    for (std::uint64_t row = 0; row < count; ++row) {
      all.address.push_back(reinterpret_cast<void*>(batch.address(i) + row * tensor.stride_bytes[0]));
      all.bytes.push_back(static_cast<std::uint32_t>(is_packed ? row_bytes * tensor.dim[1] : row_bytes));
    }
  }
  return all;
}

std::size_t cub_scratch_bytes(std::uint32_t count) {
  std::size_t bytes = 0;
  void** const none = nullptr;
  const std::uint32_t* const sizes = nullptr;
  require(cub::DeviceMemcpy::Batched(nullptr, bytes, none, none, sizes, count));
  return bytes;
}

constexpr unsigned fill_blocks = 1024;
constexpr unsigned fill_threads = 256;

}  // namespace

void fill_with_noise(const device_array<unsigned char>& memory) {
  noise_kernel<<<fill_blocks, fill_threads>>>(reinterpret_cast<std::uint64_t*>(memory.get()), memory.bytes() / 8);
  require(cudaDeviceSynchronize());
}

void fill_with_floats(const device_array<unsigned char>& memory, std::uint32_t series) {
  floats_kernel<<<fill_blocks, fill_threads>>>(reinterpret_cast<float*>(memory.get()), memory.bytes() / 4, series);
  require(cudaDeviceSynchronize());
}

std::uint64_t count_differences(const tensor_columns& source, const tensor_columns& destination, bool is_swapped) {
  const device_array<unsigned long long> different(1);
  different.fill(0);
  differences_kernel<<<4096, fill_threads>>>(source, destination, is_swapped, different.get());
  require(cudaGetLastError());
  return different.read().front();
}

cub_batched_copy::cub_batched_copy(const device_batch& source, const device_batch& destination)
    : from_(rows_of(source).address),
      to_(rows_of(destination).address),
      bytes_(rows_of(source).bytes),
      scratch_(cub_scratch_bytes(static_cast<std::uint32_t>(bytes_.size()))) {
  require(from_.size() == to_.size());
}

void cub_batched_copy::enqueue(cudaStream_t stream) const {
  std::size_t bytes = scratch_.bytes();
  require(cub::DeviceMemcpy::Batched(scratch_.get(), bytes, from_.get(), to_.get(), bytes_.get(),
                                     static_cast<std::uint32_t>(bytes_.size()), stream));
}

runtime_batched_copy::runtime_batched_copy(const device_batch& source, const device_batch& destination) {
  const rows from = rows_of(source);
  const rows to = rows_of(destination);
  from_.assign(from.address.begin(), from.address.end());
  to_ = to.address;
  bytes_.assign(from.bytes.begin(), from.bytes.end());
}

void runtime_batched_copy::enqueue(cudaStream_t stream) const {
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t first = 0;
  require(cudaMemcpyBatchAsync(to_.data(), from_.data(), bytes_.data(), bytes_.size(), &attributes, &first, 1, stream));
}

}  // namespace tmap::apps::bench
