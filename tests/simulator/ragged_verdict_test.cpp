// SPDX-License-Identifier: Apache-2.0
// Tests that operations on the host report bad tensors, rows and arguments and leave them alone.
#include <tmap/ragged.hpp>

#include <gtest/gtest.h>

#include <string>

#include "lib/simulator/ragged_verdict.hpp"
#include "simulator/ragged_host_side.hpp"
#include "support/ragged_reference.hpp"
#include "support/refusal.hpp"

namespace tmap::testing {
namespace {

using ragged::fault;
using ragged::tensor_status;

/// Holds rows of a matrix at an odd pitch, between canaries.
struct matrix_memory {
  std::vector<unsigned char> bytes;
  ragged::row_matrix matrix;

  matrix_memory(random_source& random, std::uint64_t rows, std::uint64_t row_bytes, std::uint64_t pitch)
      : bytes(64 + rows * pitch + 64) {
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.bits());
    matrix = {reinterpret_cast<std::uint64_t>(bytes.data()) + 33, rows, row_bytes, pitch};
  }
  unsigned char* row(std::uint64_t i) { return bytes.data() + 33 + i * matrix.pitch_bytes; }
};

template <class Number>
void move_rows_by(std::uint32_t number_bytes) {
  random_source random{5};
  const std::vector<Number> numbers{3, 0, -1, 6, 7, 2, 5};
  const ragged::row_index index{numbers.data(), numbers.size(), number_bytes};
  std::vector<tensor_status> statuses(numbers.size());
  batch_header header;
  ragged::run with{on_host{}};
  with.statuses = statuses.data();
  with.header = &header;
  for (const bool scatters : {false, true}) {
    matrix_memory source{random, 7, 19, 23};
    matrix_memory destination{random, 7, 19, 29};
    std::vector<unsigned char> expected = destination.bytes;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] < 0 || numbers[i] >= 7) continue;
      const auto number = static_cast<std::uint64_t>(numbers[i]);
      const std::uint64_t to = scatters ? number : i;
      std::memcpy(expected.data() + 33 + to * 29, source.row(scatters ? i : number), 19);
    }
    const auto moved = scatters ? ragged::scatter_rows(source.matrix, index, destination.matrix, with)
                                : ragged::gather_rows(source.matrix, index, destination.matrix, with);
    ASSERT_TRUE(moved) << to_string(moved.error());
    expect_bytes(expected, destination.bytes);
    EXPECT_EQ(header.bad_count, 2u);
    EXPECT_EQ(header.first_bad, 2u);
    EXPECT_TRUE(statuses[2].has(fault::index) && statuses[4].has(fault::index) && statuses[0].is_good());
  }
}

TEST(ragged_rows, gather_and_scatter) {
  move_rows_by<std::int32_t>(4);
  move_rows_by<std::int64_t>(8);
}

/// Uses three tensors of 8 x 4 words, of which the second is spoilt.
class ragged_verdict : public ::testing::Test {
 protected:
  tensor_status copy() {
    const auto copied = ragged::copy(from_.described, to_.described, with());
    EXPECT_TRUE(copied) << to_string(copied.error());
    EXPECT_TRUE(statuses_[0].is_good() && statuses_[2].is_good());
    return statuses_[1];
  }
  ragged::run with() {
    ragged::run with{on_host{}};
    with.statuses = statuses_;
    with.header = &header_;
    with.windows = {windows_.data(), windows_.size()};
    return with;
  }
  map_patch& source() { return from_.patches()[1]; }
  map_patch& destination() { return to_.patches()[1]; }

  random_source random_{9};
  std::vector<extents> shapes_{3, extents{{8, 4, 1, 1, 1}}};
  host_batch source_{lay_out(random_, shapes_, 2, 4, source_form::array)};
  host_batch destination_{lay_out(random_, shapes_, 2, 4, source_form::array)};
  host_side from_{source_, source_form::array};
  host_side to_{destination_, source_form::array};
  tensor_status statuses_[3]{};
  batch_header header_;
  std::vector<address_window> windows_;
};

