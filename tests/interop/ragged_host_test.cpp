// SPDX-License-Identifier: Apache-2.0
// Tests the ragged operations of C on the host: what each writes, and what it refuses.
#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <vector>

#include "interop/refuses_bad_structs.hpp"
#include "interop/sized.hpp"

namespace tmap::testing {
namespace {

using ::testing::ElementsAre;

std::uint64_t address_of(const void* memory) {
  return reinterpret_cast<std::uint64_t>(memory);
}

/// Holds rows of three f32, in a tensor of 1 row and one of 2. `shape` changes the number of
/// columns.
class rows_of_floats {
 public:
  explicit rows_of_floats(const void* values, std::uint64_t width = 3, std::uint64_t last_height = 2,
                          std::uint32_t element_bytes = 4)
      : width_{width, width}, height_{1, last_height} {
    address_ = {address_of(values), address_of(values) + width * element_bytes};
    batch = sized<tmap_tensor_batch>();
    batch.element_bytes = element_bytes;
    batch.rank = 2;
    batch.count = 2;
    batch.arrays_on_host = 1;
    batch.tensors.struct_size = sizeof batch.tensors;
    batch.tensors.kind = TMAP_SOURCE_COLUMNS;
    batch.tensors.of.columns.global_address = address_.data();
    batch.tensors.of.columns.global_dim[0] = width_.data();
    batch.tensors.of.columns.global_dim[1] = height_.data();
  }
  rows_of_floats(const rows_of_floats&) = delete;
  rows_of_floats& operator=(const rows_of_floats&) = delete;

  /// Exchanges the dims.
  void turn() { std::swap(batch.tensors.of.columns.global_dim[0], batch.tensors.of.columns.global_dim[1]); }

  tmap_tensor_batch batch;

