// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "ragged/move_kernel.hpp"

// Tests the kernel that moves rows by index. The bytes around each row must not change.

namespace tmap::kernels {
namespace {

struct row_case {
  std::uint64_t row_bytes;
  std::uint32_t alignment;  ///< of addresses and pitches
  std::uint32_t index_bytes;
  bool scatters;
  route_set allowed;
};

ragged::row_matrix draw_matrix(random_source& random, const row_case& test, std::uint64_t rows, std::uint64_t memory) {
  const std::uint64_t address = memory + rounded_up(guard_bytes + random.below(32), test.alignment);
  return {address, rows, test.row_bytes, rounded_up(test.row_bytes + random.below(30), test.alignment)};
}

/// Returns distinct row numbers, except that one in five does not exist.
std::vector<std::int64_t> draw_rows(random_source& random, std::uint64_t count, std::uint64_t rows, bool narrow) {
  std::vector<std::int64_t> all(rows);
  std::iota(all.begin(), all.end(), 0);
  for (std::uint64_t i = rows; i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
  const std::int64_t wide = narrow ? 0x7fffffff : 0x7fffffffffffffff;
  const std::int64_t wrong[] = {-1, static_cast<std::int64_t>(rows), -wide - 1, wide};
  std::vector<std::int64_t> index(count);
  for (std::uint64_t i = 0; i < count; ++i) index[i] = random.one_in(5) ? wrong[random.below(4)] : all[i % rows];
  return index;
}

bool is_row(std::int64_t number, std::uint64_t rows) {
  return number >= 0 && number < static_cast<std::int64_t>(rows);
}

/// Moves row by row on the host. `in` and `out` are the offsets of the matrices in the bytes of a
/// side.
void move_slowly(const row_case& test, const row_move& move, const std::vector<std::int64_t>& index, std::uint64_t in,
                 std::uint64_t out, const std::vector<unsigned char>& source, std::vector<unsigned char>& expected,
                 batch_header& header) {
  for (std::uint64_t i = 0; i < index.size(); ++i) {
    if (!is_row(index[i], move.source.rows)) {
      if (header.bad_count++ == 0) header.first_bad = static_cast<std::uint32_t>(i);
      continue;
    }
    const auto named = static_cast<std::uint64_t>(index[i]);
    const std::uint64_t from = in + (test.scatters ? i : named) * move.source.pitch_bytes;
    const std::uint64_t to = out + (test.scatters ? named : i) * move.destination.pitch_bytes;
    std::memcpy(&expected[to], &source[from], test.row_bytes);
  }
}

void expect_rows_moved(const row_case& test, const device_shape& shape, std::uint64_t seed) {
  random_source random(seed);
  const std::uint64_t rows = 1 + random.below(std::min<std::uint64_t>(700, 2000000 / (test.row_bytes + 48)));
  const std::uint64_t count = 1 + random.below(rows);
  static const std::vector<unsigned char> source = random_bytes(side_bytes, 1);
  const device_array<unsigned char> from(source);
  const device_array<unsigned char> to(side_bytes);
  std::vector<unsigned char> expected(side_bytes, device_array<unsigned char>::poison);
  row_move move{};
  move.source = draw_matrix(random, test, rows, from.address());
  move.destination = draw_matrix(random, test, rows, to.address());
  move.scatters = test.scatters;
  move.routes.allowed = test.allowed;
  move.routes.policy = route_policy::force;

  const std::vector<std::int64_t> index = draw_rows(random, count, rows, test.index_bytes == 4);
  const std::vector<std::int32_t> narrow(index.begin(), index.end());
  const device_array<std::int64_t> wide_memory(index);
  const device_array<std::int32_t> narrow_memory(narrow);
  const void* const numbers =
      test.index_bytes == 8 ? static_cast<const void*>(wide_memory.data()) : narrow_memory.data();
  move.index = {numbers, count, test.index_bytes};
  const device_array<ragged::tensor_status> statuses(count);
  const device_array<batch_header> header(1);
  move.statuses = statuses.data();
  move.header = header.data();

  batch_header wanted{};
  move_slowly(test, move, index, move.source.address - from.address(), move.destination.address - to.address(), source,
              expected, wanted);
  TMAP_ASSERT_CUDA(launch_move_rows(move, shape, nullptr));
  EXPECT_EQ(to.download(), expected) << "rows of " << test.row_bytes << ", alignment " << test.alignment;
  const batch_header counted = header.download()[0];
  EXPECT_EQ(counted.bad_count, wanted.bad_count);
  EXPECT_EQ(counted.first_bad, wanted.first_bad);
  EXPECT_EQ(counted.empty_count, 0u);
  const std::vector<ragged::tensor_status> verdicts = statuses.download();
  for (std::uint64_t i = 0; i < count; ++i) {
    ASSERT_EQ(verdicts[i].bits, is_row(index[i], rows) ? 0u : static_cast<std::uint32_t>(ragged::fault::index)) << i;
  }
}

constexpr std::uint64_t row_lengths[] = {1, 3, 16, 48, 63, 100, 512, 1023, 1024, 1040, 2049, 4096, 5000, 20000};

TEST_F(move_kernel, rows_by_index) {
  std::uint64_t seed = 1;
  for (const std::uint64_t row_bytes : row_lengths) {
    for (const std::uint32_t alignment : {1u, 2u, 4u, 8u, 16u}) {
      for (const route_set allowed : {all_routes, route_bit(route::ldgsts), route_set{}}) {
        ++seed;
        expect_rows_moved({row_bytes, alignment, seed % 2 == 0 ? 4u : 8u, seed % 3 == 0, allowed}, shape(), seed);
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace tmap::kernels
