// SPDX-License-Identifier: Apache-2.0
// Exchanges so many rows that they are pushed, and next to them fewer that are pulled. Compares
// every word, and what lies after the rows.
#include <tmap/peer_exchange.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/peer/call_checks.hpp"
#include "peer/ranks_on_gpus.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t large_bytes = 96 << 20, large_splits = 0, large_out_splits = 4096, large_rows = 8192,
                        large_out = 48 << 20;
constexpr std::uint32_t large_row = 2048, words_of_row = large_row / 4, large_poison = 0x5a5a5a5a;
constexpr std::uint64_t most_large_rows = (large_out - large_rows) / large_row;

/// Returns how many rows `from` sends to `to` in a call: none, some that are pulled, or more than
/// are pushed.
std::uint32_t rows_between(std::uint32_t call, std::uint32_t from, std::uint32_t to) {
  constexpr std::uint32_t least_pushed = peer::pushed_bytes / large_row;
  const std::uint32_t kind = (call + 2 * from + to) % 4;
  return kind == 0 ? 0 : kind == 1 ? 100 + 7 * to : least_pushed + 3 * (call + from);
}

class large_exchanges_on_gpus : public ranks_on_gpus {
 protected:
  large_exchanges_on_gpus() : ranks_on_gpus(large_bytes) {}

  exchange_problem problem(std::uint32_t rank) const {
    const peer_memory_ref& ref = on(rank).window.ref();
    const auto at = [&](std::uint64_t offset) { return reinterpret_cast<void*>(ref.address(rank, offset)); };
    exchange_problem made;
    made.rows = at(large_rows);
    made.sent_rows = made.capacity = most_large_rows;
    made.splits = static_cast<const std::uint32_t*>(at(large_splits));
    made.out = at(large_out);
    made.out_splits = static_cast<std::uint32_t*>(at(large_out_splits));
    made.row_bytes = large_row;
    return made;
  }

  /// Appends the rows from one rank to another. Each word differs from its neighbours.
  static void append(words& rows, std::uint32_t call, std::uint32_t from, std::uint32_t to) {
    const std::uint64_t count = std::uint64_t{rows_between(call, from, to)} * words_of_row;
    const std::uint32_t first = ((call * 8 + from) * 8 + to) << 22;
    for (std::uint32_t i = 0; i < count; ++i) rows.push_back(first + i);
  }
  void send(std::uint32_t rank, std::uint32_t call) const {
    words splits, rows;
    for (std::uint32_t to = 0; to < count(); ++to) {
      splits.push_back(rows_between(call, rank, to));
      append(rows, call, rank, to);
    }
    ASSERT_LE(rows.size(), most_large_rows * words_of_row);
    upload(rank, large_splits, splits);
    upload(rank, large_rows, rows);
    upload(rank, large_out, words(most_large_rows * words_of_row, large_poison));
    const rank_on_gpu& at = on(rank);
    TMAP_ASSERT_OK(exchange_rows_async(at.window, problem(rank), {at.stream->ref(), blocks_of(rank), patience}));
  }
  void expect_rows(std::uint32_t rank, std::uint32_t call) const {
    words rows;
    for (std::uint32_t from = 0; from < count(); ++from) append(rows, call, from, rank);
    rows.resize(most_large_rows * words_of_row, large_poison);
    EXPECT_TRUE(download(rank, large_out, rows.size()) == rows) << "rank " << rank << ", call " << call;
  }
  void run_calls() const {
    for (std::uint32_t call = 0; call < 4; ++call) {
      for (std::uint32_t rank = 0; rank < count(); ++rank) {
        TMAP_ASSERT_OK(await_pulls_async(on(rank).window, on(rank).stream->ref(), patience));
        send(rank, call);
      }
      for (std::uint32_t rank = 0; rank < count(); ++rank) expect_ok(rank);
      for (std::uint32_t rank = 0; rank < count(); ++rank) expect_rows(rank, call);
    }
  }
  std::uint32_t blocks_of(std::uint32_t rank) const {
    return rank % 2 == 1 && odd_ranks_do_not_push_ ? 4 : peer::pushing_blocks;
  }

  bool odd_ranks_do_not_push_{false};
};

TEST_P(large_exchanges_on_gpus, many_rows_are_pushed_next_to_few_that_are_pulled) {
  run_calls();
}
TEST_P(large_exchanges_on_gpus, rows_of_ranks_with_few_blocks_are_pulled) {
  odd_ranks_do_not_push_ = true;
  run_calls();
}

INSTANTIATE_TEST_SUITE_P(two_virtual_ranks, large_exchanges_on_gpus, ::testing::Values(virtual_ranks(2)));
INSTANTIATE_TEST_SUITE_P(four_virtual_ranks, large_exchanges_on_gpus, ::testing::Values(virtual_ranks(4)));
INSTANTIATE_TEST_SUITE_P(two_gpus, large_exchanges_on_gpus, ::testing::Values(ranks_of_process({0, 1})));
INSTANTIATE_TEST_SUITE_P(two_gpus_over_nccl, large_exchanges_on_gpus, ::testing::Values(ranks_over_nccl({0, 1})));

}  // namespace
}  // namespace tmap::testing
