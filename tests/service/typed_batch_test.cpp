// SPDX-License-Identifier: Apache-2.0
// Tests the tile type that a batch reports for its maps.
#include <tmap/tile.hpp>

#include <string>

#include "service/service_fixture.hpp"

namespace tmap::testing {
namespace {

using rows_tile = tile<float, swizzle::bytes_128, 32, 8>;  // as `rows_spec`
using higher_tile = tile<float, swizzle::bytes_128, 32, 16>;

class typed_batch : public service_fixture {
 protected:
  template <class Tile>
  static std::string fault_of(const map_batch& batch) {
    const result<typed_maps<Tile>> maps = batch.as<Tile>();
    if (maps) return "";
    EXPECT_EQ(maps.error().code, status::invalid_argument);
    return maps.error().argument.c_str();
  }

  static map_template higher_template(patch_fields more = {}) {
    tensor_spec spec = rows_spec();
    spec.box_dim[1] = 16;
    return codec_template(spec, patch_extents(2) | more).value();
  }

  result<map_batch> update(map_service& service, const map_batch& batch, const map_template& from) const {
    return service.update(batch, {which_, 1}, from, tensors_.source(), {stream_of(nullptr)});
  }

  const tensor_list tensors_{8};
  const std::uint32_t which_[1]{3};
};

TEST_F(typed_batch, has_the_slots_of_the_batch) {
  map_service service = make();
  const map_batch batch = encode(service, tensors_, nullptr).value();
  const auto maps = batch.as<rows_tile>();
  ASSERT_TRUE(maps.has_value());
  EXPECT_EQ(maps->count(), 8u);
  EXPECT_EQ(maps->ref().slots, batch.ref().slots);
  EXPECT_EQ(maps->ref().generation, batch.ref().generation);
}

TEST_F(typed_batch, names_what_differs_from_the_tile) {
  map_service service = make();
  const map_batch batch = encode(service, tensors_, nullptr).value();
  EXPECT_EQ((fault_of<tile<std::int32_t, swizzle::bytes_128, 32, 8>>(batch)), "element type of the maps");
  EXPECT_EQ((fault_of<tile<float, swizzle::bytes_128, 32, 8, 1>>(batch)), "rank of the maps");
  EXPECT_EQ((fault_of<tile<float, swizzle::bytes_128, 16, 8>>(batch)), "box_dim[0] of the maps");
  EXPECT_EQ(fault_of<higher_tile>(batch), "box_dim[1] of the maps");
  EXPECT_EQ((fault_of<tile<float, swizzle::none, 32, 8>>(batch)), "swizzle of the maps");
}

TEST_F(typed_batch, says_in_words_what_was_found) {
  map_service service = make();
  const map_batch batch = encode(service, tensors_, nullptr).value();
  const auto maps = batch.as<higher_tile>();
  ASSERT_FALSE(maps.has_value());
  EXPECT_EQ(maps.error().axis, 1);
  EXPECT_EQ(to_string(maps.error()), "`box_dim[1] of the maps` is 8; the tile has 16");
}

TEST_F(typed_batch, has_no_tile_where_maps_have_boxes_of_their_own) {
  map_service service = make();
  base = higher_template(patch_box(1));
  tensor_list tensors{2};
  for (map_patch& patch : tensors.patches) patch.box_dim[1] = 16;
  const map_batch batch = encode(service, tensors, nullptr).value();
  EXPECT_EQ(fault_of<higher_tile>(batch), "box_dim[1] of the maps");
}

TEST_F(typed_batch, keeps_its_tile_when_it_moves) {
  map_service service = make();
  map_batch batch = encode(service, tensors_, nullptr).value();
  map_batch other = std::move(batch);
  EXPECT_EQ(fault_of<rows_tile>(other), "");
  EXPECT_EQ(fault_of<rows_tile>(batch), "template of the maps") << "it is empty";
  batch = std::move(other);
  EXPECT_EQ(fault_of<rows_tile>(batch), "");
  ASSERT_TRUE(batch.release().has_value());
  EXPECT_EQ(fault_of<rows_tile>(batch), "template of the maps");
}

TEST_F(typed_batch, keeps_its_tile_through_updates_from_the_same_template) {
  map_service service = make();
  const map_batch batch = encode(service, tensors_, nullptr).value();
  const map_batch updated = update(service, batch, base).value();
  EXPECT_EQ(fault_of<rows_tile>(updated), "");
  EXPECT_EQ(fault_of<higher_tile>(updated), "box_dim[1] of the maps");
}

TEST_F(typed_batch, has_no_tile_after_an_update_from_another_template) {
  map_service service = make();
  for (const std::uint64_t count : {8, 1}) {  // shared, and all moved
    const map_batch batch = encode(service, tensor_list{count}, nullptr).value();
    const map_batch updated = update(service, batch, higher_template()).value();
    EXPECT_EQ(fault_of<rows_tile>(updated), "template of the maps");
    EXPECT_EQ(fault_of<higher_tile>(updated), "template of the maps");
    const map_batch again = update(service, updated, higher_template()).value();
    EXPECT_EQ(fault_of<higher_tile>(again), "template of the maps");
  }
}

TEST_F(typed_batch, is_not_known_of_a_reserved_one) {
  map_service service = make();
  const map_batch batch = service.reserve(4, stream_of(nullptr)).value();
  EXPECT_EQ(fault_of<rows_tile>(batch), "template of the maps");
}

}  // namespace
}  // namespace tmap::testing
