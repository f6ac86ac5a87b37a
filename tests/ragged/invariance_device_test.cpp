// SPDX-License-Identifier: Apache-2.0
// Tests the promise that what `quantize` makes of a block has the same bits with any other rows and
// tensors in the call, in any order (docs/batch_invariance.md).
#include <tmap/ragged.hpp>

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "support/run_seed.hpp"

namespace tmap::testing {
namespace {

using ragged::quantize_values;
using ragged::scale_block;
using ragged::value_type;

/// Rows of a matrix without gaps.
struct some_rows {
  std::uint64_t first;
  std::uint64_t count;
};

/// The result for one or several parts of a matrix, one after the other.
struct quantized_rows {
  std::vector<unsigned char> values;  ///< [rows, columns], or the transpose of each part
  std::vector<std::uint32_t> scales;  ///< [blocks of rows, blocks of columns], as bits
};

class invariant_blocks : public gpu_test, public ::testing::WithParamInterface<std::tuple<scale_block, std::uint64_t>> {
 protected:
  static constexpr std::uint64_t rows = 1024;

  scale_block block() const { return std::get<0>(GetParam()); }
  std::uint64_t columns() const { return std::get<1>(GetParam()); }
  bool is_turned() const { return block() == scale_block::block_128x1; }
  std::uint64_t block_rows() const { return block() >= scale_block::block_128x128 ? 128 : 1; }
  std::uint64_t scales_of_row() const {
    if (is_turned()) return columns();
    return block() == scale_block::row ? 1 : (columns() + 127) / 128;
  }

  std::vector<__nv_bfloat16> draw(std::mt19937_64& random) const {
    std::normal_distribution<float> normal;
    std::vector<__nv_bfloat16> made;
    float unit = 1;
    for (std::uint64_t i = 0; i < rows * columns(); ++i) {
      if (i % 64 == 0) unit = std::ldexp(1.0f, static_cast<int>(random() % 20) - 10);
      made.push_back(__float2bfloat16(normal(random) * unit));
    }
    return made;
  }

  /// Cuts a random choice of the rows into tensors, whole blocks each, in any order.
  std::vector<some_rows> draw_parts(std::mt19937_64& random) const {
    std::vector<some_rows> made;
    const std::uint64_t blocks = rows / block_rows();
    for (std::uint64_t at = 0; at < blocks;) {
      const std::uint64_t most = std::min<std::uint64_t>(blocks - at, random() % 4 == 0 ? 300 : 5);
      const std::uint64_t count = 1 + random() % most;
      if (random() % 3 != 0) made.push_back({at * block_rows(), count * block_rows()});
      at += count;
    }
    if (made.empty()) made.push_back({0, rows});
    std::shuffle(made.begin(), made.end(), random);
    return made;
  }

  quantized_rows quantize_parts(const device_array<__nv_bfloat16>& source, const std::vector<some_rows>& parts) const {
    std::uint64_t all = 0;
    for (const some_rows& part : parts) all += part.count;
    const device_array<unsigned char> values(all * columns());
    const device_array<std::uint32_t> scales(all / block_rows() * scales_of_row());
    std::vector<map_patch> from;
    std::vector<map_patch> to;
    std::vector<map_patch> factors;
    std::uint64_t row = 0;
    for (const some_rows& part : parts) {
      from.push_back(place(source.address(), part.first, part.count, columns(), 2));
      const std::uint64_t begin = values.address() + row * columns();
      to.push_back(is_turned() ? place(begin, 0, columns(), part.count, 1) : place(begin, 0, part.count, columns(), 1));
      factors.push_back(
          place(scales.address(), row / block_rows(), part.count / block_rows(), scales_of_row(), sizeof(float)));
      row += part.count;
    }
    const device_array<map_patch> sources(from);
    const device_array<map_patch> destinations(to);
    const device_array<map_patch> scale_places(factors);
    const std::uint64_t count = parts.size();
    const std::uint64_t bytes = ragged::workspace_bytes(count, 2).value();
    const device_array<unsigned char> scratch(bytes);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const result<void> done = ragged::quantize(
        {patch_array{sources.data()}, count, 2, 2}, {patch_array{destinations.data()}, count, 1, 2},
        {patch_array{scale_places.data()}, count, 4, 2}, {value_type::bf16, value_type::f8_e4m3, block()},
        {on_stream{cuda::stream_ref{cudaStream_t{}}, {scratch.data(), bytes}}});
    EXPECT_TRUE(done.has_value()) << to_string(done.error());
    return {values.download(), scales.download()};
  }

  /// Returns the same parts of a whole result.
  quantized_rows cut(const quantized_rows& whole, const std::vector<some_rows>& parts) const {
    quantized_rows made;
    for (const some_rows& part : parts) {
      if (!is_turned()) append(made.values, whole.values, part.first * columns(), part.count * columns());
      for (std::uint64_t column = 0; is_turned() && column < columns(); ++column) {
        append(made.values, whole.values, column * rows + part.first, part.count);
      }
      append(made.scales, whole.scales, part.first / block_rows() * scales_of_row(),
             part.count / block_rows() * scales_of_row());
    }
    return made;
  }

 private:
  static map_patch place(std::uint64_t address, std::uint64_t row, std::uint64_t count, std::uint64_t columns,
                         std::uint64_t element_bytes) {
    map_patch patch{};
    patch.global_address = address + row * columns * element_bytes;
    patch.global_dim[0] = columns;
    patch.global_dim[1] = count;
    patch.global_stride_bytes[0] = columns * element_bytes;
    return patch;
  }
  template <class T>
  static void append(std::vector<T>& to, const std::vector<T>& from, std::uint64_t first, std::uint64_t count) {
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(first);
    to.insert(to.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
  }
};

TEST_P(invariant_blocks, have_the_same_bits_among_any_others) {
  std::mt19937_64 random = run_random(61);
  const device_array<__nv_bfloat16> source(draw(random));
  const quantized_rows whole = quantize_parts(source, {{0, rows}});
  EXPECT_TRUE(std::none_of(whole.scales.begin(), whole.scales.end(), is_poison<std::uint32_t>));
  for (std::uint32_t round = 0; round < 8; ++round) {
    const std::vector<some_rows> parts = draw_parts(random);
    const quantized_rows got = quantize_parts(source, parts);
    const quantized_rows want = cut(whole, parts);
    EXPECT_TRUE(got.values == want.values) << "round " << round << ", tensors " << parts.size();
    EXPECT_TRUE(got.scales == want.scales) << "round " << round << ", tensors " << parts.size();
  }
}

INSTANTIATE_TEST_SUITE_P(all, invariant_blocks,
                         ::testing::Combine(::testing::Values(scale_block::row, scale_block::block_1x128,
                                                              scale_block::block_128x128, scale_block::block_128x1),
                                            ::testing::Values(100u, 512u, 1000u, 4096u, 7168u)));

}  // namespace
}  // namespace tmap::testing
