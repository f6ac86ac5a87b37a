// SPDX-License-Identifier: Apache-2.0
// Reverses each piece of a vector. Every thread loads 4 numbers with LDGSTS, from any address and
// for any length. Elements past the end are not read and arrive as zeros.

#include "apps/samples/kernel_samples/samples.hpp"

#include <tmap/device/async_copy.cuh>

#include <algorithm>

namespace copy_async_sample {

constexpr std::uint32_t threads = 64, piece = 4 * threads, length = 3 * piece - 9;

__global__ void reverse_pieces(const float* source, float* target) {
  using namespace tmap::device;
  alignas(16) __shared__ float numbers[piece];
  const std::uint32_t begin = blockIdx.x * piece + 4 * threadIdx.x;
  const std::uint32_t left = begin < length ? length - begin : 0;
  const std::uint32_t bytes = left < 4 ? 4 * left : 16;
  copy_async_zero_filled<16>(numbers + 4 * threadIdx.x, source + begin, bytes);
  commit_copies();
  wait_copies<0>();  // this thread's copies
  __syncthreads();   // all threads' copies
  for (std::uint32_t i = threadIdx.x; i < piece; i += threads) {
    target[blockIdx.x * piece + i] = numbers[piece - 1 - i];
  }
}

}  // namespace copy_async_sample

bool samples::copy_async() {
  using namespace copy_async_sample;
  const auto numbers = counting<float>(length, 1);
  const device_array<float> source(numbers);
  const device_array<float> target(std::vector<float>(3 * piece, -1));
  reverse_pieces<<<3, threads>>>(source.get(), target.get());
  std::vector<float> expected(numbers);
  expected.resize(3 * piece, 0);
  for (std::uint32_t i = 0; i < 3; ++i) {
    std::reverse(expected.begin() + i * piece, expected.begin() + (i + 1) * piece);
  }
  return target.read() == expected;
}
