// SPDX-License-Identifier: Apache-2.0
// The operations on the host above 2^31 elements and above 4 GiB: tensors that are so large, and rows, places and row
// numbers that lie so far apart.
#include <tmap/ragged_host.hpp>

#include <gtest/gtest.h>

#include <cstring>

#include "simulator/far_memory.hpp"
#include "support/random_spec.hpp"

namespace tmap::testing {
namespace {

namespace on_host = ragged::on_host;
using sea = far_memory::sea;

constexpr std::uint64_t two_31 = std::uint64_t{1} << 31;
constexpr std::uint64_t two_32 = std::uint64_t{1} << 32;

std::byte noise_of(std::uint64_t i) {
  const std::uint64_t bits = (i + 1) * 0x9e3779b97f4a7c15;
  return static_cast<std::byte>(bits >> 56);
}

template <std::uint32_t Rank>
struct one_tensor {
  map_patch patch{};
  tensor_batch batch{};

  one_tensor(std::uint64_t address, std::uint32_t element_bytes, const std::uint64_t (&dim)[Rank],
             std::uint64_t pitch = 0) {
    patch.global_address = address;
    std::copy(dim, dim + Rank, patch.global_dim);
    patch.global_stride_bytes[0] = pitch;
    batch.tensors = patch_array{&patch};
    batch.count = 1;
    batch.element_bytes = element_bytes;
    batch.rank = Rank;
    batch.side = array_side::host;
  }
  one_tensor(const one_tensor&) = delete;
  one_tensor& operator=(const one_tensor&) = delete;
};

// The thread sanitizer keeps several bytes of its own for each that is written, also in a sink.
#if !defined(__SANITIZE_THREAD__)

/// One row of 2^31 + 5 elements of two bytes on each side, noise about its ends and its middle, zeros between.
class RaggedHuge : public ::testing::Test {
 protected:
  static constexpr std::uint64_t elements = two_31 + 5;
  static constexpr std::uint64_t bytes = 2 * elements;
  static constexpr std::uint64_t shift = 2;  ///< of the destination's row
  static constexpr std::uint64_t in_the_sea = std::uint64_t{1} << 30;

  void SetUp() override {
    for (const std::span<std::byte> island : source_.islands()) {
      std::fill(island.begin(), island.end(), std::byte{0});
      for (std::uint64_t i = far_memory::page; i < island.size() - far_memory::page; ++i) {
        island[i] = noise_of(static_cast<std::uint64_t>(&island[i] - source_.data()));
      }
    }
    std::memset(destination_.data() + in_the_sea, 0x5a, std::uint64_t{2} << 20);
  }

  /// The destination holds `count` bytes of the source from `shift` on, then `behind`, and nothing else is new.
  void expect_copied(std::uint64_t count, std::span<const std::byte> behind = {}) const {
    EXPECT_EQ(static_cast<int>(destination_.data()[in_the_sea]), 0);
    for (const std::span<std::byte> island : destination_.islands()) {
      std::uint64_t wrong = 0;
      for (const std::byte& byte : island) {
        const auto at = static_cast<std::uint64_t>(&byte - destination_.data()) - shift;
        std::byte expected = far_memory::poison;
        if (at < count) expected = source_.data()[at];
        if (at >= count && at - count < behind.size()) expected = behind[at - count];
        wrong += byte == expected ? 0 : 1;
      }
      EXPECT_EQ(wrong, 0u) << "bytes of the island that ends at " << &island.back() - destination_.data();
    }
  }

