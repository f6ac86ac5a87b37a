// SPDX-License-Identifier: Apache-2.0
// Runs the operations on the host with rows, places and row numbers more than 4 GiB apart.
#include <tmap/ragged.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "simulator/far_memory.hpp"

namespace tmap::testing {
namespace {

using sea = far_memory::sea;

/// A matrix of words that stand for f32, u8 or another type of the operation. Each row is an
/// island.
struct word_matrix {
  std::uint64_t address;
  std::uint64_t columns;
  std::uint64_t rows;
  std::uint64_t pitch;

  std::byte* row(std::uint64_t i) const { return reinterpret_cast<std::byte*>(address + i * pitch); }
};

struct far_operation {
  const char* name;
  std::uint32_t bytes[2];                   ///< of an element, for both sides
  word_matrix (*turned)(word_matrix from);  ///< the destination of this source
  result<void> (*run)(const word_matrix& from, const word_matrix& to, const ragged::run& with);
  bool far[2];  ///< the sides whose rows may be anywhere
};

word_matrix same(word_matrix from) {
  return from;
}
word_matrix swapped(word_matrix from) {
  return {from.address, from.rows, from.columns, from.pitch};
}
word_matrix reduced(word_matrix from) {
  return {from.address, 1, from.rows, from.pitch};
}

template <std::uint32_t From, std::uint32_t To, class Run>
result<void> with_batches(const word_matrix& from, const word_matrix& to, const Run& run) {
  const one_tensor<2> source(from.address, From, {from.columns, from.rows}, from.pitch);
  const one_tensor<2> destination(to.address, To, {to.columns, to.rows}, to.pitch);
  return run(source.batch, destination.batch);
}

dense_batch dense_of(const word_matrix& matrix) {
  dense_batch dense{};
  dense.address = matrix.address;
  dense.dim[0] = matrix.columns;
  dense.dim[1] = matrix.rows;
  dense.stride_bytes[0] = matrix.pitch;
  return dense;
}

ragged::packed_buffer buffer_of(const word_matrix& matrix) {
  return {reinterpret_cast<void*>(matrix.address), matrix.columns * matrix.rows * 4, 4, nullptr};
}

using word = const word_matrix&;
using chosen = const ragged::run&;
const far_operation far_operations[] = {
    {"copy",
     {4, 4},
     same,
     [](word from, word to, chosen with) {
       return with_batches<4, 4>(from, to, [&](auto& a, auto& b) { return ragged::copy(a, b, with); });
     },
     {true, true}},
    {"pack",
     {4, 4},
     same,
     [](word from, word to, chosen with) {
       return with_batches<4, 4>(from, to, [&](auto& a, auto&) { return ragged::pack(a, buffer_of(to), with); });
     },
     {true, false}},
    {"unpack",
     {4, 4},
     same,
     [](word from, word to, chosen with) {
       return with_batches<4, 4>(from, to, [&](auto&, auto& b) { return ragged::unpack(buffer_of(from), b, with); });
     },
     {false, true}},
    {"pad",
     {4, 4},
     same,
     [](word from, word to, chosen with) {
       const word_matrix part{from.address, from.columns - 4, from.rows - 1, from.pitch};
       const ragged::fill_value fill{{1, 2, 3, 4}};
       return with_batches<4, 4>(part, to, [&](auto& a, auto&) { return ragged::pad(a, dense_of(to), fill, with); });
     },
     {true, true}},
    {"unpad",
     {4, 4},
     same,
     [](word from, word to, chosen with) {
       return with_batches<4, 4>(from, to, [&](auto&, auto& b) { return ragged::unpad(dense_of(from), b, with); });
     },
     {true, true}},
    {"transpose",
     {4, 4},
     swapped,
     [](word from, word to, chosen with) {
       return with_batches<4, 4>(from, to, [&](auto& a, auto& b) { return ragged::transpose(a, b, with); });
     },
     {true, true}},
    {"cast",
     {1, 4},
     same,
     [](word from, word to, chosen with) {
       ragged::cast_values values{};
       values.to = ragged::value_type::f32;
       values.scale = 3;
       return with_batches<1, 4>(from, to, [&](auto& a, auto& b) { return ragged::cast(a, b, values, with); });
     },
     {true, true}},
    {"saxpy",
     {4, 4},
     same,
     [](word from, word to, chosen with) {
       return with_batches<4, 4>(from, to, [&](auto& a, auto& b) { return ragged::saxpy(2.5f, a, b, with); });
     },
     {true, true}},
    {"max_pool_1d",
     {4, 4},
     same,
     [](word from, word to, chosen with) {
       return with_batches<4, 4>(from, to, [&](auto& a, auto& b) { return ragged::max_pool_1d(a, b, 3, with); });
     },
     {true, true}},
    {"reduce_rows",
     {4, 4},
     reduced,
     [](word from, word to, chosen with) {
       return with_batches<4, 4>(from, to, [&](auto& a, auto& b) {
         return ragged::reduce_rows(a, ragged::value_type::f32, ragged::row_reduction::sum, b, with);
       });
     },
     {true, true}},
};

class ragged_far : public ::testing::TestWithParam<far_operation> {
 protected:
  static constexpr std::uint64_t columns = 48;
  static constexpr std::uint64_t rows = 4;
  static constexpr std::uint64_t near_pitch = 256;
  static constexpr std::uint64_t far_pitch = two_31 + 4096;

