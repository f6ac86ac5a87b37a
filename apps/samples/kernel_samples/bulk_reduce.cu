// SPDX-License-Identifier: Apache-2.0
// Finds the largest number of each column over all rows. Each block loads one row, and the copy
// engine takes the maximum in global memory. It needs neither a map nor atomics in the kernel.

#include "apps/samples/kernel_samples/samples.hpp"

#include <tmap/device/bulk_copy.cuh>
#include <tmap/device/reduce_copy.cuh>

#include <algorithm>

namespace bulk_reduce_sample {

constexpr std::uint32_t columns = 256, rows = 30;

__global__ void largest(const std::int32_t* matrix, std::int32_t* result) {
  using namespace tmap::device;
  alignas(16) __shared__ std::int32_t row[columns];
  __shared__ tile_barrier barrier;
  barrier.init(1);
  fence_barrier_init();
  barrier.arrive_expect(sizeof(row));
  load_bytes(row, matrix + blockIdx.x * columns, sizeof(row), barrier);
  barrier.wait(0);
  reduce_bytes<tmap::reduction::max>(result, row, sizeof(row));
  commit_stores();
  wait_stores_read<0>();
}

}  // namespace bulk_reduce_sample

bool samples::bulk_reduce() {
  using namespace bulk_reduce_sample;
  std::vector<std::int32_t> matrix(columns * rows);
  std::vector<std::int32_t> expected(columns, -1000);
  for (std::uint32_t i = 0; i < matrix.size(); ++i) {
    matrix[i] = static_cast<std::int32_t>(i * 7919 % 1999) - 999;
    expected[i % columns] = std::max(expected[i % columns], matrix[i]);
  }
  const device_array<std::int32_t> there(matrix);
  const device_array<std::int32_t> result(std::vector<std::int32_t>(columns, -1000));
  largest<<<rows, 1>>>(there.get(), result.get());
  return result.read() == expected;
}