  far_memory source_{bytes, {0, two_31, two_32}, sea::zeros};
  far_memory destination_{bytes + 64, {0, two_31, two_32}, sea::sink};
  one_tensor<1> from_{source_.address(), 2, {elements}};
  one_tensor<1> to_{destination_.address() + shift, 2, {elements}};
  ragged::tensor_status status_{1};
  ragged::options with_ = [this] {
    ragged::options with;
    with.statuses = &status_;
    return with;
  }();
};

TEST_F(RaggedHuge, Copy) {
  ASSERT_TRUE(on_host::copy(from_.batch, to_.batch, with_));
  EXPECT_EQ(status_.bits, 0u);
  expect_copied(bytes);
}

/// The second tensor begins above 4 GiB.
TEST_F(RaggedHuge, Pack) {
  std::byte small[10];
  std::memset(small, 0x77, sizeof small);
  const map_patch both[]{from_.patch, one_tensor<1>(reinterpret_cast<std::uint64_t>(small), 2, {5}).patch};
  tensor_batch batch = from_.batch;
  batch.tensors = patch_array{both};
  batch.count = 2;
  std::int64_t begins[3]{};
  ragged::tensor_status statuses[2]{{1}, {1}};
  with_.statuses = statuses;
  const ragged::packed_buffer packed{destination_.data() + shift, bytes + 10, 2, begins};
  ASSERT_TRUE(on_host::pack(batch, packed, with_));
  EXPECT_EQ(statuses[0].bits | statuses[1].bits, 0u);
  EXPECT_EQ(begins[1], static_cast<std::int64_t>(bytes));
  EXPECT_EQ(begins[2], static_cast<std::int64_t>(bytes + 10));
  expect_copied(bytes, small);
}

TEST_F(RaggedHuge, Unpack) {
  const ragged::packed_buffer packed{source_.data(), bytes, 1, nullptr};
  ASSERT_TRUE(on_host::unpack(packed, to_.batch, with_));
  EXPECT_EQ(status_.bits, 0u);
  expect_copied(bytes);
}

TEST_F(RaggedHuge, Pad) {
  dense_batch dense{};
  dense.address = destination_.address() + shift;
  dense.dim[0] = elements + 7;
  ragged::fill_value fill{{0x12, 0x34}};
  std::byte behind[14];
  for (std::uint64_t i = 0; i < sizeof behind; ++i) behind[i] = static_cast<std::byte>(fill.bytes[i % 2]);
  ASSERT_TRUE(on_host::pad(from_.batch, dense, fill, with_));
  EXPECT_EQ(status_.bits, 0u);
  expect_copied(bytes, behind);
}

TEST_F(RaggedHuge, Unpad) {
  dense_batch dense{};
  dense.address = source_.address();
  dense.dim[0] = elements + 1;
  ASSERT_TRUE(on_host::unpad(dense, to_.batch, with_));
  EXPECT_EQ(status_.bits, 0u);
  expect_copied(bytes);
}

/// What computes with more than 2^31 elements takes the host half a minute and two copies of them in memory:
/// --gtest_also_run_disabled_tests.
class DISABLED_RaggedHugeValues : public ::testing::Test {
 protected:
  static constexpr std::uint64_t elements = two_31 + 5;
  using operation = result<void> (*)(const tensor_batch& from, const tensor_batch& to);

  /// Elements 0, 2^29, 2^30 and 2^31.
  static std::vector<std::uint64_t> places(std::uint64_t element_bytes) {
    return {0, two_31 / 4 * element_bytes, two_31 / 2 * element_bytes, two_31 * element_bytes};
  }

  static void write_noise(const far_memory& memory) {
    for (const std::span<std::byte> island : memory.islands()) {
      for (std::byte& byte : island) byte = noise_of(static_cast<std::uint64_t>(&byte - memory.data()));
    }
  }

