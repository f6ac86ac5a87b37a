// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads batches of a service in a kernel and compares them with the driver's maps.

#include <tmap/encode.hpp>
#include <tmap/map_service.hpp>
#include <tmap/patch_rules.hpp>

#include <vector>

#include "device/gpu_fixture.hpp"
#include "device/own_stream.hpp"
#include "service/rows_spec.hpp"

namespace tmap::testing {

/// Holds the maps that a kernel on a batch's stream reads through its ref.
struct seen_maps {
  std::vector<tensor_map> maps;
  std::vector<map_status> statuses;
  std::vector<const tensor_map*> slots;
};

template <class Unused = void>
__global__ void read_maps(map_batch_ref ref, tensor_map* maps, map_status* statuses, const tensor_map** slots) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= ref.count) return;
  maps[i] = *ref.slot(i);
  statuses[i] = ref.status(i);
  slots[i] = ref.slot(i);
}

inline seen_maps read(const map_batch& batch, cudaStream_t stream) {
  const device_array<tensor_map> maps(batch.size());
  const device_array<map_status> statuses(batch.size());
  const device_array<const tensor_map*> slots(batch.size());
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  read_maps<><<<(batch.size() + 127) / 128, 128, 0, stream>>>(batch.ref(), maps.data(), statuses.data(), slots.data());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  return {maps.download(), statuses.download(), slots.download()};
}

/// Returns patches of `rows_spec`, each at a different address that no copy uses.
inline std::vector<map_patch> rows_patches(std::uint64_t count) {
  std::vector<map_patch> patches(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    patches[i].global_address = (std::uint64_t{1} << 32) + i * 65536;
    patches[i].global_dim[0] = 64;
    patches[i].global_dim[1] = 1 + i % 100;
    patches[i].global_stride_bytes[0] = 256;
  }
  return patches;
}

/// Counts the maps that differ from the driver's or whose status is not good.
inline std::uint64_t count_wrong(const seen_maps& seen, const map_template& base,
                                 const std::vector<map_patch>& patches) {
  if (seen.maps.size() != patches.size()) return ~std::uint64_t{0};
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < patches.size(); ++i) {
    const result<tensor_map> expected = encode(patched_spec(base, patches[i]));
    EXPECT_TRUE(expected.has_value());
    wrong += !expected || seen.maps[i] != *expected || !seen.statuses[i].is_good() ? 1 : 0;
  }
  return wrong;
}

class service_device : public gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    const result<map_template> made = make_template(rows_spec(), patch_extents(2));
    ASSERT_TRUE(made.has_value()) << to_string(made.error());
    base = *made;
  }

  static map_service make(std::uint64_t capacity) {
    result<map_service> made = map_service::create({.capacity = capacity});
    EXPECT_TRUE(made.has_value()) << to_string(made.error());
    return std::move(made.value());
  }

  map_template base;
};

}  // namespace tmap::testing