TEST_F(ragged_verdict, bad_tensors_are_skipped_and_named) {
  const auto expect = [&](fault f) {
    const std::vector<unsigned char> before = destination_.bytes;
    const std::uint64_t begin = destination_.tensors[1].begin;
    EXPECT_TRUE(copy().has(f)) << static_cast<std::uint32_t>(f);
    EXPECT_EQ(header_.bad_count, 1u);
    EXPECT_EQ(header_.first_bad, 1u);
    EXPECT_EQ(std::memcmp(destination_.bytes.data() + begin, before.data() + begin, 16), 0);
  };
  const map_patch good_source = source();
  const map_patch good_destination = destination();
  source().global_dim[0] = destination().global_dim[0] = (std::uint64_t{1} << 40) + 1;
  expect(fault::dim);
  source().global_dim[0] = destination().global_dim[0] = ~std::uint64_t{0};
  expect(fault::dim);
  source() = good_source;
  destination() = good_destination;
  source().global_stride_bytes[0] = std::uint64_t{1} << 46;
  expect(fault::stride);
  source() = good_source;
  for (const std::uint64_t address : {std::uint64_t{0}, good_source.global_address + 2, ~std::uint64_t{3}}) {
    source().global_address = address;
    expect(fault::address);
  }
  source() = good_source;
  source().global_dim[1] = 3;
  expect(fault::mismatch);
  source().global_dim[1] = 0;
  expect(fault::mismatch);
  source() = good_source;
  destination().global_stride_bytes[0] = 28;
  expect(fault::overlap);
  destination() = good_destination;
  const auto start = reinterpret_cast<std::uint64_t>(source_.bytes.data());
  const auto target = reinterpret_cast<std::uint64_t>(destination_.bytes.data());
  windows_ = {{target, target + destination_.bytes.size()}, {start, start + source_.bytes.size()}};
  EXPECT_TRUE(copy().is_good());
  source().global_address = start + source_.bytes.size() - 8;
  expect(fault::window);
}

TEST(ragged_rows, have_an_address_where_they_exist) {
  constexpr std::uint64_t most = ~std::uint64_t{0};
  ragged_rows rows{4096, 16};
  EXPECT_EQ(address_of_rows(rows, most, 5), 4096u - 16) << "before the base";
  rows.rows = 10;
  for (const auto& [begin, count] : {std::pair<std::uint64_t, std::uint64_t>{0, 10}, {9, 1}, {3, 0}, {3, 7}}) {
    EXPECT_EQ(address_of_rows(rows, begin, count), 4096 + 16 * begin);
  }
  for (const auto& [begin, count] : {std::pair<std::uint64_t, std::uint64_t>{0, 11},
                                     {10, 1},
                                     {11, 1},
                                     {3, 8},
                                     {most, 1},
                                     {most, 2},
                                     {9, most},
                                     {1, most},
                                     {most / 2 + 1, most / 2 + 1}}) {
    EXPECT_EQ(address_of_rows(rows, begin, count), 0u) << begin << ' ' << count;
  }
  rows.rows = 0;
  EXPECT_EQ(address_of_rows(rows, 0, 1), 0u);
}

TEST(ragged_rows, that_do_not_exist_are_neither_read_nor_written) {
  std::vector<std::uint32_t> values{1, 2, 3, 4, 5, 6};
  const std::vector<std::int32_t> ends{3, 5, 5};
  std::vector<tensor_status> statuses(3);
  ragged::run with{on_host{}};
  with.statuses = statuses.data();
  const auto batch_of = [&](std::vector<std::uint32_t>& memory, std::uint64_t rows) {
    const auto base = reinterpret_cast<std::uint64_t>(memory.data());
    return tensor_batch{ragged_rows{base, 4, {ends.data(), offset_format::ends}, rows}, 3, 4, 1};
  };
  for (const auto& [source_rows, destination_rows] :
       {std::pair<std::uint64_t, std::uint64_t>{4, any_rows}, {any_rows, 4}}) {
    std::vector<std::uint32_t> out(6, 9);
    ASSERT_TRUE(ragged::copy(batch_of(values, source_rows), batch_of(out, destination_rows), with));
    EXPECT_EQ(out, (std::vector<std::uint32_t>{1, 2, 3, 9, 9, 9}));
    EXPECT_TRUE(statuses[0].is_good() && statuses[2].is_empty());
    EXPECT_EQ(statuses[1].bits, static_cast<std::uint32_t>(fault::address));
  }
}

