// SPDX-License-Identifier: Apache-2.0
// Applies a 3 x 3 box filter to an image (NHWC) with a border of zeros, with one load for each of
// the nine offsets.

#include "apps/samples/kernel_samples/samples.hpp"

#include <tmap/device/tile_copy.cuh>
#include <tmap/encode.hpp>

#include <cstdlib>

namespace im2col_sample {

constexpr std::int32_t channels = 4, width = 8, height = 6, pixels = width * height;

__global__ void filter(const __grid_constant__ tmap::tensor_map image, float* result) {
  using namespace tmap::device;
  alignas(128) __shared__ float column[pixels * channels];
  __shared__ tile_barrier barrier;
  if (threadIdx.x == 0) barrier.init(1), fence_barrier_init();
  float sum = 0;
  for (std::uint32_t i = 0; i < 9; ++i) {
    __syncthreads();  // the column has been read
    if (threadIdx.x == 0) {
      const std::uint16_t offsets[] = {static_cast<std::uint16_t>(i % 3), static_cast<std::uint16_t>(i / 3)};
      barrier.arrive_expect(sizeof(column));
      load_im2col(column, parameter_map(image), {0, -1, -1, 0}, offsets, barrier);  // channel, W, H, image
    }
    __syncthreads();
    barrier.wait(i % 2);
    sum += column[threadIdx.x];
  }
  result[threadIdx.x] = sum;
}

float expected(std::int32_t i) {
  const std::int32_t x = i / channels % width, y = i / channels / width;
  float sum = 0;
  for (std::int32_t at = 0; at < pixels; ++at) {
    if (std::abs(at % width - x) > 1 || std::abs(at / width - y) > 1) continue;
    sum += static_cast<float>(at * channels + i % channels);
  }
  return sum;
}

}  // namespace im2col_sample

bool samples::im2col() {
  using namespace im2col_sample;
  const device_array<float> image(counting<float>(pixels * channels));
  const device_array<float> result(std::vector<float>(pixels * channels, -1));
  const std::uint64_t dims[] = {channels, width, height, 1};
  const auto tensor = tmap::packed_spec(tmap::element_type::f32, image.address(), dims, {});
  // The first of nine pixels is in [-1, dim - 1) along both axes.
  const auto map = tmap::encode(tmap::im2col_spec{tensor, {-1, -1}, {-1, -1}, channels, pixels});
  if (!map) return false;
  filter<<<1, pixels * channels>>>(*map, result.get());
  const auto found = result.read();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] != expected(static_cast<std::int32_t>(i))) return false;
  }
  return !found.empty();
}