  static std::vector<std::uint64_t> row_places(std::uint64_t count) {
    std::vector<std::uint64_t> places;
    for (std::uint64_t i = 0; i < count; ++i) places.push_back(i * far_pitch);
    return places;
  }

  /// Writes a number to every element that is valid in every type.
  static void write_numbers(const word_matrix& matrix, std::uint32_t bytes, std::uint32_t seed) {
    for (std::uint64_t row = 0; row < matrix.rows; ++row) {
      for (std::uint64_t i = 0; i < matrix.columns; ++i) {
        const auto number = static_cast<float>(static_cast<int>(noise_of(row * 1000 + i + seed)) - 100);
        std::memcpy(matrix.row(row) + i * bytes, &number, bytes);
        if (bytes == 1) matrix.row(row)[i] = noise_of(row * 1000 + i + seed);
      }
    }
  }

  /// Expects that an operation computes the same numbers with near rows and with far ones.
  static void expect_same_far(bool source_is_far, bool destination_is_far, std::uint64_t odd, const ragged::run& with) {
    const far_operation& op = GetParam();
    const auto at = [&](const far_memory& memory, bool is_far) {
      return word_matrix{memory.address() + odd, columns, rows, is_far ? far_pitch : near_pitch};
    };
    const std::uint64_t results = op.turned({0, columns, rows, 0}).rows;
    const far_memory near_source(1 << 20, {0}, sea::zeros);
    const far_memory near_destination(1 << 20, {0}, sea::zeros);
    const far_memory source_memory(rows * far_pitch, row_places(rows), sea::zeros);
    const far_memory memory(results * far_pitch, row_places(results), sea::zeros);
    word_matrix wanted = op.turned(at(near_destination, false));
    word_matrix found = op.turned(at(memory, destination_is_far));
    if (!op.far[1]) wanted.pitch = found.pitch = wanted.columns * op.bytes[1];  // packed
    word_matrix near_from = at(near_source, false);
    word_matrix from = at(source_memory, source_is_far);
    if (!op.far[0]) near_from.pitch = from.pitch = columns * op.bytes[0];
    for (const word_matrix& each : {near_from, from}) write_numbers(each, op.bytes[0], 1);
    for (const word_matrix& each : {wanted, found}) write_numbers(each, op.bytes[1], 2);
    ragged::tensor_status status{1};
    ragged::run asked = with;
    asked.statuses = &status;
    ASSERT_TRUE(op.run(near_from, wanted, asked));
    ASSERT_EQ(status.bits, 0u);
    const auto done = op.run(from, found, asked);
    ASSERT_TRUE(done) << to_string(done.error());
    ASSERT_EQ(status.bits, 0u);
    const std::uint64_t row_bytes = found.columns * op.bytes[1];
    for (std::uint64_t row = 0; row < found.rows; ++row) {
      ASSERT_EQ(std::memcmp(found.row(row), wanted.row(row), row_bytes), 0) << "row " << row;
      std::memset(found.row(row), 0xa5, row_bytes);
    }
    for (const std::span<std::byte> island : memory.islands()) {
      const auto changed = std::find_if(island.begin(), island.end(), [](auto b) { return b != far_memory::poison; });
      ASSERT_TRUE(changed == island.end()) << "a byte outside the rows";
    }
  }
};

TEST_P(ragged_far, as_near) {
  for (const route_policy policy : {route_policy::enable, route_policy::disable, route_policy::force}) {
    ragged::run with{on_host{}};
    with.choices.policy = policy;
    if (policy == route_policy::force) with.choices.allowed = route_bit(route::tensor_map);
    for (const std::uint64_t odd : {0, 4}) {
      if (GetParam().far[0]) expect_same_far(true, false, odd, with);
      if (GetParam().far[1]) expect_same_far(false, true, odd, with);
      ASSERT_FALSE(HasFailure()) << "policy " << static_cast<int>(policy) << ", odd " << odd;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(operations, ragged_far, ::testing::ValuesIn(far_operations),
                         [](const auto& tested) { return std::string(tested.param.name); });

/// Uses row numbers above 2^32 with rows of a few bytes.
TEST(ragged_far_rows, numbers_above2_to32) {
  constexpr std::uint64_t pitch = 3;
  const std::int64_t numbers[]{two_32 + 7, two_31, 0, two_32 + 8, two_32 + 20, 1};
  constexpr std::uint64_t rows = two_32 + 9;
  const far_memory matrix(rows * pitch, {0, two_31 * pitch, two_32 * pitch}, sea::zeros);
  std::byte row[6][pitch];
  std::memset(row, 0x11, sizeof row);
  for (const std::span<std::byte> island : matrix.islands()) {
    for (std::byte& byte : island) byte = noise_of(static_cast<std::uint64_t>(&byte - matrix.data()));
  }
  const ragged::row_matrix far{matrix.address(), rows, pitch, pitch};
  const ragged::row_matrix near{reinterpret_cast<std::uint64_t>(row), 6, pitch, pitch};
  const ragged::row_index index{numbers, 6, 8};
  batch_header header;
  ragged::run with{on_host{}};
  with.header = &header;
  ASSERT_TRUE(ragged::gather_rows(far, index, near, with));
  EXPECT_EQ(header.bad_count, 1u);
  EXPECT_EQ(header.first_bad, 4u);
  for (std::uint64_t i = 0; i < 6; ++i) {
    for (std::uint64_t byte = 0; byte < pitch; ++byte) {
      const std::byte there = noise_of(static_cast<std::uint64_t>(numbers[i]) * pitch + byte);
      EXPECT_EQ(row[i][byte], i == 4 ? std::byte{0x11} : there) << "row " << i;
      row[i][byte] = static_cast<std::byte>(100 + 10 * i + byte);
    }
  }
  ASSERT_TRUE(ragged::scatter_rows(near, index, far, with));
  for (std::uint64_t i = 0; i < 6; ++i) {
    if (i == 4) continue;
    const std::byte* const there = matrix.data() + static_cast<std::uint64_t>(numbers[i]) * pitch;
    EXPECT_EQ(std::memcmp(there, row[i], pitch), 0) << "row " << i;
    EXPECT_EQ(there[-1], numbers[i] == 1 ? std::byte{122}
                         : numbers[i] == static_cast<std::int64_t>(two_32 + 8)
                             ? std::byte{102}
                             : noise_of(static_cast<std::uint64_t>(numbers[i]) * pitch - 1));
  }
}

/// Touches only the low corner of a source of 2^40 rows and of a dense tensor of the same size.
TEST(ragged_far_rows, corners_of_the_largest) {
  constexpr std::uint64_t most = std::uint64_t{1} << 40;
  std::uint32_t words[12];
  for (std::uint32_t i = 0; i < 12; ++i) words[i] = 1000 + i;
  std::uint32_t found[6]{};
  dense_batch dense{};
  dense.address = reinterpret_cast<std::uint64_t>(found);
  dense.dim[0] = 2;
  dense.dim[1] = 3;
  ragged::tensor_status status;
  ragged::run with{on_host{}};
  with.statuses = &status;
  const one_tensor<2> tall(reinterpret_cast<std::uint64_t>(words), 4, {4, most}, 16);
  ASSERT_TRUE(ragged::pad(tall.batch, dense, {}, with));
  EXPECT_EQ(status.bits, static_cast<std::uint32_t>(ragged::fault::truncated));
  for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(found[i], 1000 + i / 2 * 4 + i % 2);

  dense.address = reinterpret_cast<std::uint64_t>(words);
  dense.dim[0] = 4;
  dense.dim[1] = most;
  const one_tensor<2> corner(reinterpret_cast<std::uint64_t>(found), 4, {2, 2}, 8);
  std::memset(found, 0, sizeof found);
  ASSERT_TRUE(ragged::unpad(dense, corner.batch, with));
  EXPECT_EQ(status.bits, 0u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(found[i], 1000 + i / 2 * 4 + i % 2);
}

}  // namespace
}  // namespace tmap::testing
