// SPDX-License-Identifier: Apache-2.0
// Reproduces deepseek-ai/DeepGEMM #237 and #405: for some shapes a grouped kernel raised an illegal
// instruction, which ends the context. Also reproduces NVIDIA/cutlass #2547, a group with K = 0. A
// bad shape must become a status that names the rule.
#include <tmap/device/acquire.cuh>
#include <tmap/encode_batch.hpp>

#include <optional>

#include "defects/child_cases.hpp"
#include "defects/defect_fixture.hpp"
#include "defects/tagged_grid.hpp"
#include "defects/tagged_tile.cuh"

namespace tmap::testing {
namespace {

struct bad_shape {
  const char* name;
  void (*breaks)(map_patch& patch);
  std::optional<rule> broken;  ///< empty if the tensor is empty
  child_code unchecked;        ///< the error of the copy engine for the map that validation would have stopped
};

const bad_shape bad_shapes[] = {
    {"too_many_rows", [](map_patch& patch) { patch.global_dim[1] = (std::uint64_t{1} << 31) + 1; },
     rule::t36_global_dim_copied, illegal_instruction},
    {"negative_rows", [](map_patch& patch) { patch.global_dim[1] = static_cast<std::uint32_t>(-8); },
     rule::t36_global_dim_copied, illegal_instruction},
    {"address_off_by_8", [](map_patch& patch) { patch.global_address += 8; }, rule::t06_address_multiple_of_16,
     misaligned_address},
    {"no_k", [](map_patch& patch) { patch.global_dim[0] = 0; }, std::nullopt, illegal_instruction},
    {"no_rows", [](map_patch& patch) { patch.global_dim[1] = 0; }, std::nullopt, illegal_instruction},
};

/// Expects every element to be zero, as a safe empty map reads. Each warp loads one map.
__global__ void load_safe_maps(const tensor_map* maps, device_count* foreign) {
  __shared__ tagged_tile<grid_tile_elements> tile;
  tile_reader<grid_tile_elements> reader(tile);
  const std::int32_t at[] = {0, 0};
  reader.load_slot(&maps[blockIdx.x], at, true);
  const std::uint32_t count = reader.foreign([](std::uint32_t) { return 0u; });
  if (reader.lane() == 0 && count != 0) atomicAdd(foreign, count);
}

result<map_template> any_grid_template() {
  return make_template(grid_spec(1 << 20, 1), patch_extents(2));
}

/// Makes a legal tensor of eight rows of ones, then breaks it.
map_patch spoilt(const device_array<std::uint32_t>& buffer, const bad_shape& shape) {
  map_patch patch = grid_patch(buffer.address(), grid_box_height);
  shape.breaks(patch);
  return patch;
}

device_array<std::uint32_t> rows_of_ones() {
  return device_array<std::uint32_t>(grid_rows(std::vector<std::uint32_t>(2 * grid_box_height, 1)));
}

child_code code_of(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return fine;
    case cudaErrorIllegalInstruction: return illegal_instruction;
    case cudaErrorMisalignedAddress: return misaligned_address;
    default: return other;
  }
}

/// Encodes the shape without validation, and loads through its map.
child_code use_unchecked(const bad_shape& shape) {
  const device_array<std::uint32_t> buffer = rows_of_ones();
  const device_array<map_patch> patches(std::vector<map_patch>{spoilt(buffer, shape)});
  const device_array<tensor_map> maps(1);
  const device_array<device_count> foreign(std::vector<device_count>(1));
  const result<map_template> base = any_grid_template();
  if (!base || cudaDeviceSynchronize() != cudaSuccess) return other;
  const auto encoded = encode_batch(*base, patch_array{patches.data()}, maps.data(), 1,
                                    {.where = {cudaStream_t{}}, .choices = {.trusted = true}});
  if (!encoded || cudaDeviceSynchronize() != cudaSuccess) return other;
  load_safe_maps<<<1, 32>>>(maps.data(), foreign.data());
  return code_of(cudaDeviceSynchronize());
}

class bad_map : public defect_test {};

TEST_F(bad_map, deepgemm_237_405_a_status_and_not_a_broken_context) {
  const std::uint32_t count = std::size(bad_shapes);
  const device_array<std::uint32_t> buffer = rows_of_ones();
  std::vector<map_patch> patches;
  for (const bad_shape& each : bad_shapes) patches.push_back(spoilt(buffer, each));
  const device_array<map_patch> array(patches);
  const device_array<tensor_map> maps(count);
  const device_array<map_status> statuses(count);
  const device_array<device_count> foreign(std::vector<device_count>(1));
  const result<map_template> base = any_grid_template();
  TMAP_ASSERT_OK(base);
  TMAP_ASSERT_OK(encode_batch(*base, patch_array{array.data()}, maps.data(), count,
                              {.where = {cudaStream_t{}}, .statuses = statuses.data()}));
  load_safe_maps<<<count, 32>>>(maps.data(), foreign.data());
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  EXPECT_EQ(foreign.download()[0], 0u);
  const std::vector<map_status> found = statuses.download();
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::optional<rule> broken = bad_shapes[i].broken;
    EXPECT_TRUE(broken ? rules_of(found[i]).contains(*broken) : found[i].is_empty()) << bad_shapes[i].name;
  }
}

TEST(seeded_bad_map, deepgemm_237_405_cutlass_2547_unchecked_shapes_end_the_context) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
  for (const bad_shape& each : bad_shapes) EXPECT_EQ(run_in_child(each.name), each.unchecked) << each.name;
}

}  // namespace

int run_child_case(const std::string& name) {
  for (const bad_shape& each : bad_shapes) {
    if (name == each.name) return use_unchecked(each);
  }
  return other;
}

}  // namespace tmap::testing
