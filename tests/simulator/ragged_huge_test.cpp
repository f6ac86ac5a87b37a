// SPDX-License-Identifier: Apache-2.0
// Runs the operations on the host with tensors of more than 2^31 elements and more than 4 GiB.
#include <tmap/ragged.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "simulator/far_memory.hpp"

namespace tmap::testing {
namespace {

using sea = far_memory::sea;

// The thread sanitizer keeps several bytes for each written byte, even in a sink.
#if !defined(__SANITIZE_THREAD__)

/// Uses one row of 2^31 + 5 elements of two bytes on each side, with noise around its ends and its
/// middle and zeros in between.
class ragged_huge : public ::testing::Test {
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

  /// Expects that the destination holds `count` bytes of the source from `shift` on, then `after`,
  /// and is unchanged elsewhere.
  void expect_copied(std::uint64_t count, std::span<const std::byte> after = {}) const {
    EXPECT_EQ(static_cast<int>(destination_.data()[in_the_sea]), 0);
    for (const std::span<std::byte> island : destination_.islands()) {
      std::uint64_t wrong = 0;
      for (const std::byte& byte : island) {
        const auto at = static_cast<std::uint64_t>(&byte - destination_.data()) - shift;
        std::byte expected = far_memory::poison;
        if (at < count) expected = source_.data()[at];
        if (at >= count && at - count < after.size()) expected = after[at - count];
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
  ragged::run with_ = [this] {
    ragged::run with{on_host{}};
    with.statuses = &status_;
    return with;
  }();
};

TEST_F(ragged_huge, copy) {
  ASSERT_TRUE(ragged::copy(from_.batch, to_.batch, with_));
  EXPECT_EQ(status_.bits, 0u);
  expect_copied(bytes);
}

/// The second tensor begins above 4 GiB.
TEST_F(ragged_huge, pack) {
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
  ASSERT_TRUE(ragged::pack(batch, packed, with_));
  EXPECT_EQ(statuses[0].bits | statuses[1].bits, 0u);
  EXPECT_EQ(begins[1], static_cast<std::int64_t>(bytes));
  EXPECT_EQ(begins[2], static_cast<std::int64_t>(bytes + 10));
  expect_copied(bytes, small);
}

TEST_F(ragged_huge, unpack) {
  const ragged::packed_buffer packed{source_.data(), bytes, 1, nullptr};
  ASSERT_TRUE(ragged::unpack(packed, to_.batch, with_));
  EXPECT_EQ(status_.bits, 0u);
  expect_copied(bytes);
}

TEST_F(ragged_huge, pad) {
  dense_batch dense{};
  dense.address = destination_.address() + shift;
  dense.dim[0] = elements + 7;
  ragged::fill_value fill{{0x12, 0x34}};
  std::byte after[14];
  for (std::uint64_t i = 0; i < sizeof after; ++i) after[i] = static_cast<std::byte>(fill.bytes[i % 2]);
  ASSERT_TRUE(ragged::pad(from_.batch, dense, fill, with_));
  EXPECT_EQ(status_.bits, 0u);
  expect_copied(bytes, after);
}

TEST_F(ragged_huge, unpad) {
  dense_batch dense{};
  dense.address = source_.address();
  dense.dim[0] = elements + 1;
  ASSERT_TRUE(ragged::unpad(dense, to_.batch, with_));
  EXPECT_EQ(status_.bits, 0u);
  expect_copied(bytes);
}

/// Computing with more than 2^31 elements takes the host half a minute and two copies of them in
/// memory. Run it with --gtest_also_run_disabled_tests.
class DISABLED_ragged_huge_values : public ::testing::Test {
 protected:
  static constexpr std::uint64_t elements = two_31 + 5;
  using operation = result<void> (*)(const tensor_batch& from, const tensor_batch& to);

  /// Returns the bytes of elements 0, 2^29, 2^30 and 2^31.
  static std::vector<std::uint64_t> places(std::uint64_t element_bytes) {
    return {0, two_31 / 4 * element_bytes, two_31 / 2 * element_bytes, two_31 * element_bytes};
  }

  static void write_noise(const far_memory& memory) {
    for (const std::span<std::byte> island : memory.islands()) {
      for (std::byte& byte : island) byte = noise_of(static_cast<std::uint64_t>(&byte - memory.data()));
    }
  }

  /// Runs an operation on one row. Around each place, expects the result of the operation on `part`
  /// elements alone, except for elements closer to the part's ends than `reach`.
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

TEST_F(DISABLED_ragged_huge_values, cast) {
  expect_as_in_parts(2, 1, 0, [](const tensor_batch& from, const tensor_batch& to) {
    ragged::cast_values values{};
    values.from = ragged::value_type::f16;
    values.to = ragged::value_type::f8_e4m3;
    return ragged::cast(from, to, values, {on_host{}});
  });
}

TEST_F(DISABLED_ragged_huge_values, saxpy) {
  expect_as_in_parts(
      4, 4, 0, [](const tensor_batch& x, const tensor_batch& y) { return ragged::saxpy(2.5f, x, y, {on_host{}}); });
}

TEST_F(DISABLED_ragged_huge_values, max_pool) {
  expect_as_in_parts(4, 4, 3, [](const tensor_batch& from, const tensor_batch& to) {
    return ragged::max_pool_1d(from, to, 3, {on_host{}});
  });
}

TEST_F(DISABLED_ragged_huge_values, reduce_rows) {
  const far_memory source(elements * 2, places(2), sea::zeros);
  for (const std::span<std::byte> island : source.islands()) std::fill(island.begin(), island.end(), std::byte{0});
  std::uint16_t* const halves = reinterpret_cast<std::uint16_t*>(source.data());
  const std::uint64_t ones[]{0, 17, two_31 / 2, two_31 / 2 + 1, two_31 - 1, two_31 + 3, two_31 + 4};
  for (const std::uint64_t i : ones) halves[i] = 0x3f80;
  float sum = 0;
  const one_tensor<1> from(source.address(), 2, {elements});
  const one_tensor<1> to(reinterpret_cast<std::uint64_t>(&sum), 4, {1});
  ASSERT_TRUE(
      ragged::reduce_rows(from.batch, ragged::value_type::bf16, ragged::row_reduction::sum, to.batch, {on_host{}}));
  EXPECT_EQ(sum, 7.0f);
}

TEST_F(DISABLED_ragged_huge_values, transpose) {
  const far_memory source(2 * elements, {0, elements, two_31, two_32}, sea::zeros);
  const far_memory destination(2 * elements, {0, two_31, two_32}, sea::sink);
  write_noise(source);
  const one_tensor<2> from(source.address(), 1, {elements, 2}, elements);
  const one_tensor<2> to(destination.address(), 1, {2, elements}, 2);
  ASSERT_TRUE(ragged::transpose(from.batch, to.batch, {on_host{}}));
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

}  // namespace
}  // namespace tmap::testing