  /// One row; about each place the destination is what the operation makes of `part` elements of it alone, but for
  /// those nearer to its ends than `reach`.
  static void expect_as_in_parts(std::uint32_t from_bytes, std::uint32_t to_bytes, std::uint64_t reach, operation run) {
    constexpr std::uint64_t part = 1000;
    const far_memory source(elements * from_bytes, places(from_bytes), sea::zeros);
    const far_memory destination(elements * to_bytes, places(to_bytes), sea::sink);
    write_noise(source);
    write_noise(destination);
    std::vector<std::vector<std::byte>> wanted;
    const std::uint64_t firsts[]{0, two_31 / 4 - 500, two_31 / 2 - 500, elements - part};
    for (const std::uint64_t first : firsts) {
      const std::byte* const before = destination.data() + first * to_bytes;
      wanted.emplace_back(before, before + part * to_bytes);
      const one_tensor<1> from(source.address() + first * from_bytes, from_bytes, {part});
      const one_tensor<1> to(reinterpret_cast<std::uint64_t>(wanted.back().data()), to_bytes, {part});
      ASSERT_TRUE(run(from.batch, to.batch));
    }
    const one_tensor<1> from(source.address(), from_bytes, {elements});
    const one_tensor<1> to(destination.address(), to_bytes, {elements});
    ASSERT_TRUE(run(from.batch, to.batch));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::byte* const found = destination.data() + (firsts[i] + reach) * to_bytes;
      const std::byte* const expected = wanted[i].data() + reach * to_bytes;
      EXPECT_EQ(std::memcmp(found, expected, (part - 2 * reach) * to_bytes), 0) << "from " << firsts[i];
    }
  }
};

TEST_F(DISABLED_RaggedHugeValues, Cast) {
  expect_as_in_parts(2, 1, 0, [](const tensor_batch& from, const tensor_batch& to) {
    ragged::cast_values values{};
    values.from = ragged::value_type::f16;
    values.to = ragged::value_type::f8_e4m3;
    return on_host::cast(from, to, values);
  });
}

TEST_F(DISABLED_RaggedHugeValues, Saxpy) {
  expect_as_in_parts(4, 4, 0, [](const tensor_batch& x, const tensor_batch& y) { return on_host::saxpy(2.5f, x, y); });
}

TEST_F(DISABLED_RaggedHugeValues, MaxPool) {
  expect_as_in_parts(
      4, 4, 3, [](const tensor_batch& from, const tensor_batch& to) { return on_host::max_pool_1d(from, to, 3); });
}

TEST_F(DISABLED_RaggedHugeValues, ReduceRows) {
  const far_memory source(elements * 2, places(2), sea::zeros);
  for (const std::span<std::byte> island : source.islands()) std::fill(island.begin(), island.end(), std::byte{0});
  std::uint16_t* const halves = reinterpret_cast<std::uint16_t*>(source.data());
  const std::uint64_t ones[]{0, 17, two_31 / 2, two_31 / 2 + 1, two_31 - 1, two_31 + 3, two_31 + 4};
  for (const std::uint64_t i : ones) halves[i] = 0x3f80;
  float sum = 0;
  const one_tensor<1> from(source.address(), 2, {elements});
  const one_tensor<1> to(reinterpret_cast<std::uint64_t>(&sum), 4, {1});
  ASSERT_TRUE(on_host::reduce_rows(from.batch, ragged::value_type::bf16, ragged::row_reduction::sum, to.batch));
  EXPECT_EQ(sum, 7.0f);
}

TEST_F(DISABLED_RaggedHugeValues, Transpose) {
  const far_memory source(2 * elements, {0, elements, two_31, two_32}, sea::zeros);
  const far_memory destination(2 * elements, {0, two_31, two_32}, sea::sink);
  write_noise(source);
  const one_tensor<2> from(source.address(), 1, {elements, 2}, elements);
  const one_tensor<2> to(destination.address(), 1, {2, elements}, 2);
  ASSERT_TRUE(on_host::transpose(from.batch, to.batch));
  for (const std::span<std::byte> island : destination.islands()) {
    std::uint64_t wrong = 0;
    for (const std::byte& byte : island) {
      const auto at = static_cast<std::uint64_t>(&byte - destination.data());
      const std::byte expected = at < 2 * elements ? source.data()[at % 2 * elements + at / 2] : far_memory::poison;
      wrong += byte == expected ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0u) << "bytes of the island that ends at " << &island.back() - destination.data();
  }
}

#endif

/// A matrix of words that stand for f32, u8 or whatever an operation takes them for, each row an island.
struct word_matrix {
  std::uint64_t address;
  std::uint64_t columns;
  std::uint64_t rows;
  std::uint64_t pitch;

