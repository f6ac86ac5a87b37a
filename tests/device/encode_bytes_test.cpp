// SPDX-License-Identifier: Apache-2.0
// Tests that the device encoder's maps equal the driver's, byte for byte.
#include <tmap/encode.hpp>
#include <tmap/encode_batch.hpp>

#include <map>
#include <tuple>

#include "device/gpu_fixture.hpp"
#include "support/random_patch.hpp"

namespace tmap::testing {
namespace {

/// Holds the modes that all maps of a batch share.
using modes = std::tuple<element_type, std::uint32_t, interleave, swizzle, l2_promotion, oob_fill>;

modes modes_of(const tensor_spec& spec) {
  return {spec.type, spec.rank, spec.interleave, spec.swizzle, spec.l2_promotion, spec.oob_fill};
}

/// Clears words 8 and 9, the driver's notes, and bits 18:17 of word 1, L2 promotion. A map made
/// from a zeroed template lacks them.
tensor_map without_what_zeroed_lacks(const tensor_map& whole) {
  tensor_map map = whole;
  map.words[8] = 0;
  map.words[9] = 0;
  map.words[1] &= ~(std::uint64_t{3} << 17);
  return map;
}

/// Clears word 8, the size of one box in bytes. tensormap.replace keeps the template's value there
/// when it changes the box.
tensor_map without_box_bytes(const tensor_map& whole) {
  tensor_map map = whole;
  map.words[8] = 0;
  return map;
}

tensor_map all_128_bytes(const tensor_map& map) {
  return map;
}

/// Holds specs sorted by their modes, the driver's map of each, and the end of each run of equal
/// modes.
struct encoded_specs {
  std::vector<tensor_spec> specs;
  std::vector<tensor_map> maps;
  std::vector<map_patch> patches;
  std::vector<std::uint64_t> run_ends;
};

void encode_by_driver(encoded_specs& all) {
  all.maps.resize(all.specs.size());
  all.patches.resize(all.specs.size());
  on_all_threads(all.specs.size(), [&](std::uint64_t begin, std::uint64_t end) {
    cudaFree(nullptr);  // gives this thread the primary context
    for (std::uint64_t i = begin; i < end; ++i) {
      const result<tensor_map> map = encode(all.specs[i]);
      if (map) all.maps[i] = *map;
      EXPECT_TRUE(map.has_value()) << to_string(map.error());
      all.patches[i] = patch_of(all.specs[i]);
    }
  });
}

encoded_specs random_specs(std::uint64_t count, std::uint64_t seed) {
  encoded_specs all;
  all.specs.resize(count);
  on_all_threads(count, [&](std::uint64_t begin, std::uint64_t end) {
    random_spec_source source(seed + begin);
    for (std::uint64_t i = begin; i < end; ++i) all.specs[i] = source.legal();
  });
  std::sort(all.specs.begin(), all.specs.end(),
            [](const tensor_spec& a, const tensor_spec& b) { return modes_of(a) < modes_of(b); });
  for (std::uint64_t i = 1; i <= count; ++i) {
    if (i == count || modes_of(all.specs[i]) != modes_of(all.specs[i - 1])) all.run_ends.push_back(i);
  }
  return all;
}

/// Gives all specs of a run the box and element strides of the first one, because they share a
/// template.
void share_boxes(encoded_specs& all) {
  std::uint64_t i = 0;
  for (const std::uint64_t end : all.run_ends) {
    const tensor_spec first = all.specs[i];
    for (; i < end; ++i) {
      std::copy(first.box_dim, first.box_dim + max_rank, all.specs[i].box_dim);
      std::copy(first.element_stride, first.element_stride + max_rank, all.specs[i].element_stride);
    }
  }
}

/// Encodes every run with its own template that changes all fields, and counts the maps that differ
/// from the driver's.
template <class MakeTemplate, class Normalise>
std::uint64_t count_mismatches(const encoded_specs& all, const MakeTemplate& make, const Normalise& normalise) {
  const device_array<map_patch> patches(all.patches);
  const device_array<tensor_map> slots(all.specs.size());
  std::uint64_t first = 0;
  for (const std::uint64_t end : all.run_ends) {
    const tensor_spec& spec = all.specs[first];
    const result<map_template> base = make(spec, patch_everything(spec.rank));
    EXPECT_TRUE(base.has_value()) << to_string(base.error());
    if (!base) return all.specs.size();
    const result<void> encoded =
        encode_batch(*base, patch_array{patches.data() + first}, slots.data() + first, end - first, {cudaStream_t{}});
    EXPECT_TRUE(encoded.has_value()) << to_string(encoded.error());
    first = end;
  }
  const std::vector<tensor_map> maps = slots.download();
  std::uint64_t mismatches = 0;
  for (std::uint64_t i = 0; i < maps.size(); ++i) mismatches += normalise(maps[i]) != normalise(all.maps[i]) ? 1 : 0;
  return mismatches;
}

using encode_bytes = gpu_test;

TEST_F(encode_bytes, random_specs_equal_the_driver) {
  constexpr std::uint64_t round = 1 << 20;
  const std::uint64_t wanted = scaled(11 * round);
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 1; compared < wanted; ++seed) {
    encoded_specs all = random_specs(std::min(round, wanted - compared), seed << 32);
    share_boxes(all);
    encode_by_driver(all);
    ASSERT_FALSE(HasFailure());
    ASSERT_EQ(count_mismatches(all, make_template, all_128_bytes), 0u);
    compared += all.specs.size();
  }
  RecordProperty("specs", std::to_string(compared));
}

TEST_F(encode_bytes, random_boxes_equal_the_driver_but_for_the_bytes_of_a_box) {
  encoded_specs all = random_specs(scaled(1 << 20), 33);
  encode_by_driver(all);
  ASSERT_FALSE(HasFailure());
  EXPECT_EQ(count_mismatches(all, make_template, without_box_bytes), 0u);
}

TEST_F(encode_bytes, zeroed_template_equals_the_driver_but_for_its_notes) {
  encoded_specs all = random_specs(scaled(1 << 20), 77);
  encode_by_driver(all);
  ASSERT_FALSE(HasFailure());
  EXPECT_EQ(count_mismatches(all, make_zeroed_template, without_what_zeroed_lacks), 0u);
}

/// Returns every legal combination of modes, on a spec whose other fields are ordinary.
encoded_specs every_mode() {
  encoded_specs all;
  for (std::uint32_t type = 0; type < hopper_element_type_count; ++type) {
    for (std::uint32_t mode = 0; mode < max_rank * 3 * 4 * 4 * 2; ++mode) {
      const std::uint64_t dims[] = {64, 3, 5, 2, 7};
      const std::uint32_t box[] = {16 / static_cast<std::uint32_t>(element_bytes(element_type{type})), 2, 3, 1, 2};
      const std::uint32_t rank = 1 + mode % max_rank;
      tensor_spec spec = packed_spec(element_type{type}, 1 << 20, {dims, rank}, {box, rank});
      spec.interleave = interleave{mode / max_rank % 3};
      spec.swizzle = swizzle{mode / max_rank / 3 % 4};
      spec.l2_promotion = l2_promotion{mode / max_rank / 3 / 4 % 4};
      spec.oob_fill = oob_fill{mode / max_rank / 3 / 4 / 4};
      if (!broken_rules(spec).empty()) continue;
      all.specs.push_back(spec);
      all.run_ends.push_back(all.specs.size());
    }
  }
  encode_by_driver(all);
  return all;
}

TEST_F(encode_bytes, every_combination_of_modes_equals_the_driver) {
  const encoded_specs all = every_mode();
  // There are 13 types x 5 ranks x 4 swizzles x 4 promotions, and more with interleaves and fills.
  ASSERT_GE(all.specs.size(), 13u * 5 * 4 * 4);
  ASSERT_FALSE(HasFailure());
  EXPECT_EQ(count_mismatches(all, make_template, all_128_bytes), 0u);
  EXPECT_EQ(count_mismatches(all, make_zeroed_template, without_what_zeroed_lacks), 0u);
}

TEST_F(encode_bytes, any_subset_of_the_fields_equals_the_driver) {
  random_spec_source source(5);
  encoded_specs all;
  for (std::uint64_t i = 0; i < scaled(20000); ++i) all.specs.push_back(source.legal());
  for (std::uint64_t i = 1; i <= all.specs.size(); ++i) all.run_ends.push_back(i);
  encode_by_driver(all);
  ASSERT_FALSE(HasFailure());
  const auto make = [&](const tensor_spec& spec, patch_fields every) {
    return make_template(spec, every & static_cast<patch_fields>(source.random().bits()));
  };
  EXPECT_EQ(count_mismatches(all, make, all_128_bytes), 0u);
}

// No copy could use this map, so only a trusted batch makes it.
TEST_F(encode_bytes, a_dim_of_2_to_the_32_is_all_ones) {
  const std::uint64_t dims[] = {64, 2};
  const std::uint32_t box[] = {16, 2};
  const tensor_spec spec = packed_spec(element_type::f32, 1 << 20, dims, box);
  const result<map_template> base = make_template(spec, patch_dim(1));
  TMAP_ASSERT_OK(base);
  map_patch patch{};
  patch.global_dim[1] = std::uint64_t{1} << 32;
  const device_array<map_patch> patches(std::vector<map_patch>{patch});
  const device_array<tensor_map> slots(1);
  TMAP_ASSERT_OK(encode_batch(*base, patch_array{patches.data()}, slots.data(), 1,
                              {.where = {cudaStream_t{}}, .choices = {.trusted = true}}));
  tensor_map expected = base->map;
  expected.words[4] |= 0xffffffff00000000;
  EXPECT_EQ(slots.download()[0], expected);
}

}  // namespace
}  // namespace tmap::testing
