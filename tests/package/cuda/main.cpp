// SPDX-License-Identifier: Apache-2.0
// Encodes three groups of rows of ones. The sum of a group's first tile is the number of its rows
// in that tile. Without a GPU the library returns the reason, and the program exits with 77.
#include "kernel.hpp"

#include <tmap/map_service.hpp>

#include <cstdio>

namespace {

constexpr int groups = 3, skipped = 77;
constexpr std::int32_t ends[groups] = {5, 5, 25};
constexpr float expected[groups] = {5 * columns, 0, box_rows* columns};

struct device_data {
  float* rows{};
  std::int32_t* ends{};
  float* sums{};
};

template <class T, std::size_t count>
bool put_on_the_gpu(const T (&values)[count], T*& there) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, sizeof(values)) != cudaSuccess) return false;
  there = static_cast<T*>(memory);
  return cudaMemcpy(memory, values, sizeof(values), cudaMemcpyDefault) == cudaSuccess;
}

// [enqueue]
tmap::result<void> enqueue(tmap::map_service& service, const device_data& data) {
  tmap::tensor_spec spec = group_tile::spec();
  spec.global_dim[0] = columns;
  spec.global_stride_bytes[0] = columns * sizeof(float);
  const auto base = tmap::make_template(spec, tmap::patch_address | tmap::patch_dim(1));
  if (!base) return tmap::failure(base.error());

  tmap::ragged_rows source{};
  source.base_address = reinterpret_cast<std::uint64_t>(data.rows);
  source.row_pitch_bytes = columns * sizeof(float);
  source.offsets = {data.ends, tmap::offset_format::ends};
  const cudaStream_t stream = nullptr;
  auto batch = service.encode(*base, source, groups, {stream});
  if (!batch) return tmap::failure(batch.error());
  const auto maps = batch->as<group_tile>();
  if (!maps) return tmap::failure(maps.error());
  if (sum_first_tiles(*maps, data.sums, stream) != cudaSuccess) {
    return tmap::failure(tmap::error{tmap::status::cuda_failure});
  }
  return batch->release();
}
// [enqueue]

bool sums_are_right(tmap::map_service& service) {
  float ones[25 * columns];
  for (float& one : ones) one = 1;
  float found[groups] = {-1, -1, -1};
  device_data data;
  if (!put_on_the_gpu(ones, data.rows) || !put_on_the_gpu(ends, data.ends) || !put_on_the_gpu(found, data.sums)) {
    return false;
  }
  const auto enqueued = enqueue(service, data);
  if (!enqueued) std::printf("%s\n", to_string(enqueued.error()).c_str());
  if (!enqueued || cudaMemcpy(found, data.sums, sizeof(found), cudaMemcpyDefault) != cudaSuccess) return false;

  bool right = true;
  for (int i = 0; i < groups; ++i) {
    std::printf("group %d: %g, expected %g\n", i, found[i], expected[i]);
    right = right && found[i] == expected[i];
  }
  for (void* memory : {static_cast<void*>(data.rows), static_cast<void*>(data.ends), static_cast<void*>(data.sums)}) {
    cudaFree(memory);
  }
  return right;
}

}  // namespace

// [main]
int main() {
  auto service = tmap::map_service::create();
  if (!service) {
    const tmap::status code = service.error().code;
    std::printf("%s\n", to_string(service.error()).c_str());
    return code == tmap::status::no_driver || code == tmap::status::no_device ? skipped : 1;
  }
  return sums_are_right(*service) ? 0 : 1;
}
// [main]
