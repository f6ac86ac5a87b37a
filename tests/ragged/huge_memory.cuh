// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memories of thousands of millions of elements. Plain kernels write and check them on the device.
// An element's value is a function of its place, so that no copy is needed.

#include <cstdint>

#include "device/gpu_fixture.hpp"
#include "ragged/huge_side.hpp"

namespace tmap::testing {

template <class Word>
inline constexpr Word poison_word = static_cast<Word>(0xa5a5a5a5);

/// Uses all bits of `i`: memory at a distance of 2^31 or 2^32 differs.
__device__ inline std::uint64_t noise_at(std::uint64_t i) {
  std::uint64_t bits = (i + 1) * 0x9e3779b97f4a7c15;
  bits = (bits ^ bits >> 32) * 0xd6e8feb86659fd93;
  return bits ^ bits >> 32;
}

struct wrong_elements {
  unsigned long long count;
  unsigned long long first;
};

template <class Word, class Value>
__global__ void write_kernel(Word* memory, huge_side side, Value value) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < side.elements; i += step) {
    memory[i] = value(i, side.find(i));
  }
}

template <class Word, class Value>
__global__ void check_kernel(const Word* memory, huge_side side, Value value, wrong_elements* wrong) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < side.elements; i += step) {
    if (memory[i] == value(i, side.find(i))) continue;
    atomicAdd(&wrong->count, 1ull);
    atomicMin(&wrong->first, static_cast<unsigned long long>(i));
  }
}

inline constexpr int huge_blocks = 1024;
inline constexpr int huge_threads = 512;

/// Sets every element to `value(i, place)`, including those that belong to no tensor.
template <class Word, class Value>
void write_values(const device_array<Word>& memory, const huge_side& side, const Value& value) {
  write_kernel<<<huge_blocks, huge_threads>>>(memory.data(), side, value);
  TMAP_ASSERT_CUDA(cudaGetLastError());
}

template <class Word, class Value>
wrong_elements find_wrong(const device_array<Word>& memory, const huge_side& side, const Value& value) {
  const device_array<wrong_elements> found(std::vector<wrong_elements>{{0, ~0ull}});
  check_kernel<<<huge_blocks, huge_threads>>>(memory.data(), side, value, found.data());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  return found.download().front();
}

template <class Word, class Value>
void expect_values(const device_array<Word>& memory, const huge_side& side, const Value& value) {
  const wrong_elements wrong = find_wrong(memory, side, value);
  EXPECT_EQ(wrong.count, 0u) << "elements differ, the first is number " << wrong.first;
}

}  // namespace tmap::testing