  std::byte* row(std::uint64_t i) const { return reinterpret_cast<std::byte*>(address + i * pitch); }
};

struct far_operation {
  const char* name;
  std::uint32_t bytes[2];                   ///< of an element of both sides
  word_matrix (*turned)(word_matrix from);  ///< the destination, of the source
  result<void> (*run)(const word_matrix& from, const word_matrix& to, const ragged::options& with);
  bool far[2];  ///< sides whose rows may lie anywhere
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
using chosen = const ragged::options&;
const far_operation far_operations[] = {
    {"copy",
     {4, 4},
     same,
     [](word from, word to, chosen with) {
       return with_batches<4, 4>(from, to, [&](auto& a, auto& b) { return on_host::copy(a, b, with); });
     },
     {true, true}},
    {"pack",
     {4, 4},
     same,
     [](word from, word to, chosen with) {
       return with_batches<4, 4>(from, to, [&](auto& a, auto&) { return on_host::pack(a, buffer_of(to), with); });
     },
     {true, false}},
    {"unpack",
     {4, 4},
     same,
     [](word from, word to, chosen with) {
       return with_batches<4, 4>(from, to, [&](auto&, auto& b) { return on_host::unpack(buffer_of(from), b, with); });
     },
     {false, true}},
    {"pad",
     {4, 4},
     same,
     [](word from, word to, chosen with) {
       const word_matrix part{from.address, from.columns - 4, from.rows - 1, from.pitch};
       const ragged::fill_value fill{{1, 2, 3, 4}};
       return with_batches<4, 4>(part, to, [&](auto& a, auto&) { return on_host::pad(a, dense_of(to), fill, with); });
     },
     {true, true}},
    {"unpad",
     {4, 4},
     same,
     [](word from, word to, chosen with) {
       return with_batches<4, 4>(from, to, [&](auto&, auto& b) { return on_host::unpad(dense_of(from), b, with); });
     },
     {true, true}},
    {"transpose",
     {4, 4},
     swapped,
     [](word from, word to, chosen with) {
       return with_batches<4, 4>(from, to, [&](auto& a, auto& b) { return on_host::transpose(a, b, with); });
     },
     {true, true}},
    {"cast",
     {1, 4},
     same,
     [](word from, word to, chosen with) {
       ragged::cast_values values{};
       values.to = ragged::value_type::f32;
       values.scale = 3;
       return with_batches<1, 4>(from, to, [&](auto& a, auto& b) { return on_host::cast(a, b, values, with); });
     },
     {true, true}},
    {"saxpy",
     {4, 4},
     same,
     [](word from, word to, chosen with) {
       return with_batches<4, 4>(from, to, [&](auto& a, auto& b) { return on_host::saxpy(2.5f, a, b, with); });
     },
     {true, true}},
    {"max_pool_1d",
     {4, 4},
     same,
     [](word from, word to, chosen with) {
       return with_batches<4, 4>(from, to, [&](auto& a, auto& b) { return on_host::max_pool_1d(a, b, 3, with); });
     },
     {true, true}},
    {"reduce_rows",
     {4, 4},
     reduced,
     [](word from, word to, chosen with) {
       return with_batches<4, 4>(from, to, [&](auto& a, auto& b) {
         return on_host::reduce_rows(a, ragged::value_type::f32, ragged::row_reduction::sum, b, with);
       });
     },
     {true, true}},
};

class RaggedFar : public ::testing::TestWithParam<far_operation> {
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

