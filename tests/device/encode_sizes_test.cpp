// SPDX-License-Identifier: Apache-2.0
// Tests that batches of every size, on every publish path, write only their own slots.
#include <tmap/encode_batch.hpp>

#include "device/gpu_fixture.hpp"
#include "kernels/launch.hpp"

namespace tmap::testing {
namespace {

using kernels::encode_plan;

constexpr std::uint64_t guard = 33;  // slots before and after the batch
constexpr std::uint64_t arena_address = 1 << 20;

map_template sized_template() {
  const std::uint64_t dims[] = {64, 5};
  const std::uint32_t box[] = {16, 4};
  const result<map_template> base =
      make_template(packed_spec(element_type::f32, arena_address, dims, box), patch_extents(2));
  EXPECT_TRUE(base.has_value()) << to_string(base.error());
  return base ? *base : map_template{};
}

std::vector<map_patch> distinct_patches(std::uint64_t count) {
  std::vector<map_patch> patches(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    patches[i].global_address = arena_address + 16 * i;
    patches[i].global_dim[0] = 1 + i % 1000;
    patches[i].global_dim[1] = 1 + i / 1000;
    patches[i].global_stride_bytes[0] = 4096 + 16 * (i % 777);
  }
  return patches;
}

/// Returns the template's words with these four fields in place. encode_bytes_test checks the
/// positions against the driver.
tensor_map expected_map(const map_template& base, const map_patch& patch) {
  tensor_map map = base.map;
  map.words[0] = patch.global_address;
  map.words[1] = (map.words[1] & 0xffffffff) | patch.global_stride_bytes[0] >> 4 << 32;
  map.words[4] = (patch.global_dim[0] - 1) | (patch.global_dim[1] - 1) << 32;
  return map;
}

void expect_slots(const std::vector<tensor_map>& slots, const map_template& base,
                  const std::vector<map_patch>& patches) {
  ASSERT_EQ(slots.size(), patches.size() + 2 * guard);
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < patches.size(); ++i) {
    wrong += slots[guard + i] != expected_map(base, patches[i]) ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0u) << "of " << patches.size();
  for (std::uint64_t i = 0; i < guard; ++i) {
    EXPECT_TRUE(is_poison(slots[i])) << i - guard;
    EXPECT_TRUE(is_poison(slots[guard + patches.size() + i])) << patches.size() + i;
  }
}

constexpr std::uint64_t small_counts[] = {1,   2,   31,  32,  33,  63,   64,   65,   127,
                                          128, 129, 255, 256, 257, 4095, 4097, 65537};

using encode_sizes = gpu_test;

TEST_F(encode_sizes, no_maps_touch_nothing) {
  const device_array<tensor_map> slots(2 * guard);
  TMAP_ASSERT_OK(encode_batch(sized_template(), patch_array{nullptr}, slots.data() + guard, 0, {cudaStream_t{}}));
  expect_slots(slots.download(), map_template{}, {});
}

/// Runs one batch as the library plans it, with canaries around its slots.
void expect_encoded(std::uint64_t count) {
  const map_template base = sized_template();
  const std::vector<map_patch> patches = distinct_patches(count);
  const device_array<map_patch> source(patches);
  const device_array<tensor_map> slots(count + 2 * guard);
  TMAP_ASSERT_OK(encode_batch(base, patch_array{source.data()}, slots.data() + guard, count, {cudaStream_t{}}));
  expect_slots(slots.download(), base, patches);
}

TEST_F(encode_sizes, chosen_plan) {
  for (const std::uint64_t count : small_counts) expect_encoded(count);
}

TEST_F(encode_sizes, every_plan_writes_the_same_bytes_judged_or_trusted_and_however_published) {
  const map_template base = sized_template();
  for (const std::uint64_t count : small_counts) {
    const std::vector<map_patch> patches = distinct_patches(count);
    const device_array<map_patch> source(patches);
    for (const bool trusted : {false, true}) {
      for (const std::uint32_t maps_per_warp : {1u, 3u, 16u, 32u}) {
        for (const publish how : {publish::stores, publish::copy_fence}) {
          const device_array<tensor_map> slots(count + 2 * guard);
          TMAP_ASSERT_CUDA(kernels::launch_encode({maps_per_warp, how}, base, patch_array{source.data()}, nullptr,
                                                  slots.data() + guard, count, nullptr, {.trusted = trusted}, {}));
          expect_slots(slots.download(), base, patches);
        }
      }
    }
  }
}

TEST_F(encode_sizes, one_million_maps) {
  expect_encoded(scaled(1 << 20));
}

TEST_F(encode_sizes, most_maps_of_one_batch) {
  expect_encoded(scaled(max_batch));
}

TEST(encode_plan_test, composes_1_to_32_maps_in_a_warp) {
  for (const std::uint32_t multiprocessors : {1u, 78u, 132u}) {
    for (const std::uint64_t count : {1ull, 31ull, 33ull, 255ull, 65537ull, 1ull << 20, 1ull << 24}) {
      const encode_plan plan = kernels::plan_encode(count, multiprocessors);
      EXPECT_GE(plan.maps_per_warp, 1u);
      EXPECT_LE(plan.maps_per_warp, 32u);
    }
  }
}

}  // namespace
}  // namespace tmap::testing
