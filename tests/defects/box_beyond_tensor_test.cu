// SPDX-License-Identifier: Apache-2.0
// Reproduces triton-lang/triton #7785 and pytorch/helion #2555, which disabled tensor maps for
// empty tensors and for boxes larger than their tensor. Both work: elements outside the tensor read
// as fill.
#include <tmap/device/acquire.cuh>
#include <tmap/encode.hpp>
#include <tmap/encode_batch.hpp>

#include "defects/defect_fixture.hpp"
#include "defects/tagged_tile.cuh"

namespace tmap::testing::box_beyond_tensor_cases {
namespace {

constexpr std::uint32_t box_width = 32;
constexpr std::uint32_t box_height = 8;
constexpr std::uint32_t room_width = 40;  // elements of each tensor's room; the rest of it holds a stranger's tag
constexpr std::uint32_t room_height = 10;
constexpr std::uint32_t room_elements = room_width * room_height;
constexpr tag stranger = 0xbad;

struct extent {
  std::uint32_t width;
  std::uint32_t height;
};

/// Loads the box at each tensor's corner. Each warp takes one tensor.
__global__ void load_corners(const tensor_map* maps, const extent* extents, device_count* foreign) {
  __shared__ tagged_tile<box_width * box_height> tile;
  tile_reader<box_width * box_height> reader(tile);
  const extent mine = extents[blockIdx.x];
  const std::int32_t at[] = {0, 0};
  reader.load_slot(&maps[blockIdx.x], at, true);
  const std::uint32_t count = reader.foreign(
      [&](std::uint32_t e) { return e % box_width < mine.width && e / box_width < mine.height ? blockIdx.x + 1 : 0; });
  if (reader.lane() == 0 && count != 0) atomicAdd(foreign, count);
}

/// Returns every extent from zero to more than the box.
std::vector<extent> all_extents() {
  std::vector<extent> made;
  for (std::uint32_t height = 0; height <= room_height; ++height) {
    for (std::uint32_t width = 0; width <= room_width; ++width) made.push_back({width, height});
  }
  return made;
}

std::vector<tag> contents(const std::vector<extent>& extents) {
  std::vector<tag> tags(extents.size() * room_elements, stranger);
  for (std::uint32_t i = 0; i < extents.size(); ++i) {
    for (std::uint32_t e = 0; e < room_elements; ++e) {
      const bool inside = e % room_width < extents[i].width && e / room_width < extents[i].height;
      if (inside) tags[i * room_elements + e] = i + 1;
    }
  }
  return tags;
}

tensor_spec spec_of(std::uint64_t address, const extent& size) {
  const std::uint64_t dims[] = {room_width, room_height};
  const std::uint32_t box[] = {box_width, box_height};
  tensor_spec spec = packed_spec(element_type::u32, address, dims, box);
  spec.global_dim[0] = size.width;
  spec.global_dim[1] = size.height;
  return spec;
}

class box_beyond_tensor : public defect_test {
 protected:
  struct outcome {
    std::uint64_t foreign;
    std::vector<tensor_map> maps;
    std::vector<map_status> statuses;
  };

  /// Encodes maps of the extents `asked` and loads through each of them.
  outcome run(const std::vector<extent>& asked) const {
    const device_array<map_patch> patches(patches_of(asked));
    const device_array<extent> truth(extents_);
    const device_array<tensor_map> maps(asked.size());
    const device_array<map_status> statuses(asked.size());
    const device_array<device_count> foreign(std::vector<device_count>(1));
    const result<map_template> base =
        make_template(spec_of(1 << 20, {1, 1}), patch_address | patch_dim(0) | patch_dim(1));
    EXPECT_TRUE(base.has_value());
    if (!base) return {};
    EXPECT_TRUE(encode_batch(*base, patch_array{patches.data()}, maps.data(), asked.size(),
                             {.where = {cudaStream_t{}}, .statuses = statuses.data()})
                    .has_value());
    load_corners<<<static_cast<std::uint32_t>(asked.size()), 32>>>(maps.data(), truth.data(), foreign.data());
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    return {foreign.download()[0], maps.download(), statuses.download()};
  }

  std::vector<map_patch> patches_of(const std::vector<extent>& asked) const {
    std::vector<map_patch> made(asked.size());
    for (std::uint32_t i = 0; i < asked.size(); ++i) {
      made[i].global_address = address_of(i);
      made[i].global_dim[0] = asked[i].width;
      made[i].global_dim[1] = asked[i].height;
    }
    return made;
  }
  std::uint64_t address_of(std::uint32_t i) const { return memory_->address() + i * room_elements * sizeof(tag); }

  const std::vector<extent> extents_ = all_extents();
  std::unique_ptr<device_array<tag>> memory_;
};

TEST_F(box_beyond_tensor, triton_7785_helion_2555_empty_tensors_and_boxes_beyond_them) {
  memory_ = std::make_unique<device_array<tag>>(contents(extents_));
  const outcome real = run(extents_);
  std::uint64_t wrong = 0;
  for (std::uint32_t i = 0; i < extents_.size(); ++i) {
    const bool is_empty = extents_[i].width == 0 || extents_[i].height == 0;
    ASSERT_EQ(real.statuses[i].bits, is_empty ? map_status::empty_bit : 0) << i;
    if (!is_empty) wrong += real.maps[i] == encode(spec_of(address_of(i), extents_[i])).value() ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0u) << "maps that are not the driver's";
  // The workaround rounds extents up to the box.
  std::vector<extent> rounded = extents_;
  for (extent& each : rounded) each = {std::max(each.width, box_width), std::max(each.height, box_height)};
  expect_foreign_only_when_seeded(real.foreign, run(rounded).foreign);
}

}  // namespace
}  // namespace tmap::testing::box_beyond_tensor_cases
