// SPDX-License-Identifier: Apache-2.0
// Encodes a ragged batch through a service: the example of README.md. One buffer holds the rows of
// several groups back to back, and only the GPU knows where each group ends. The kernel loads the
// first tile of each group. Rows past the group's end arrive as zeros.

#include <tmap/device/tile.cuh>
#include <tmap/map_service.hpp>

#include <cstdio>
#include <vector>

namespace {

constexpr std::uint32_t columns = 16, box_rows = 8;
using group_tile = tmap::tile<float, tmap::swizzle::none, columns, box_rows>;

__device__ float sum_of(const group_tile& tile) {
  float sum = 0;
  for (std::uint32_t i = 0; i < group_tile::elements; ++i) sum += tile[i];
  return sum;
}

// [readme]
__global__ void sum_first_tile(tmap::typed_maps<group_tile> groups, float* sums) {
  using namespace tmap::device;
  __shared__ group_tile tile;  // 8 rows of 16 floats
  __shared__ tile_barrier barrier;
  barrier.init(1);
  fence_barrier_init();
  expect_and_load(tile, acquire(groups, blockIdx.x), {0, 0}, barrier);
  barrier.wait(0);
  sums[blockIdx.x] = sum_of(tile);
}

tmap::result<void> sum_groups(tmap::map_service& service, const tmap::map_template& base,
                              const tmap::ragged_rows& groups, int count, float* sums) {
  auto batch = service.encode(base, groups, count, {tmap::on_stream{}});
  if (!batch) return tmap::failure(batch.error());
  const auto maps = batch->as<group_tile>();  // fails if the maps move another tile
  if (!maps) return tmap::failure(maps.error());
  sum_first_tile<<<count, 1>>>(*maps, sums);
  return batch->release();  // the maps' memory is reused after the kernel has run
}
// [readme]

/// Returns the fields that all groups share. Address and number of rows differ.
tmap::result<tmap::map_template> template_of_groups() {
  tmap::tensor_spec spec = group_tile::spec();
  spec.global_dim[0] = columns;
  spec.global_stride_bytes[0] = columns * sizeof(float);
  return tmap::make_template(spec, tmap::patch_address | tmap::patch_dim(1));
}

tmap::ragged_rows groups_of(const float* rows, const std::int32_t* ends_on_the_gpu) {
  tmap::ragged_rows groups{};
  groups.base_address = rows;
  groups.row_pitch_bytes = columns * sizeof(float);
  groups.offsets = {ends_on_the_gpu, tmap::offset_format::ends};
  return groups;
}

/// Compares the sums of the first tiles. All elements are 1.
bool are_right(const std::vector<float>& sums, const std::vector<std::int32_t>& ends) {
  bool right = true;
  std::int32_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); begin = ends[i++]) {
    const auto rows = static_cast<std::uint32_t>(ends[i] - begin);
    const float expected = static_cast<float>((rows < box_rows ? rows : box_rows) * columns);
    std::printf("group %zu: %u rows, sum of its first tile %g, expected %g\n", i, rows, sums[i], expected);
    right = right && sums[i] == expected;
  }
  return right;
}

}  // namespace

int main() {
  const std::vector<std::int32_t> ends{5, 5, 25, 33};
  const std::vector<float> ones(33 * columns, 1.0f);
  float* rows = nullptr;
  std::int32_t* ends_on_the_gpu = nullptr;
  float* sums = nullptr;
  if (cudaMalloc(&rows, ones.size() * sizeof(float)) != cudaSuccess) {
    std::fputs("ragged_batch: needs a Hopper GPU\n", stderr);
    return 1;
  }
  cudaMalloc(&ends_on_the_gpu, ends.size() * sizeof(std::int32_t));
  cudaMalloc(&sums, ends.size() * sizeof(float));
  cudaMemcpy(rows, ones.data(), ones.size() * sizeof(float), cudaMemcpyDefault);
  cudaMemcpy(ends_on_the_gpu, ends.data(), ends.size() * sizeof(std::int32_t), cudaMemcpyDefault);

  auto service = tmap::map_service::create();
  if (!service) {
    std::printf("ragged_batch: %s\n", to_string(service.error()).c_str());
    return 1;
  }
  const auto base = template_of_groups();
  if (!base) {
    std::printf("ragged_batch: %s\n", to_string(base.error()).c_str());
    return 1;
  }
  const auto groups = groups_of(rows, ends_on_the_gpu);
  const auto enqueued = sum_groups(*service, *base, groups, static_cast<int>(ends.size()), sums);
  if (!enqueued) {
    std::printf("ragged_batch: %s\n", to_string(enqueued.error()).c_str());
    return 1;
  }
  std::vector<float> found(ends.size(), -1.0f);
  if (cudaMemcpy(found.data(), sums, found.size() * sizeof(float), cudaMemcpyDefault) != cudaSuccess) {
    std::puts("ragged_batch: the kernel failed");
    return 1;
  }
  const bool right = are_right(found, ends);
  for (void* memory : {static_cast<void*>(rows), static_cast<void*>(ends_on_the_gpu), static_cast<void*>(sums)}) {
    cudaFree(memory);
  }
  return right ? 0 : 1;
}