TEST_F(ragged_verdict, empty_tensors_are_counted) {
  source().global_dim[1] = destination().global_dim[1] = 0;
  source().global_address = 0;
  EXPECT_TRUE(copy().is_empty());
  EXPECT_EQ(header_.empty_count, 1u);
  EXPECT_EQ(header_.bad_count, 0u);
  EXPECT_EQ(header_.first_bad, no_bad_item);
}

/// Tensors there are neither copied nor filled.
TEST_F(ragged_verdict, what_of_a_dense_batch_lies_outside_the_windows_is_untouched) {
  const std::vector<std::uint32_t> poison(3 * 8 * 5, 7);
  std::vector<std::uint32_t> memory = poison;
  dense_batch dense{};
  dense.address = reinterpret_cast<std::uint64_t>(memory.data());
  dense.dim[0] = 8;
  dense.dim[1] = 5;
  const std::uint64_t each = 8 * 5 * 4;
  const auto start = reinterpret_cast<std::uint64_t>(source_.bytes.data());
  windows_ = {{start, start + source_.bytes.size()}, {dense.address + each, dense.address + 2 * each}};
  ASSERT_TRUE(ragged::pad(from_.described, dense, {}, with()));
  EXPECT_TRUE(statuses_[0].has(fault::window) && statuses_[1].is_good() && statuses_[2].has(fault::window));
  for (std::size_t i = 0; i < memory.size(); ++i) EXPECT_EQ(memory[i] == 7, i / 40 != 1) << i;
}

TEST_F(ragged_verdict, packed_tensors_behind_the_end_are_left_out) {
  std::vector<unsigned char> memory(3 * 128, 0xa5);
  std::int64_t begins[4]{};
  ASSERT_TRUE(ragged::pack(from_.described, {memory.data(), 2 * 128 + 127, 1, begins}, with()));
  EXPECT_TRUE(statuses_[1].is_good() && statuses_[2].has(fault::truncated));
  EXPECT_EQ(begins[3], 384);
  for (std::size_t i = 256; i < memory.size(); ++i) ASSERT_EQ(memory[i], 0xa5) << i;

  source().global_address = 0;
  ASSERT_TRUE(ragged::pack(from_.described, {memory.data(), 384, 1, begins}, with()));
  EXPECT_EQ(begins[2], 128) << "a bad tensor takes no room";
}

TEST_F(ragged_verdict, arguments_are_checked) {
  tensor_batch other = to_.described;
  const auto refused = [&] {
    const std::string name = refused_argument(ragged::copy(from_.described, other, {on_host{}}));
    other = to_.described;
    return name;
  };
  EXPECT_EQ(refused(), "");
  other.count = 2;
  EXPECT_EQ(refused(), "destination.count");
  other.rank = 3;
  EXPECT_EQ(refused(), "destination.rank");
  other.element_bytes = 2;
  EXPECT_EQ(refused(), "destination.element_bytes");
  other.tensors = patch_array{nullptr};
  EXPECT_EQ(refused(), "destination.tensors.patches");
  other = from_.described;
  other.element_bytes = from_.described.element_bytes = 17;
  EXPECT_EQ(refused(), "source.element_bytes");
}

