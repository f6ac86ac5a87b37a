// SPDX-License-Identifier: Apache-2.0
// Reproduces NVIDIA/recsys-examples #86: a sequence of length zero printed an error, training went
// on, and its results were poor. Also reproduces NVIDIA/cutlass #2547, in which a group with K = 0
// made the kernel hang.
#include <tmap/device/acquire.cuh>
#include <tmap/encode_batch.hpp>
#include <tmap/map_service.hpp>

#include <memory>

#include "defects/captured_graph.hpp"
#include "defects/defect_fixture.hpp"
#include "defects/tagged_grid.hpp"
#include "defects/tagged_tile.cuh"

namespace tmap::testing::zero_length_cases {
namespace {

/// Holds what a kernel found in one tensor.
struct tensor_report {
  std::uint64_t status_bits;
  std::uint64_t sum;  ///< sums all elements
  std::uint32_t foreign;
};

/// Walks each tensor's rows with one warp. It always loads the first tile, as a pipeline's prologue
/// would.
__global__ void walk_rows(map_batch_ref ref, const std::uint32_t* rows, tensor_report* reports) {
  __shared__ tagged_tile<grid_tile_elements> tile;
  tile_reader<grid_tile_elements> reader(tile);
  const std::uint32_t i = blockIdx.x;
  tensor_report report{ref.status(i).bits, 0, 0};
  for (std::uint32_t row = 0; row == 0 || row < rows[i]; row += grid_box_height) {
    const std::int32_t at[] = {0, static_cast<std::int32_t>(row)};
    reader.load([&] { return device::acquire(ref, i); }, at);
    report.foreign += reader.foreign([&](std::uint32_t e) { return row + e / grid_width < rows[i] ? i + 1 : 0; });
    std::uint32_t sum = 0;
    for (std::uint32_t e = reader.lane(); e < grid_tile_elements; e += warpSize) sum += tile.elements[e];
    report.sum += __reduce_add_sync(~0u, sum);
  }
  if (reader.lane() == 0) reports[i] = report;
}

/// Places tensors of these numbers of rows one after another in one buffer. A row that belongs to
/// no tensor follows the last one.
struct packed_tensors {
  explicit packed_tensors(const std::vector<std::uint32_t>& row_counts) : rows(row_counts) {
    std::vector<std::uint32_t> tags;
    for (std::uint32_t i = 0; i < rows.size(); ++i) tags.insert(tags.end(), rows[i], i + 1);
    tags.push_back(0xbad);
    buffer = std::make_unique<device_array<std::uint32_t>>(grid_rows(tags));
  }

  std::uint32_t count() const { return static_cast<std::uint32_t>(rows.size()); }

  std::vector<std::int32_t> offsets(offset_format format) const {
    std::vector<std::int32_t> made;
    std::int32_t end = 0;
    if (format == offset_format::prefix) made.push_back(0);
    for (const std::uint32_t each : rows) {
      end += static_cast<std::int32_t>(each);
      made.push_back(format == offset_format::sizes ? static_cast<std::int32_t>(each) : end);
    }
    return made;
  }

  /// Returns patches that give each tensor at least `least` rows.
  std::vector<map_patch> patches(std::uint32_t least) const {
    std::vector<map_patch> made;
    std::uint64_t row = 0;
    for (const std::uint32_t each : rows) {
      made.push_back(grid_patch(buffer->address() + row * grid_pitch_bytes, std::max(each, least)));
      row += each;
    }
    return made;
  }

  std::vector<std::uint32_t> rows;
  std::unique_ptr<device_array<std::uint32_t>> buffer;
};

class zero_length : public defect_test {
 protected:
  void SetUp() override {
    defect_test::SetUp();
    if (IsSkipped()) return;
    result<map_service> made = map_service::create({.capacity = 1024});
    TMAP_ASSERT_OK(made);
    service_ = std::make_unique<map_service>(std::move(*made));
    const result<map_template> base = grid_template();
    TMAP_ASSERT_OK(base);
    base_ = *base;
  }

