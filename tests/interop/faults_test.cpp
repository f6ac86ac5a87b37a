// SPDX-License-Identifier: Apache-2.0
// Tests bad items as a C program sees them: reports, words, and checked operations on the host.
#include <gmock/gmock.h>

#include <tmap/faults.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "interop/refuses_bad_structs.hpp"
#include "interop/sized.hpp"

namespace tmap::testing {
namespace {

using ::testing::HasSubstr;

std::string item_text(std::uint32_t kind, std::uint64_t bits) {
  char text[2048] = {};
  EXPECT_EQ(tmap_item_text(kind, bits, text, sizeof text, nullptr), TMAP_OK);
  return text;
}

std::string last_message() {
  char text[1024] = {};
  EXPECT_EQ(tmap_last_message(text, sizeof text, nullptr), TMAP_OK);
  return text;
}

TEST(c_faults, statuses_in_words) {
  EXPECT_EQ(item_text(TMAP_ITEM_TENSOR, 0), "good");
  EXPECT_EQ(item_text(TMAP_ITEM_TENSOR, 1u << 31), "empty");
  EXPECT_EQ(item_text(TMAP_ITEM_MAP, TMAP_EMPTY_MAP), "empty");
  EXPECT_EQ(item_text(TMAP_ITEM_TENSOR, 18), ragged::to_string(ragged::tensor_status{18}));
  EXPECT_EQ(item_text(TMAP_ITEM_ROW, 128), ragged::to_string(ragged::tensor_status{128}));
  EXPECT_EQ(item_text(TMAP_ITEM_GROUP, 3), gemm::to_string(gemm::group_status{3}));
  EXPECT_EQ(item_text(TMAP_ITEM_MAP, 33), to_string(map_status{33}));
  char text[8] = {};
  std::size_t length = 0;
  EXPECT_EQ(refused(tmap_item_text(TMAP_ITEM_GROUP + 1, 0, text, sizeof text, &length)), "kind");
  EXPECT_EQ(refused(tmap_item_text(TMAP_ITEM_TENSOR, std::uint64_t{1} << 32, text, sizeof text, &length)), "bits");
  EXPECT_EQ(refused(tmap_item_text(TMAP_ITEM_TENSOR, 1, nullptr, sizeof text, &length)), "text");
  EXPECT_EQ(tmap_item_text(TMAP_ITEM_TENSOR, 1, text, sizeof text, &length), TMAP_BUFFER_TOO_SMALL);
  EXPECT_EQ(length, item_text(TMAP_ITEM_TENSOR, 1).size());
}

TEST(c_faults, calls_have_names) {
  for (std::uint32_t call = 0; call <= batch_call_count; ++call) {
    EXPECT_STREQ(tmap_call_name(call), name(static_cast<batch_call>(call)));
  }
}

TEST(c_faults, reports_in_words) {
  tmap_fault_report report = sized<tmap_fault_report>();
  report.rows = 5;
  report.first = {static_cast<std::uint32_t>(batch_call::ragged_gather_rows), 0, 9, 4, 128};
  const auto text_of = [](const tmap_fault_report* of) {
    char text[1024] = {};
    return tmap_fault_report_text(of, text, sizeof text, nullptr) == TMAP_OK ? std::string{text} : "refused";
  };
  EXPECT_EQ(text_of(&report), to_string(fault_report{0, 0, 5, 0, {batch_call::ragged_gather_rows, 9, 4, 128}}));
  report.first.call = ~0u;
  EXPECT_THAT(text_of(&report), HasSubstr("unknown call"));
  refuses_bad_structs<tmap_fault_report>(report,
                                         [](auto* r) { return tmap_fault_report_text(r, nullptr, 0, nullptr); });
}

TEST(c_faults, reports_are_asked_for_with_their_size) {
  refuses_bad_structs<tmap_fault_report>(sized<tmap_fault_report>(), [](auto* r) { return tmap_faults(r); });
  refuses_bad_structs<tmap_fault_report>(sized<tmap_fault_report>(), [](auto* r) { return tmap_reset_faults(r); });
}

/// Makes two rows of floats. The second one has an odd address.
class odd_rows {
 public:
  odd_rows() {
    batch = sized<tmap_tensor_batch>();
    batch.element_bytes = 4;
    batch.rank = 1;
    batch.count = 2;
    batch.tensors.struct_size = sizeof batch.tensors;
    batch.tensors.kind = TMAP_SOURCE_COLUMNS;
    batch.tensors.of.columns.global_address = address_;
    batch.tensors.of.columns.global_dim[0] = width_;
  }
  odd_rows(const odd_rows&) = delete;
  odd_rows& operator=(const odd_rows&) = delete;

  void mend() { address_[1] = address_[0] + 16; }
  tmap_tensor_batch batch;
  std::vector<float> values = std::vector<float>(8, 1);

