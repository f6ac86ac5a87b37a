// SPDX-License-Identifier: Apache-2.0
// Copies through shared memory without a map. Each block loads and stores one piece, and prefetches
// the next block's piece into L2.

#include "apps/samples/kernel_samples/samples.hpp"

#include <tmap/device/bulk_copy.cuh>

namespace bulk_copy_sample {

constexpr std::uint32_t piece = 4096, pieces = 7;

__global__ void copy(const unsigned char* source, unsigned char* target) {
  using namespace tmap::device;
  alignas(16) __shared__ unsigned char bytes[piece];
  __shared__ tile_barrier barrier;
  const std::uint32_t at = blockIdx.x * piece;
  barrier.init(1);
  fence_barrier_init();
  barrier.arrive_expect(piece);
  load_bytes(bytes, source + at, piece, barrier);
  if (blockIdx.x + 1 < gridDim.x) prefetch_bytes(source + at + piece, piece);
  barrier.wait(0);
  store_bytes(target + at, bytes, piece);
  commit_stores();
  wait_stores_read<0>();
}

}  // namespace bulk_copy_sample

bool samples::bulk_copy() {
  using namespace bulk_copy_sample;
  const auto numbers = counting<unsigned char>(piece * pieces);
  const device_array<unsigned char> source(numbers);
  const device_array<unsigned char> target(std::vector<unsigned char>(numbers.size(), 0xee));
  copy<<<pieces, 1>>>(source.get(), target.get());
  return target.read() == numbers;
}
