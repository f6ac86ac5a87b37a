// SPDX-License-Identifier: Apache-2.0
// Runs exchanges of rows of any size, address and pitch. The bytes around and between the rows that
// come are compared, too.
#include <tmap/peer_exchange.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "peer/ranks_on_gpus.hpp"

namespace tmap::testing {
namespace {

/// Describes where rows lie. A skew is added to an address, a gap to the bytes of a row.
struct row_layout {
  std::uint32_t row_bytes;
  std::uint64_t rows_skew;
  std::uint64_t out_skew;
  std::uint64_t rows_gap;
  std::uint64_t out_gap;
};

class exchange_of_bytes : public ranks_on_gpus {
 protected:
  using byte_list = std::vector<unsigned char>;

  static constexpr std::uint64_t splits_at = 0, out_splits_at = 4096, rows_at = 8192, out_at = 2 << 20;
  static constexpr std::uint64_t room = 1 << 20;  // of rows that are sent, and of those that come
  static constexpr unsigned char canary = 0xa5;

  exchange_of_bytes() : ranks_on_gpus(4 << 20) {}

  /// Returns how many rows `from` sends to `group` of `to` in a call. Some are none.
  std::uint32_t rows_of(std::uint32_t call, std::uint32_t from, std::uint32_t to, std::uint32_t group) const {
    return (7 * call + 5 * from + 3 * to + 11 * group) % 13 * (call % 3) * most_rows_ / 64;
  }
  /// Ranks lie differently if the test wants it.
  std::uint64_t skew_of(std::uint32_t rank) const { return layout_.rows_skew + (ranks_differ_ ? rank : 0); }
  std::uint64_t step(std::uint64_t gap) const { return layout_.row_bytes + gap; }

  exchange_problem problem(std::uint32_t rank) const {
    const peer_memory_ref& ref = on(rank).window.ref();
    const auto at = [&](std::uint64_t offset) { return reinterpret_cast<void*>(ref.address(rank, offset)); };
    exchange_problem made;
    made.rows = at(rows_at + skew_of(rank));
    made.sent_rows = made.capacity = (room - 64) / step(std::max(layout_.rows_gap, layout_.out_gap));
    made.splits = static_cast<const std::uint32_t*>(at(splits_at));
    made.out = at(out_at + layout_.out_skew);
    made.out_splits = static_cast<std::uint32_t*>(at(out_splits_at));
    made.groups = groups;
    made.row_bytes = layout_.row_bytes;
    made.placed = placed_;
    if (layout_.rows_gap != 0) made.rows_pitch_bytes = step(layout_.rows_gap);
    if (layout_.out_gap != 0) made.out_pitch_bytes = step(layout_.out_gap);
    return made;
  }

  /// Writes rows of a (rank, group) from byte `at` on; returns where the next ones begin.
  std::uint64_t put_rows(byte_list& to_bytes, std::uint64_t at, std::uint64_t gap, std::uint32_t call,
                         std::uint32_t from, std::uint32_t to, std::uint32_t group) const {
    for (std::uint32_t row = 0; row < rows_of(call, from, to, group); ++row, at += step(gap)) {
      EXPECT_LE(at + layout_.row_bytes, to_bytes.size());
      std::uint32_t value = (((call * 8 + from) * 8 + to) * 16 + group) * 4096 + row;
      for (std::uint32_t i = 0; i < layout_.row_bytes; ++i) {
        value = value * 1664525 + 1013904223;
        to_bytes[at + i] = static_cast<unsigned char>(value >> 24);
      }
    }
    return at;
  }

  /// Writes what a rank sends in a call, and canaries where rows will come.
  void write(std::uint32_t rank, std::uint32_t call) const {
    words splits;
    byte_list rows(room, 0x3c);
    std::uint64_t at = skew_of(rank);
    for (std::uint32_t to = 0; to < count(); ++to) {
      for (std::uint32_t group = 0; group < groups; ++group) {
        splits.push_back(rows_of(call, rank, to, group));
        at = put_rows(rows, at, layout_.rows_gap, call, rank, to, group);
      }
    }
    upload(rank, splits_at, splits);
    upload(rank, rows_at, rows);
    upload(rank, out_at, byte_list(room, canary));
  }

  /// Compares all that a rank may have got in a call with the definition.
  void expect_rows(std::uint32_t rank, std::uint32_t call) const {
    byte_list expected(room, canary);
    std::uint64_t at = layout_.out_skew;
    const bool by_rank = placed_ == row_placement::rank_major;
    const std::uint32_t outer = by_rank ? count() : groups, inner = by_rank ? groups : count();
    for (std::uint32_t i = 0; i < outer; ++i) {
      for (std::uint32_t j = 0; j < inner; ++j) {
        at = put_rows(expected, at, layout_.out_gap, call, by_rank ? i : j, rank, by_rank ? j : i);
      }
    }
    const byte_list found = download<unsigned char>(rank, out_at, room);
    for (std::uint64_t i = 0; i < room; ++i) {
      if (found[i] == expected[i]) continue;
      ADD_FAILURE() << "rank " << rank << ", call " << call << ": byte " << i << " is " << int{found[i]} << ", not "
                    << int{expected[i]};
      return;
    }
  }

