// SPDX-License-Identifier: Apache-2.0
// Reproduces flashinfer-ai/flashinfer #4616: unwritten bytes of a map were part of a cache key, so
// the cache missed at every launch until its arena was full. Maps of equal specs must be equal in
// all bytes, no matter what the slot held before.
#include <tmap/encode.hpp>
#include <tmap/encode_batch.hpp>

#include <cuda/ptx>

#include <set>

#include "defects/defect_fixture.hpp"
#include "defects/tagged_grid.hpp"

namespace tmap::testing::equal_bytes_cases {
namespace {

/// Seeds the fault: edits the slot in place and keeps all other bytes.
__global__ void edit_in_place(tensor_map* slots, std::uint32_t count, map_patch patch) {
  namespace ptx = cuda::ptx;
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  ptx::tensormap_replace_global_address(ptx::space_global, &slots[i], patch.global_address);
  ptx::tensormap_replace_rank(ptx::space_global, &slots[i], 1);
  ptx::tensormap_replace_global_dim(ptx::space_global, &slots[i], ptx::n32_t<0>{},
                                    static_cast<std::uint32_t>(patch.global_dim[0]));
}

/// Returns slots in which every byte is left over from another use.
std::vector<tensor_map> leftovers(std::uint32_t count) {
  std::vector<tensor_map> slots(count);
  std::uint64_t word = 1;
  for (tensor_map& slot : slots) {
    for (std::uint64_t& each : slot.words) each = word = word * 6364136223846793005u + 1442695040888963407u;
  }
  return slots;
}

std::uint64_t distinct(const std::vector<tensor_map>& maps) {
  std::set<std::vector<std::uint64_t>> keys;
  for (const tensor_map& each : maps) keys.insert(std::vector<std::uint64_t>(each.words, each.words + 16));
  return keys.size();
}

class equal_bytes : public defect_test {
 protected:
  /// Encodes maps of equal patches into slots with leftovers.
  static std::vector<tensor_map> encode_equal(const map_template& base, const map_patch& patch, std::uint32_t count) {
    const device_array<map_patch> patches(std::vector<map_patch>(count, patch));
    const device_array<tensor_map> slots(leftovers(count));
    EXPECT_TRUE(encode_batch(base, patch_array{patches.data()}, slots.data(), count, {cudaStream_t{}}).has_value());
    return slots.download();
  }
};

TEST_F(equal_bytes, flashinfer_4616_maps_of_equal_specs_are_equal_bytes) {
  constexpr std::uint64_t address = 1 << 20;
  const result<map_template> from_driver = make_template(grid_spec(address, 1), patch_extents(2));
  const result<map_template> zeroed = make_zeroed_template(grid_spec(address, 1), patch_extents(2));
  TMAP_ASSERT_OK(from_driver);
  TMAP_ASSERT_OK(zeroed);
  // The patches are good, bad and empty, and the counts select both ways of publishing.
  for (const std::uint64_t rows : {std::uint64_t{24}, std::uint64_t{1} << 40, std::uint64_t{0}}) {
    for (const std::uint32_t count : {64u, 5000u}) {
      EXPECT_EQ(distinct(encode_equal(*from_driver, grid_patch(address, rows), count)), 1u) << rows;
      EXPECT_EQ(distinct(encode_equal(*zeroed, grid_patch(address, rows), count)), 1u) << rows;
    }
  }
  const result<tensor_map> drivers = encode(grid_spec(address, 24));
  TMAP_ASSERT_OK(drivers);
  EXPECT_EQ(encode_equal(*from_driver, grid_patch(address, 24), 1)[0], *drivers);
}

TEST_F(equal_bytes, flashinfer_4616_seeded_edits_in_place_keep_leftovers) {
  constexpr std::uint32_t count = 64;
  const device_array<tensor_map> slots(leftovers(count));
  edit_in_place<<<1, count>>>(slots.data(), count, grid_patch(1 << 20, 24));
  TMAP_ASSERT_CUDA(cudaGetLastError());
  const std::uint64_t keys = distinct(slots.download());
  note("keys_when_seeded", keys);
  EXPECT_GT(keys, 1u);
}

}  // namespace
}  // namespace tmap::testing::equal_bytes_cases