  /// Of element `i` of row `row` what every type finds a number of its own.
  static void write_numbers(const word_matrix& matrix, std::uint32_t bytes, std::uint32_t seed) {
    for (std::uint64_t row = 0; row < matrix.rows; ++row) {
      for (std::uint64_t i = 0; i < matrix.columns; ++i) {
        const auto number = static_cast<float>(static_cast<int>(noise_of(row * 1000 + i + seed)) - 100);
        std::memcpy(matrix.row(row) + i * bytes, &number, bytes);
        if (bytes == 1) matrix.row(row)[i] = noise_of(row * 1000 + i + seed);
      }
    }
  }

  /// The same operation with near rows and with far ones, from the same numbers to the same.
  static void expect_same_far(bool source_is_far, bool destination_is_far, std::uint64_t odd,
                              const ragged::options& with) {
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
    ragged::options asked = with;
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

TEST_P(RaggedFar, AsNear) {
  for (const route_policy policy : {route_policy::enable, route_policy::disable, route_policy::force}) {
    ragged::options with;
    with.policy = policy;
    if (policy == route_policy::force) with.allowed = route_bit(route::tensor_map);
    for (const std::uint64_t odd : {0, 4}) {
      if (GetParam().far[0]) expect_same_far(true, false, odd, with);
      if (GetParam().far[1]) expect_same_far(false, true, odd, with);
      ASSERT_FALSE(HasFailure()) << "policy " << static_cast<int>(policy) << ", odd " << odd;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, RaggedFar, ::testing::ValuesIn(far_operations),
                         [](const auto& tested) { return std::string(tested.param.name); });

/// Row numbers above 2^32, of rows that are a few bytes long.
TEST(RaggedFarRows, NumbersAbove2To32) {
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
  ragged::options with;
  with.header = &header;
  ASSERT_TRUE(on_host::gather_rows(far, index, near, with));
  EXPECT_EQ(header.bad_count, 1u);
  EXPECT_EQ(header.first_bad, 4u);
  for (std::uint64_t i = 0; i < 6; ++i) {
    for (std::uint64_t byte = 0; byte < pitch; ++byte) {
      const std::byte there = noise_of(static_cast<std::uint64_t>(numbers[i]) * pitch + byte);
      EXPECT_EQ(row[i][byte], i == 4 ? std::byte{0x11} : there) << "row " << i;
      row[i][byte] = static_cast<std::byte>(100 + 10 * i + byte);
    }
  }
  ASSERT_TRUE(on_host::scatter_rows(near, index, far, with));
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

/// Of a source of 2^40 rows and a dense tensor as large only the low corner is touched.
TEST(RaggedFarRows, CornersOfTheLargest) {
  constexpr std::uint64_t most = std::uint64_t{1} << 40;
  std::uint32_t words[12];
  for (std::uint32_t i = 0; i < 12; ++i) words[i] = 1000 + i;
  std::uint32_t found[6]{};
  dense_batch dense{};
  dense.address = reinterpret_cast<std::uint64_t>(found);
  dense.dim[0] = 2;
  dense.dim[1] = 3;
  ragged::tensor_status status;
  ragged::options with;
  with.statuses = &status;
  const one_tensor<2> tall(reinterpret_cast<std::uint64_t>(words), 4, {4, most}, 16);
  ASSERT_TRUE(on_host::pad(tall.batch, dense, {}, with));
  EXPECT_EQ(status.bits, static_cast<std::uint32_t>(ragged::fault::truncated));
  for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(found[i], 1000 + i / 2 * 4 + i % 2);

  dense.address = reinterpret_cast<std::uint64_t>(words);
  dense.dim[0] = 4;
  dense.dim[1] = most;
  const one_tensor<2> corner(reinterpret_cast<std::uint64_t>(found), 4, {2, 2}, 8);
  std::memset(found, 0, sizeof found);
  ASSERT_TRUE(on_host::unpad(dense, corner.batch, with));
  EXPECT_EQ(status.bits, 0u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(found[i], 1000 + i / 2 * 4 + i % 2);
}

}  // namespace
}  // namespace tmap::testing