  void run_calls(const row_layout& layout) {
    layout_ = layout;
    SCOPED_TRACE("rows of " + std::to_string(layout.row_bytes) + " bytes, skews " + std::to_string(layout.rows_skew) +
                 " and " + std::to_string(layout.out_skew) + ", gaps " + std::to_string(layout.rows_gap) + " and " +
                 std::to_string(layout.out_gap));
    for (std::uint32_t call = 0; call < 3; ++call) {
      for (std::uint32_t rank = 0; rank < count(); ++rank) {
        const rank_on_gpu& at = on(rank);
        TMAP_ASSERT_OK(await_pulls_async(at.window, at.stream->ref(), patience));
        write(rank, call);
        const auto enqueued = exchange_rows_async(at.window, problem(rank), {at.stream->ref(), blocks_, patience});
        ASSERT_TRUE(enqueued.has_value()) << to_string(enqueued.error());
      }
      for (std::uint32_t rank = 0; rank < count(); ++rank) expect_ok(rank);
      for (std::uint32_t rank = 0; rank < count(); ++rank) expect_rows(rank, call);
    }
  }

  static constexpr std::uint32_t groups = 3;
  row_layout layout_{};
  std::uint32_t most_rows_{64};  ///< a measure of how many rows are sent
  std::uint32_t blocks_{4};
  bool ranks_differ_{false};
  row_placement placed_{row_placement::group_major};
};

TEST_P(exchange_of_bytes, rows_of_any_bytes_come_without_gaps) {
  for (const std::uint32_t row_bytes : {1u, 2u, 3u, 4u, 7u, 12u, 17u, 31u, 100u, 1000u, 4099u}) {
    run_calls({row_bytes, 0, 0, 0, 0});
  }
}

TEST_P(exchange_of_bytes, rows_lie_at_any_address) {
  for (std::uint64_t skew = 1; skew < 16; ++skew) {
    run_calls({40, skew, 0, 0, 0});
    run_calls({48, 0, skew, 0, 0});
    run_calls({33, skew, 16 - skew, 0, 0});
    run_calls({256, skew, skew, 0, 0});
  }
}

TEST_P(exchange_of_bytes, rows_have_pitches) {
  for (const row_layout& each : {row_layout{80, 0, 0, 48, 0}, row_layout{80, 0, 0, 0, 48}, row_layout{80, 0, 0, 16, 48},
                                 row_layout{80, 0, 0, 3, 5}, row_layout{5, 1, 2, 3, 0}, row_layout{5, 1, 2, 0, 11},
                                 row_layout{1, 3, 9, 1, 2}, row_layout{1000, 4, 8, 24, 1048}}) {
    run_calls(each);
  }
}

TEST_P(exchange_of_bytes, ranks_lie_differently) {
  ranks_differ_ = true;
  run_calls({64, 0, 0, 0, 0});  // bulk copies move the rows of rank 0 alone
  run_calls({64, 0, 0, 64, 0});
}

TEST_P(exchange_of_bytes, one_block_and_rows_by_rank) {
  blocks_ = 1;
  placed_ = row_placement::rank_major;
  run_calls({13, 5, 7, 0, 0});
  run_calls({13, 5, 7, 3, 6});
}

/// Pieces of shared memory end in the middle of rows, and hold many of them.
TEST_P(exchange_of_bytes, many_bytes_are_cut_into_pieces) {
  if (count() > 2) GTEST_SKIP() << "rows of two ranks fill the room";
  blocks_ = 2;
  run_calls({13'001, 1, 3, 0, 0});
  most_rows_ = 8;
  run_calls({70'001, 1, 3, 0, 0});
  run_calls({70'001, 1, 3, 6, 2});
  run_calls({69'984, 0, 0, 16, 32});
  most_rows_ = 20000;
  run_calls({5, 1, 3, 0, 0});
  run_calls({5, 1, 3, 2, 3});
}

INSTANTIATE_TEST_SUITE_P(two_virtual_ranks, exchange_of_bytes, ::testing::Values(virtual_ranks(2)));
INSTANTIATE_TEST_SUITE_P(four_virtual_ranks, exchange_of_bytes, ::testing::Values(virtual_ranks(4)));
INSTANTIATE_TEST_SUITE_P(two_gpus, exchange_of_bytes, ::testing::Values(ranks_of_process({0, 1})));
INSTANTIATE_TEST_SUITE_P(two_ranks_over_nccl, exchange_of_bytes, ::testing::Values(ranks_over_nccl({0, 0})));
INSTANTIATE_TEST_SUITE_P(two_gpus_over_nccl, exchange_of_bytes, ::testing::Values(ranks_over_nccl({0, 1})));

}  // namespace
}  // namespace tmap::testing