  /// Encodes the tensors from `source`, walks them, and returns the reports.
  std::vector<tensor_report> walk(const packed_tensors& tensors, const tensor_source& source, workspace scratch = {}) {
    const own_stream stream;
    const device_array<std::uint32_t> rows(tensors.rows);
    const device_array<tensor_report> reports(tensors.count());
    const device_array<batch_header> header(1);
    const result<map_batch> batch =
        service_->encode(base_, source, tensors.count(), {.where = {stream.get(), scratch}, .header = header.data()});
    EXPECT_TRUE(batch.has_value());
    if (!batch) return {};
    walk_rows<<<tensors.count(), 32, 0, stream.get()>>>(batch->ref(), rows.data(), reports.data());
    EXPECT_EQ(cudaMemcpyAsync(&header_, header.data(), sizeof(header_), cudaMemcpyDeviceToHost, stream.get()),
              cudaSuccess);
    stream.wait();
    return reports.download();
  }

  static std::uint64_t foreign(const std::vector<tensor_report>& reports) {
    std::uint64_t sum = 0;
    for (const tensor_report& each : reports) sum += each.foreign;
    return sum;
  }

  /// Empty tensors must be reported as empty and sum to zero. All others must hold only their own
  /// elements.
  void expect_reported(const packed_tensors& tensors, const std::vector<tensor_report>& reports) const {
    ASSERT_EQ(reports.size(), tensors.count());
    std::uint32_t empty = 0;
    for (std::uint32_t i = 0; i < tensors.count(); ++i) {
      const bool is_empty = tensors.rows[i] == 0;
      empty += is_empty ? 1 : 0;
      EXPECT_EQ(reports[i].status_bits, is_empty ? map_status::empty_bit : 0) << i;
      EXPECT_EQ(reports[i].sum, std::uint64_t{tensors.rows[i]} * grid_width * (i + 1)) << i;
    }
    EXPECT_EQ(header_.empty_count, empty);
    EXPECT_EQ(header_.bad_count, 0u);
    EXPECT_EQ(header_.first_bad, no_bad_item);
  }

  std::unique_ptr<map_service> service_;
  map_template base_;
  batch_header header_{};
};

const std::vector<std::uint32_t> lengths = {0, 3, 0, 0, 8, 17, 1, 0, 24, 0};

TEST_F(zero_length, recsys_86_sequences_of_no_rows) {
  const packed_tensors tensors(lengths);
  const std::uint64_t workspace_bytes = ragged_workspace_bytes(tensors.count(), sizeof(std::int32_t)).value();
  const device_array<unsigned char> memory(workspace_bytes);
  std::uint64_t real = 0;
  for (const offset_format format : {offset_format::ends, offset_format::prefix, offset_format::sizes}) {
    const device_array<std::int32_t> offsets(tensors.offsets(format));
    const ragged_rows source{tensors.buffer->address(), grid_pitch_bytes, {offsets.data(), format}};
    const std::vector<tensor_report> reports = walk(tensors, source, {memory.data(), workspace_bytes});
    expect_reported(tensors, reports);
    real += foreign(reports);
  }
  EXPECT_EQ(service_->statistics().empty_maps, 3 * 5u);
  EXPECT_EQ(service_->statistics().bad_maps, 0u);
  // The common workaround for an encoder that refuses zero is to pretend that there is a row. That
  // row is the neighbour's.
  const device_array<map_patch> pretended(tensors.patches(1));
  expect_foreign_only_when_seeded(real, foreign(walk(tensors, patch_array{pretended.data()})));
}

// bad_map_test.cu has the seeded run, in which a zero reaches the copy engine and ends the context.
TEST_F(zero_length, cutlass_2547_groups_without_k) {
  const packed_tensors groups(lengths);
  std::vector<map_patch> patches = groups.patches(0);
  patches[0].global_address = 0;  // a tensor without elements may have no memory
  patches[2].global_address = ~std::uint64_t{0};
  const device_array<map_patch> array(patches);
  const std::vector<tensor_report> reports = walk(groups, patch_array{array.data()});
  expect_reported(groups, reports);
  EXPECT_EQ(foreign(reports), 0u);
}

}  // namespace
}  // namespace tmap::testing::zero_length_cases
