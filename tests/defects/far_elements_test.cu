// SPDX-License-Identifier: Apache-2.0
// Reproduces flashinfer-ai/flashinfer #3391 and others: offsets of more than 2^31 elements were
// computed in 32 bits. The test reaches the far end of a tensor of 6 GiB by coordinates and by
// addresses of ragged rows.
#include <tmap/device/acquire.cuh>
#include <tmap/encode_batch.hpp>

#include <memory>

#include "defects/defect_fixture.hpp"
#include "defects/tagged_tile.cuh"

namespace tmap::testing::far_elements_cases {
namespace {

constexpr std::uint64_t width = 65536;  // elements of two bytes
constexpr std::uint64_t rows = 49152;
constexpr std::uint64_t pitch = width * 2;
static_assert(width * rows > std::uint64_t{1} << 31 && pitch * rows > std::uint64_t{1} << 32);

constexpr std::uint32_t box_width = 64;
constexpr std::uint32_t box_height = 8;
constexpr std::uint32_t tile_words = box_width * box_height / 2;
constexpr std::uint64_t far_row = rows - box_height;
constexpr std::uint64_t far_column = width - box_width;
constexpr std::uint64_t wrapped_offset = static_cast<std::uint32_t>(far_row * pitch);

constexpr unsigned char far_byte = 0x3c;
constexpr unsigned char wrapped_byte = 0x77;

/// Counts the foreign words of one tile. Launched with one warp.
__global__ void load_one_tile(const tensor_map* slot, std::int32_t column, std::int32_t row, device_count* foreign) {
  __shared__ tagged_tile<tile_words> tile;
  tile_reader<tile_words> reader(tile);
  const std::int32_t at[] = {column, row};
  reader.load_slot(slot, at, true);
  const std::uint32_t count = reader.foreign([](std::uint32_t) { return 0x01010101u * far_byte; });
  if (reader.lane() == 0) *foreign = count;
}

class far_elements : public defect_test {
 protected:
  void SetUp() override {
    defect_test::SetUp();
    if (IsSkipped()) return;
    tensor_ = std::make_unique<device_array<unsigned char>>(rows * pitch);
    ASSERT_NE(tensor_->data(), nullptr);
    unsigned char* const base = tensor_->data();
    TMAP_ASSERT_CUDA(cudaMemset(base + far_row * pitch, far_byte, box_height * pitch));
    TMAP_ASSERT_CUDA(cudaMemset(base + wrapped_offset, wrapped_byte, box_height * pitch));
  }

  static result<map_template> rows_template() {
    const std::uint64_t dims[] = {width, rows};
    const std::uint32_t box[] = {box_width, box_height};
    return make_template(packed_spec(element_type::u16, 1 << 20, dims, box), patch_address | patch_dim(1));
  }

  /// Returns the number of foreign words in the tile at (column, row) of the first map that
  /// `source` makes.
  template <class Source>
  std::uint64_t foreign(const Source& source, std::uint64_t map, std::uint64_t column, std::uint64_t row) const {
    const device_array<tensor_map> slots(map + 1);
    const device_array<device_count> found(1);
    const result<map_template> base = rows_template();
    EXPECT_TRUE(base.has_value());
    if (!base) return 0;
    EXPECT_TRUE(encode_batch(*base, source, slots.data(), map + 1, {cudaStream_t{}}).has_value());
    load_one_tile<<<1, 32>>>(slots.data() + map, static_cast<std::int32_t>(column), static_cast<std::int32_t>(row),
                             found.data());
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    return found.download()[0];
  }

  static map_patch rows_from(std::uint64_t address, std::uint64_t count) {
    map_patch patch{};
    patch.global_address = address;
    patch.global_dim[1] = count;
    return patch;
  }

  std::unique_ptr<device_array<unsigned char>> tensor_;
};

TEST_F(far_elements, flashinfer_3391_more_than_2_31_elements) {
  const std::uint64_t address = tensor_->address();
  const device_array<map_patch> whole(std::vector<map_patch>{rows_from(address, rows)});
  const std::uint64_t by_coordinate = foreign(patch_array{whole.data()}, 0, far_column, far_row);
  const device_array<std::int32_t> prefix(std::vector<std::int32_t>{0, far_row, rows});
  const ragged_rows ragged{address, pitch, {prefix.data(), offset_format::prefix}};
  const std::uint64_t by_offset = foreign(ragged, 1, far_column, 0);
  const device_array<map_patch> wrapped(std::vector<map_patch>{rows_from(address + wrapped_offset, box_height)});
  const std::uint64_t seeded = foreign(patch_array{wrapped.data()}, 0, far_column, 0);
  expect_foreign_only_when_seeded(by_coordinate + by_offset, seeded);
}

}  // namespace
}  // namespace tmap::testing::far_elements_cases