 private:
  std::array<std::uint64_t, 2> address_;
  std::array<std::uint64_t, 2> width_;
  std::array<std::uint64_t, 2> height_;
};

class c_ragged_on_host : public ::testing::Test {
 protected:
  std::vector<float> in_{1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<float> out_ = std::vector<float>(9, -1);
  rows_of_floats source_{in_.data()};
  rows_of_floats destination_{out_.data()};
  const tmap_tensor_batch* from_{&source_.batch};
  const tmap_tensor_batch* to_{&destination_.batch};
  const tmap_call on_host_ = host_call();
};

TEST_F(c_ragged_on_host, copies) {
  ASSERT_EQ(tmap_ragged_copy(from_, to_, &on_host_), TMAP_OK);
  EXPECT_EQ(out_, in_);
}

TEST_F(c_ragged_on_host, reads_no_row_that_an_array_has_not) {
  const std::int32_t ends[] = {1, 3};
  std::uint32_t statuses[2];
  tmap_tensor_batch rows = sized<tmap_tensor_batch>();
  rows.element_bytes = 4;
  rows.rank = 2;
  rows.count = 2;
  rows.inner_dim[0] = 3;
  rows.tensors.struct_size = sizeof rows.tensors;
  rows.tensors.kind = TMAP_SOURCE_ROWS;
  tmap_call with = host_call();
  with.statuses = statuses;
  const auto bad_among = [&](std::uint32_t is_bounded, std::uint64_t rows_there) {
    rows.tensors.of.rows = {
        address_of(in_.data()), 12, {ends, TMAP_OFFSETS_ENDS, 4, nullptr, 0}, rows_there, is_bounded, 0};
    EXPECT_EQ(tmap_ragged_copy(&rows, to_, &with), TMAP_OK);
    return (statuses[0] != 0 ? 1 : 0) + (statuses[1] != 0 ? 2 : 0);
  };
  EXPECT_EQ(bad_among(1, 0), 3);
  EXPECT_EQ(out_, std::vector<float>(9, -1));
  EXPECT_EQ(bad_among(1, 1), 2);
  EXPECT_EQ(bad_among(1, 3), 0);
  EXPECT_EQ(bad_among(0, 0), 0) << "an array of unknown size";
  EXPECT_EQ(out_, in_);
}

TEST_F(c_ragged_on_host, packs_and_unpacks) {
  std::vector<float> memory(8 + 8, -2);
  tmap_packed_buffer packed = sized<tmap_packed_buffer>();
  packed.memory = memory.data();
  packed.bytes = 40;
  packed.alignment = 16;
  ASSERT_EQ(tmap_ragged_pack(from_, &packed, &on_host_), TMAP_OK);
  EXPECT_THAT(memory, ElementsAre(1, 2, 3, -2, 4, 5, 6, 7, 8, 9, -2, -2, -2, -2, -2, -2));
  ASSERT_EQ(tmap_ragged_unpack(&packed, to_, &on_host_), TMAP_OK);
  EXPECT_EQ(out_, in_);
}

TEST_F(c_ragged_on_host, pads_and_unpads) {
  std::vector<float> memory(12, -2);
  tmap_dense_batch dense = sized<tmap_dense_batch>();
  dense.address = address_of(memory.data());
  dense.dim[0] = 3;
  dense.dim[1] = 2;
  const float fill = 7;
  ASSERT_EQ(tmap_ragged_pad(from_, &dense, &fill, &on_host_), TMAP_OK);
  EXPECT_THAT(memory, ElementsAre(1, 2, 3, 7, 7, 7, 4, 5, 6, 7, 8, 9));
  ASSERT_EQ(tmap_ragged_unpad(&dense, to_, &on_host_), TMAP_OK);
  EXPECT_EQ(out_, in_);
}

TEST_F(c_ragged_on_host, moves_rows_by_index) {
  tmap_row_matrix from = sized<tmap_row_matrix>();
  from.address = address_of(in_.data());
  from.rows = 3;
  from.row_bytes = from.pitch_bytes = 12;
  tmap_row_matrix to = from;
  to.address = address_of(out_.data());
  const std::int32_t rows[] = {2, 9, 0};
  tmap_row_index index = sized<tmap_row_index>();
  index.bytes = 4;
  index.rows = rows;
  index.count = 3;
  std::uint32_t statuses[3] = {7, 7, 7};
  tmap_call with = host_call();
  with.statuses = statuses;
  ASSERT_EQ(tmap_ragged_gather_rows(&from, &index, &to, &with), TMAP_OK);
  EXPECT_THAT(out_, ElementsAre(7, 8, 9, -1, -1, -1, 1, 2, 3));
  EXPECT_THAT(statuses, ElementsAre(0u, 1u << 7, 0u));
  ASSERT_EQ(tmap_ragged_scatter_rows(&from, &index, &to, &on_host_), TMAP_OK);
  EXPECT_THAT(out_, ElementsAre(7, 8, 9, -1, -1, -1, 1, 2, 3));
  refuses_bad_structs<tmap_row_index>(index,
                                      [&](auto* i) { return tmap_ragged_gather_rows(&from, i, &to, &on_host_); });
  refuses_bad_structs<tmap_row_matrix>(from,
                                       [&](auto* f) { return tmap_ragged_scatter_rows(f, &index, &to, &on_host_); });
}

TEST_F(c_ragged_on_host, transposes) {
  destination_.turn();
  ASSERT_EQ(tmap_ragged_transpose(from_, to_, &on_host_), TMAP_OK);
  EXPECT_THAT(out_, ElementsAre(1, 2, 3, 4, 7, 5, 8, 6, 9));
}

TEST_F(c_ragged_on_host, casts) {
  tmap_cast_values values = sized<tmap_cast_values>();
  values.from = values.to = TMAP_VALUE_F32;
  values.scale = 10;
  values.shift = 1;
  ASSERT_EQ(tmap_ragged_cast(from_, to_, &values, &on_host_), TMAP_OK);
  EXPECT_THAT(out_, ElementsAre(11, 21, 31, 41, 51, 61, 71, 81, 91));
  refuses_bad_structs<tmap_cast_values>(values, [&](auto* v) { return tmap_ragged_cast(from_, to_, v, &on_host_); });
  values.from = 6;
  EXPECT_EQ(refused(tmap_ragged_cast(from_, to_, &values, &on_host_)), "values.from");
}

TEST_F(c_ragged_on_host, computes) {
  ASSERT_EQ(tmap_ragged_saxpy(2, from_, to_, &on_host_), TMAP_OK);
  EXPECT_THAT(out_, ElementsAre(1, 3, 5, 7, 9, 11, 13, 15, 17));
  ASSERT_EQ(tmap_ragged_max_pool_1d(from_, to_, 1, &on_host_), TMAP_OK);
  EXPECT_THAT(out_, ElementsAre(2, 3, 3, 5, 6, 6, 8, 9, 9));
}

TEST_F(c_ragged_on_host, reduces_rows) {
  std::vector<float> sums(3, -1);
  rows_of_floats to{sums.data(), 1};
  ASSERT_EQ(tmap_ragged_reduce_rows(from_, TMAP_VALUE_F32, TMAP_ROWS_SUM, &to.batch, &on_host_), TMAP_OK);
  EXPECT_THAT(sums, ElementsAre(6, 15, 24));
  ASSERT_EQ(tmap_ragged_reduce_rows(from_, TMAP_VALUE_F32, TMAP_ROWS_MAX, &to.batch, &on_host_), TMAP_OK);
  EXPECT_THAT(sums, ElementsAre(3, 6, 9));
  EXPECT_EQ(refused(tmap_ragged_reduce_rows(from_, 6, TMAP_ROWS_SUM, &to.batch, &on_host_)), "type");
  EXPECT_EQ(refused(tmap_ragged_reduce_rows(from_, TMAP_VALUE_F32, 2, &to.batch, &on_host_)), "reduction");
}

TEST_F(c_ragged_on_host, quantizes) {
  std::vector<unsigned char> bytes(9);
  std::vector<float> factors(3, -1);
  rows_of_floats to{bytes.data(), 3, 2, 1};
  rows_of_floats scales{factors.data(), 1};
  tmap_quantize_values values = sized<tmap_quantize_values>();
  values.from = TMAP_VALUE_F32;
  values.to = TMAP_VALUE_F8_E4M3;
  values.powers_of_two = 1;
  ASSERT_EQ(tmap_ragged_quantize(from_, &to.batch, &scales.batch, &values, &on_host_), TMAP_OK);
  EXPECT_THAT(factors, ElementsAre(0x1p-7f, 0x1p-6f, 0x1p-5f));
  EXPECT_EQ(bytes[2], 0x7c) << "3 = 384 / 128";
  refuses_bad_structs<tmap_quantize_values>(
      values, [&](auto* v) { return tmap_ragged_quantize(from_, &to.batch, &scales.batch, v, &on_host_); });
  const auto refused_with = [&](std::uint32_t tmap_quantize_values::*member) {
    tmap_quantize_values bad = values;
    bad.*member = 9;
    return refused(tmap_ragged_quantize(from_, &to.batch, &scales.batch, &bad, &on_host_));
  };
  EXPECT_EQ(refused_with(&tmap_quantize_values::from), "values.from");
  EXPECT_EQ(refused_with(&tmap_quantize_values::to), "values.to");
  EXPECT_EQ(refused_with(&tmap_quantize_values::block), "values.block");
  EXPECT_EQ(refused_with(&tmap_quantize_values::powers_of_two), "values.powers_of_two");
  EXPECT_EQ(refused_with(&tmap_quantize_values::transposed_scales), "values.transposed_scales");
}

TEST_F(c_ragged_on_host, sums_columns) {
  std::vector<float> sums(6, -1);
  rows_of_floats to{sums.data(), 3, 1};
  ASSERT_EQ(tmap_ragged_column_sums(from_, TMAP_VALUE_F32, &to.batch, TMAP_VALUE_F32, &on_host_), TMAP_OK);
  EXPECT_THAT(sums, ElementsAre(1, 2, 3, 11, 13, 15));
  EXPECT_EQ(refused(tmap_ragged_column_sums(from_, 6, &to.batch, TMAP_VALUE_F32, &on_host_)), "from");
  EXPECT_EQ(refused(tmap_ragged_column_sums(from_, TMAP_VALUE_F32, &to.batch, 6, &on_host_)), "to");
}

TEST_F(c_ragged_on_host, refuses_bad_sides_and_options_and_writes_nothing) {
  refuses_bad_structs<tmap_tensor_batch>(*from_, [&](auto* f) { return tmap_ragged_copy(f, to_, &on_host_); });
  refuses_bad_structs<tmap_tensor_batch>(*to_, [&](auto* t) { return tmap_ragged_copy(from_, t, &on_host_); });
  refuses_bad_structs<tmap_call>(
      on_host_, [&](auto* c) { return tmap_ragged_copy(from_, to_, c); }, true);
  destination_.batch.count = 1;
  EXPECT_EQ(refused(tmap_ragged_copy(from_, to_, &on_host_)), "destination.count");
  destination_.batch.count = 2;
  tmap_call call = on_host_;
  call.engine = 2;
  EXPECT_EQ(refused(tmap_ragged_copy(from_, to_, &call)), "call.engine");
  EXPECT_EQ(out_, std::vector<float>(9, -1));
}

}  // namespace
}  // namespace tmap::testing
