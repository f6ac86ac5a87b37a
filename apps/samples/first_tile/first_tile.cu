// SPDX-License-Identifier: Apache-2.0
// Loads a tile through maps in the program's own memory. Two matrices have different sizes, which
// only the GPU needs to know. The kernel loads the tile at row 4, column 8 of each. Elements
// outside a matrix arrive as zeros.

#include <tmap/device/tile.cuh>
#include <tmap/encode_batch.hpp>
#include <tmap/make_template.hpp>
#include <tmap/make_typed_maps.hpp>

#include <cstdio>
#include <vector>

namespace {

using tile_8x8 = tmap::tile<float, tmap::swizzle::none, 8, 8>;

__global__ void sum_tile(tmap::typed_maps<tile_8x8> maps, float* sums) {
  using namespace tmap::device;
  __shared__ tile_8x8 tile;
  __shared__ tile_barrier barrier;
  if (threadIdx.x != 0) return;

  barrier.init(1);
  fence_barrier_init();
  const auto map = acquire(maps, blockIdx.x);
  expect_and_load(tile, map, {8, 4}, barrier);  // column 8, row 4: innermost first
  barrier.wait(0);

  float sum = 0;
  for (std::uint32_t i = 0; i < tile_8x8::elements; ++i) sum += tile[i];
  sums[blockIdx.x] = sum;
}

// [encode]
tmap::result<void> sum_tiles(const tmap::map_patch* shapes_on_the_gpu, int count, tmap::tensor_map* slots, float* sums,
                             cudaStream_t stream) {
  const auto base = tmap::make_template(tile_8x8::spec(), tmap::patch_extents(tile_8x8::rank));
  if (!base) return tmap::failure(base.error());
  const auto maps = tmap::typed_maps_of<tile_8x8>(*base, slots, count);
  if (!maps) return tmap::failure(maps.error());
  const auto encoded = tmap::encode_batch(*base, tmap::patch_array{shapes_on_the_gpu}, slots, count, {stream});
  if (encoded) sum_tile<<<count, 32, 0, stream>>>(*maps, sums);
  return encoded;
}
// [encode]

// [patch]
tmap::map_patch matrix(const float* data, std::uint64_t rows, std::uint64_t columns, std::uint64_t pitch_bytes) {
  tmap::map_patch patch{};
  patch.global_address = data;
  patch.global_dim[0] = columns;
  patch.global_dim[1] = rows;
  patch.global_stride_bytes[0] = pitch_bytes;
  return patch;
}
// [patch]

}  // namespace

int main() {
  constexpr std::uint64_t pitch = 16, rows = 12;
  float* data = nullptr;
  tmap::map_patch* shapes = nullptr;
  tmap::tensor_map* slots = nullptr;
  float* sums = nullptr;
  if (cudaMalloc(&data, rows * pitch * sizeof(float)) != cudaSuccess) {
    std::fputs("first_tile: needs a Hopper GPU\n", stderr);
    return 1;
  }
  cudaMalloc(&shapes, 2 * sizeof(tmap::map_patch));
  cudaMalloc(&slots, 2 * sizeof(tmap::tensor_map));
  cudaMalloc(&sums, 2 * sizeof(float));

  const std::vector<float> ones(rows * pitch, 1.0f);
  const tmap::map_patch on_the_host[] = {
      matrix(data, 12, 16, pitch * sizeof(float)),  // holds the whole tile
      matrix(data, 6, 11, pitch * sizeof(float)),   // 2 rows and 3 columns of it are inside
  };
  cudaMemcpy(data, ones.data(), ones.size() * sizeof(float), cudaMemcpyDefault);
  cudaMemcpy(shapes, on_the_host, sizeof(on_the_host), cudaMemcpyDefault);

  const auto enqueued = sum_tiles(shapes, 2, slots, sums, nullptr);
  if (!enqueued) {
    std::printf("first_tile: %s\n", to_string(enqueued.error()).c_str());
    return 1;
  }
  float found[2] = {};
  if (cudaMemcpy(found, sums, sizeof(found), cudaMemcpyDefault) != cudaSuccess) {
    std::puts("first_tile: the kernel failed");
    return 1;
  }
  std::printf("sums of the two tiles: %g and %g\n", found[0], found[1]);
  for (void* memory :
       {static_cast<void*>(data), static_cast<void*>(shapes), static_cast<void*>(slots), static_cast<void*>(sums)}) {
    cudaFree(memory);
  }
  return found[0] == 64 && found[1] == 6 ? 0 : 1;
}