/// The limits are those of the GPU: no sum of offsets wraps.
TEST_F(ragged_verdict, arguments_beyond_all_reach_are_refused) {
  constexpr std::uint64_t most = std::uint64_t{1} << 47;
  std::vector<unsigned char> memory(1024);
  expect_refused(ragged::pack(from_.described, {memory.data(), most + 1, 1, nullptr}, {on_host{}}),
                 "destination.bytes");
  expect_refused(ragged::unpack({memory.data(), most + 1, 1, nullptr}, to_.described, {on_host{}}), "source.bytes");

  dense_batch dense{};
  dense.address = reinterpret_cast<std::uint64_t>(memory.data());
  dense.dim[0] = 8;
  dense.dim[1] = 4;
  for (const std::uint64_t pitch : {most / 2, most, ~std::uint64_t{0} / 4 * 4}) {
    dense.tensor_pitch_bytes = pitch;
    expect_refused(ragged::pad(from_.described, dense, {}, {on_host{}}), "destination", std::to_string(pitch));
    expect_refused(ragged::unpad(dense, to_.described, {on_host{}}), "source", std::to_string(pitch));
  }

  const std::int32_t first = 0;
  const ragged::row_index index{&first, 1, 4};
  const ragged::row_matrix near{dense.address, 2, 4, 4};
  for (const ragged::row_matrix& far : {ragged::row_matrix{dense.address, 3, 4, most / 2 + 1},
                                        ragged::row_matrix{dense.address, std::uint64_t{1} << 60, 4, 1 << 20}}) {
    expect_refused(ragged::gather_rows(far, index, near, {on_host{}}), "source.pitch_bytes");
    expect_refused(ragged::scatter_rows(near, index, far, {on_host{}}), "destination.pitch_bytes");
  }
  EXPECT_TRUE(ragged::gather_rows({dense.address, 3, 4, most / 2}, index, near, {on_host{}}));
}

/// The tensors are bad. If they were good, their last sum would not fit 64 bits.
TEST(ragged_verdict_of_many, the_most_bytes_of_each_of_many) {
  constexpr std::uint64_t count = 1 << 16;
  constexpr std::uint64_t most = (std::uint64_t{1} << 47) - (std::uint64_t{1} << 20);
  std::vector<map_patch> patches(count);
  for (map_patch& patch : patches) {
    patch.global_address = 4096;
    patch.global_dim[0] = most / 256;
    patch.global_dim[1] = 256;
    patch.global_stride_bytes[0] = 0;
  }
  patches[7].global_dim[1] = 257;
  tensor_batch batch{};
  batch.tensors = patch_array{patches.data()};
  batch.count = count;
  batch.element_bytes = 1;
  batch.rank = 2;
  std::vector<tensor_status> statuses(count);
  std::vector<std::int64_t> begins(count + 1);
  ragged::run with{on_host{}};
  with.statuses = statuses.data();
  unsigned char buffer[1];
  ASSERT_TRUE(ragged::pack(batch, {buffer, 1, 1 << 20, begins.data()}, with));
  EXPECT_EQ(statuses[6].bits, static_cast<std::uint32_t>(fault::truncated));
  EXPECT_TRUE(statuses[7].has(fault::dim));
  EXPECT_EQ(begins[8], begins[7]) << "a bad tensor takes no room";
  EXPECT_EQ(static_cast<std::uint64_t>(begins[count]), (count - 1) * most);
}

TEST(ragged_verdict_of_many, headers_of_more_rows_than32_bits_count) {
  batch_header header;
  ragged::run with{on_host{}};
  with.header = &header;
  const tensor_status bad{static_cast<std::uint32_t>(fault::index)};
  const auto first_of = [&](std::uint64_t row) {
    { simulator::verdict_writer{{batch_call::ragged_gather_rows, row + 1}, with}.write(row, bad); }
    return header.first_bad;
  };
  EXPECT_EQ(first_of(5), 5u);
  EXPECT_EQ(first_of(no_bad_item - 1), no_bad_item - 1);
  for (const std::uint64_t beyond :
       {std::uint64_t{no_bad_item}, std::uint64_t{1} << 32, (std::uint64_t{1} << 32) + 5}) {
    EXPECT_EQ(first_of(beyond), no_bad_item - 1) << beyond;
    EXPECT_EQ(header.bad_count, 1u);
  }
}

}  // namespace
}  // namespace tmap::testing