 private:
  std::uint64_t address_[2]{reinterpret_cast<std::uint64_t>(values.data()),
                            reinterpret_cast<std::uint64_t>(values.data()) + 17};
  std::uint64_t width_[2]{4, 3};
};

TEST(c_faults, a_checked_operation_on_the_host_says_what_was_bad) {
  odd_rows from;
  odd_rows to;
  to.mend();
  to.values.assign(8, 0);
  tmap_call with = host_call();
  with.check = TMAP_CHECK_OFF;
  EXPECT_EQ(tmap_ragged_copy(&from.batch, &to.batch, &with), TMAP_OK);
  to.values.assign(8, 0);
  with.check = TMAP_CHECK_SYNC;
  ASSERT_EQ(tmap_ragged_copy(&from.batch, &to.batch, &with), TMAP_BAD_ITEMS);
  EXPECT_THAT(last_message(), HasSubstr("tmap_ragged_copy: ragged::copy (call "));
  EXPECT_THAT(last_message(), HasSubstr("1 of 2 tensors is bad, among them tensor 1: address (the address is null"));
  tmap_error last = sized<tmap_error>();
  ASSERT_EQ(tmap_last_error(&last), TMAP_OK);
  EXPECT_EQ(last.code, TMAP_BAD_ITEMS);
  EXPECT_EQ(last.found, 1u);
  EXPECT_EQ(last.allowed, 2u);
  EXPECT_EQ(last.bad.call, static_cast<std::uint32_t>(batch_call::ragged_copy));
  EXPECT_GT(last.bad.number, 0u);
  EXPECT_EQ(last.bad.index, 1u);
  EXPECT_EQ(last.bad.bits, static_cast<std::uint64_t>(ragged::fault::address));
  EXPECT_EQ(to.values, (std::vector<float>{1, 1, 1, 1, 0, 0, 0, 0})) << "the good one was copied";
  from.mend();
  EXPECT_EQ(tmap_ragged_copy(&from.batch, &to.batch, &with), TMAP_OK);
}

/// Runs every operation on the host, each with one bad item. Operations by index get a row that
/// does not exist.
TEST(c_faults, every_operation_on_the_host_can_be_checked) {
  odd_rows odd;
  odd_rows even;
  even.mend();
  odd_rows odd_square;
  odd_rows even_square;
  even_square.mend();
  const std::uint64_t one[2]{1, 1};
  for (tmap_tensor_batch* const square : {&odd_square.batch, &even_square.batch}) {
    square->rank = 2;
    square->tensors.of.columns.global_dim[0] = one;
    square->tensors.of.columns.global_dim[1] = one;
  }
  odd_rows sums;
  sums.mend();
  sums.batch.tensors.of.columns.global_dim[0] = one;
  odd_rows bytes;
  bytes.mend();
  bytes.batch.element_bytes = 1;
  tmap_quantize_values quantized = sized<tmap_quantize_values>();
  quantized.from = TMAP_VALUE_F32;
  quantized.to = TMAP_VALUE_F8_E4M3;
  std::vector<float> room(64);
  tmap_packed_buffer packed = sized<tmap_packed_buffer>();
  packed.memory = room.data();
  packed.bytes = 256;
  tmap_dense_batch dense = sized<tmap_dense_batch>();
  dense.address = reinterpret_cast<std::uint64_t>(room.data());
  dense.dim[0] = 4;
  tmap_row_matrix rows = sized<tmap_row_matrix>();
  rows.address = dense.address;
  rows.rows = 2;
  rows.row_bytes = rows.pitch_bytes = 16;
  tmap_row_matrix rows_to = rows;
  rows_to.address += 64;
  const std::int32_t numbers[2]{0, 2};
  tmap_row_index index = sized<tmap_row_index>();
  index.bytes = 4;
  index.rows = numbers;
  index.count = 2;
  tmap_cast_values values = sized<tmap_cast_values>();
  values.from = values.to = TMAP_VALUE_F32;
  tmap_call with = host_call();
  const tmap_tensor_batch* const bad = &odd.batch;
  const tmap_tensor_batch* const to = &even.batch;
  const auto results = [&]() -> std::vector<tmap_status> {
    return {tmap_ragged_copy(bad, to, &with),
            tmap_ragged_pack(bad, &packed, &with),
            tmap_ragged_unpack(&packed, bad, &with),
            tmap_ragged_pad(bad, &dense, nullptr, &with),
            tmap_ragged_unpad(&dense, bad, &with),
            tmap_ragged_gather_rows(&rows, &index, &rows_to, &with),
            tmap_ragged_scatter_rows(&rows, &index, &rows_to, &with),
            tmap_ragged_transpose(&odd_square.batch, &even_square.batch, &with),
            tmap_ragged_cast(bad, to, &values, &with),
            tmap_ragged_saxpy(1, bad, to, &with),
            tmap_ragged_max_pool_1d(bad, to, 1, &with),
            tmap_ragged_reduce_rows(bad, TMAP_VALUE_F32, TMAP_ROWS_SUM, &sums.batch, &with),
            tmap_ragged_quantize(bad, &bytes.batch, &sums.batch, &quantized, &with),
            tmap_ragged_column_sums(&odd_square.batch, TMAP_VALUE_F32, &even_square.batch, TMAP_VALUE_F32, &with)};
  };
  with.check = TMAP_CHECK_OFF;
  EXPECT_EQ(results(), std::vector<tmap_status>(14, TMAP_OK));
  with.check = TMAP_CHECK_SYNC;
  EXPECT_EQ(results(), std::vector<tmap_status>(14, TMAP_BAD_ITEMS));
}

}  // namespace
}  // namespace tmap::testing
