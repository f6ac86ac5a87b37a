// SPDX-License-Identifier: Apache-2.0
// Compares the kernels that pad rows without gaps with the host, byte for byte, for every element
// size, any alignment and wild offsets. Checks that they write nothing else. Where offsets
// decrease, several values of a row are right.
#include <tmap/detail/padded_tensor.hpp>
#include <tmap/padded_rows.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "support/random_spec.hpp"

namespace tmap::ragged::testing {
namespace {

using namespace tmap::testing;

constexpr std::uint64_t margin = 64;  ///< bytes before and after an array

/// Holds an array at a random multiple of an element's size, once on the host and once on the GPU.
struct both_sides {
  both_sides(random_source& random, std::uint64_t bytes, std::uint32_t alignment)
      : skipped(margin + random.below(16 / alignment + 1) * alignment), host(bytes + 2 * margin + 16, poison) {}

  static constexpr unsigned char poison = device_array<unsigned char>::poison;

  device_address on_host() { return host.data() + skipped; }
  device_address on_device(const device_array<unsigned char>& device) const {
    return device_address{device.address() + skipped};
  }

  std::uint64_t skipped;
  std::vector<unsigned char> host;
};

/// Holds rows of random sizes, and what cuts them.
struct padding_case {
  explicit padding_case(random_source& random) {
    about.element_bytes = random.pick<std::uint32_t>({1, 2, 4, 8, 16});
    about.row_bytes = about.element_bytes * (1 + random.below(random.one_in(4) ? 3000 : 40));
    about.rows = random.below(random.one_in(4) ? 3000 : 60);
    about.count = 1 + random.below(random.one_in(4) ? 700 : 12);
    about.longest = 1 + random.below(random.one_in(4) ? 200 : 12);
    is_prefix = random.one_in(2);
    offsets.resize(about.count + (is_prefix ? 1 : 0));
    std::int64_t end = 0;
    for (std::int64_t& each : offsets) {
      end += static_cast<std::int64_t>(random.below(2 * about.rows / about.count + 2));
      each = random.one_in(20) ? static_cast<std::int64_t>(random.bits()) : end;
    }
    for (unsigned char& byte : fill.bytes) byte = static_cast<unsigned char>(random.bits());
  }

  padded_rows between(device_address values, device_address dense, const void* cuts) const {
    padded_rows rows = about;
    rows.values = values;
    rows.dense = dense;
    rows.offsets = {cuts, is_prefix ? offset_format::prefix : offset_format::ends, sizeof(std::int64_t)};
    return rows;
  }
  std::string text() const {
    return std::to_string(about.rows) + " rows of " + std::to_string(about.row_bytes) + " bytes, elements of " +
           std::to_string(about.element_bytes) + ", " + std::to_string(about.count) + " x " +
           std::to_string(about.longest);
  }

  padded_rows about{};
  bool is_prefix;
  std::vector<std::int64_t> offsets;
  fill_value fill{};
};

/// Returns whether the offsets, cut to the rows, decrease somewhere.
bool decreases(const padded_rows& here) {
  for (std::uint64_t tensor = 0; tensor < here.count; ++tensor) {
    const auto [begin, end] = tmap::detail::rows_of_tensor(here, tensor);
    if (end < begin) return true;
  }
  return false;
}

/// Returns whether each byte of a row of `values` is zero, or that of a tensor that has the row.
bool may_be(const padded_rows& here, std::uint64_t row, const unsigned char* bytes) {
  std::vector<bool> right(here.row_bytes);
  for (std::uint64_t i = 0; i < here.row_bytes; ++i) right[i] = bytes[i] == 0;
  for (std::uint64_t tensor = 0; tensor < here.count; ++tensor) {
    const auto [begin, end] = tmap::detail::rows_of_tensor(here, tensor);
    if (row < begin || row >= end || row - begin >= here.longest) continue;
    const std::uint64_t at = (tensor * here.longest + row - begin) * here.row_bytes;
    const auto* const dense = reinterpret_cast<const unsigned char*>(here.dense + at);
    for (std::uint64_t i = 0; i < here.row_bytes; ++i) right[i] = right[i] || bytes[i] == dense[i];
  }
  return std::find(right.begin(), right.end(), false) == right.end();
}

/// Checks the rows that were found, and expects them.
void check_and_take(const padded_rows& here, const std::vector<unsigned char>& found, both_sides& values) {
  for (std::uint64_t row = 0; row < here.rows; ++row) {
    const std::uint64_t at = values.skipped + row * here.row_bytes;
    ASSERT_TRUE(may_be(here, row, found.data() + at)) << "row " << row;
    std::copy_n(found.data() + at, here.row_bytes, values.host.data() + at);
  }
}

using pad_rows_on_device = gpu_test;

TEST_F(pad_rows_on_device, gives_the_bytes_of_the_host_and_no_others) {
  random_source random{0x9ad5};
  int decreasing = 0;
  for (int trial = 0; trial < 300; ++trial) {
    padding_case drawn{random};
    SCOPED_TRACE(drawn.text());
    const std::uint64_t bytes = drawn.about.rows * drawn.about.row_bytes;
    both_sides values{random, bytes, drawn.about.element_bytes};
    both_sides dense{random, drawn.about.count * drawn.about.longest * drawn.about.row_bytes,
                     drawn.about.element_bytes};
    for (std::uint64_t i = 0; i < bytes; ++i)
      values.host[values.skipped + i] = static_cast<unsigned char>(random.bits());
    const device_array<unsigned char> values_there{values.host}, dense_there{dense.host};
    const device_array<std::int64_t> offsets_there{drawn.offsets};
    const padded_rows here = drawn.between(values.on_host(), dense.on_host(), drawn.offsets.data());
    const padded_rows there =
        drawn.between(values.on_device(values_there), dense.on_device(dense_there), offsets_there.data());
    const run device{on_stream{cuda::stream_ref{cudaStream_t{}}}};

    ASSERT_TRUE(pad_rows(here, drawn.fill, {on_host{}}));
    ASSERT_TRUE(pad_rows(there, drawn.fill, device));
    ASSERT_EQ(dense_there.download(), dense.host);

    std::fill_n(values.host.begin() + static_cast<std::ptrdiff_t>(values.skipped), bytes, both_sides::poison);
    values_there.upload(values.host);
    ASSERT_TRUE(unpad_rows(here, {on_host{}}));
    ASSERT_TRUE(unpad_rows(there, device));
    const std::vector<unsigned char> found = values_there.download();
    if (decreases(here)) {
      ++decreasing;
      ASSERT_NO_FATAL_FAILURE(check_and_take(here, found, values));
    }
    ASSERT_EQ(found, values.host);
  }
  EXPECT_GT(decreasing, 20);
  EXPECT_LT(decreasing, 280);
}

}  // namespace
}  // namespace tmap::ragged::testing
