// SPDX-License-Identifier: Apache-2.0
// Reproduces cloudrift-ai/emmy #218 with a box from device memory. The status names the rule.
// Without checks, the map would hold another box than the requested one.
#include <tmap/decode.hpp>
#include <tmap/encode_batch.hpp>

#include "defects/defect_fixture.hpp"

namespace tmap::testing {
namespace {

class box_patch : public defect_test {
 protected:
  static map_patch with_box(std::uint32_t height) {
    map_patch patch{};
    patch.box_dim[1] = height;
    return patch;
  }
  static result<map_template> box_template() {
    const std::uint64_t dims[] = {16, 4096};
    const std::uint32_t box[] = {16, 8};
    return make_template(packed_spec(element_type::u8, 1 << 20, dims, box), patch_box(1));
  }
};

TEST_F(box_patch, emmy_218_a_box_beyond_256_is_refused_on_the_device) {
  const result<map_template> base = box_template();
  TMAP_ASSERT_OK(base);
  const std::vector<std::uint32_t> heights = {256, 257, 511, 4096};
  std::vector<map_patch> patches;
  for (const std::uint32_t each : heights) patches.push_back(with_box(each));
  const device_array<map_patch> array(patches);
  const device_array<tensor_map> maps(heights.size());
  const device_array<map_status> statuses(heights.size());
  TMAP_ASSERT_OK(encode_batch(*base, patch_array{array.data()}, maps.data(), heights.size(),
                              {.where = {cudaStream_t{}}, .statuses = statuses.data()}));
  const std::vector<map_status> found = statuses.download();
  EXPECT_TRUE(found[0].is_good());
  for (std::size_t i = 1; i < heights.size(); ++i) {
    EXPECT_TRUE(rules_of(found[i]).contains(rule::t17_box_dim_range)) << heights[i];
  }
  TMAP_ASSERT_OK(encode_batch(*base, patch_array{array.data()}, maps.data(), heights.size(),
                              {.where = {cudaStream_t{}}, .choices = {.trusted = true}}));
  const std::vector<tensor_map> unchecked = maps.download();
  for (std::size_t i = 1; i < heights.size(); ++i) {
    const result<decoded_map> decoded = decode(unchecked[i]);
    EXPECT_TRUE(!decoded || decoded->spec.box_dim[1] != heights[i]) << "the seeded fault was not seen";
  }
}

}  // namespace
}  // namespace tmap::testing
