// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/peer_exchange.hpp>
#include <tmap/peer_group.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "device/own_stream.hpp"

// Exchanges of which every byte is compared: with any windows, and with those that all ranks reach.

namespace tmap::testing {

using std::chrono::milliseconds;
using byte_list = std::vector<unsigned char>;

inline constexpr std::uint64_t user_size = 1 << 20, splits_place = 0, out_splits_place = 2048, rows_place = 4096,
                               out_place = 1 << 19, pair_size = 40'000;

/// Describes an exchange. A skew is added to an address, a gap to the bytes of a row.
struct parcel_case {
  std::uint32_t ranks;
  std::uint32_t row_bytes{48};
  std::uint32_t groups{3};
  std::uint32_t most_rows{40};  ///< a measure of how many each (rank, group) gets
  std::uint64_t rows_skew{0};
  std::uint64_t out_skew{0};
  std::uint64_t rows_gap{0};
  std::uint64_t out_gap{0};
  row_placement placed{row_placement::group_major};
  std::uint32_t blocks{4};
  std::function<void(std::uint32_t rank, exchange_problem&)> changed{};  ///< makes a rank's problem another one
};

inline std::uint32_t next(std::uint32_t& state) {
  return (state = state * 1664525 + 1013904223) >> 8;
}

/// Returns all of a rank's window before a call: counts, and bytes that differ everywhere.
inline byte_list content(const parcel_case& given, std::uint32_t rank, std::uint32_t call) {
  std::uint32_t state = call * 64 + rank + 1;
  byte_list made(user_size);
  for (unsigned char& each : made) each = static_cast<unsigned char>(next(state));
  for (std::uint32_t i = 0; i < given.ranks * given.groups; ++i) {
    const std::uint32_t rows = (call + i) % 3 == 0 ? 0 : next(state) % (given.most_rows + 1);
    std::memcpy(&made[splits_place + 4 * i], &rows, sizeof rows);
  }
  return made;
}

inline exchange_problem problem_of(const parcel_case& given, const peer_memory& window) {
  const auto at = [&](std::uint64_t offset) { return static_cast<unsigned char*>(window.data()) + offset; };
  const std::uint64_t step = given.row_bytes + std::max(given.rows_gap, given.out_gap);
  exchange_problem made;
  made.rows = at(rows_place + given.rows_skew);
  made.sent_rows = made.capacity = ((1 << 19) - 8192) / step;
  made.splits = reinterpret_cast<const std::uint32_t*>(at(splits_place));
  made.out = at(out_place + given.out_skew);
  made.out_splits = reinterpret_cast<std::uint32_t*>(at(out_splits_place));
  made.groups = given.groups;
  made.row_bytes = given.row_bytes;
  made.placed = given.placed;
  if (given.rows_gap != 0) made.rows_pitch_bytes = given.row_bytes + given.rows_gap;
  if (given.out_gap != 0) made.out_pitch_bytes = given.row_bytes + given.out_gap;
  if (given.changed) given.changed(window.ref().rank, made);
  return made;
}

/// Holds how a call ended on a rank, and all of its window afterwards.
struct exchanged {
  std::string outcome;
  byte_list bytes;
};

/// A rank that writes its window, exchanges and reads all of it.
struct rank_with_stream {
  peer_memory window;
  std::unique_ptr<own_stream> stream{std::make_unique<own_stream>()};

  void write(const parcel_case& given, std::uint32_t call) const {
    const byte_list all = content(given, window.ref().rank, call);
    EXPECT_EQ(cudaMemcpyAsync(window.data(), all.data(), all.size(), cudaMemcpyHostToDevice, stream->get()),
              cudaSuccess);
  }
  /// The wait is for the exchange before: one that succeeds hides how its own ended.
  void enqueue(const parcel_case& given) const {
    const result<void> pulled = await_pulls_async(window, stream->ref());
    EXPECT_TRUE(pulled.has_value()) << to_string(pulled.error());
    const result<void> enqueued =
        exchange_rows_async(window, problem_of(given, window), {stream->ref(), given.blocks, milliseconds{5000}});
    EXPECT_TRUE(enqueued.has_value()) << to_string(enqueued.error());
  }
  exchanged read() const {
    const result<void> ended = last_outcome(window, stream->ref());
    exchanged found{ended ? "success" : to_string(ended.error()), byte_list(user_size)};
    EXPECT_EQ(cudaMemcpyAsync(found.bytes.data(), window.data(), user_size, cudaMemcpyDeviceToHost, stream->get()),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream->get()), cudaSuccess);
    return found;
  }
  cudaGraphExec_t captured(const parcel_case& given) const {
    cudaGraph_t graph{};
    cudaGraphExec_t made{};
    EXPECT_EQ(cudaStreamBeginCapture(stream->get(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
    enqueue(given);
    EXPECT_EQ(cudaStreamEndCapture(stream->get(), &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&made, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return made;
  }
};
using rank_list = std::vector<rank_with_stream>;

inline std::vector<exchanged> exchange(const rank_list& ranks, const parcel_case& given, std::uint32_t call) {
  for (const rank_with_stream& each : ranks) each.write(given, call);
  for (const rank_with_stream& each : ranks) each.enqueue(given);
  std::vector<exchanged> all;
  for (const rank_with_stream& each : ranks) all.push_back(each.read());
  return all;
}

inline void expect_same(const exchanged& found, const exchanged& expected, const std::string& where) {
  EXPECT_EQ(found.outcome, expected.outcome) << where;
  const auto at = std::mismatch(found.bytes.begin(), found.bytes.end(), expected.bytes.begin()).first;
  if (at != found.bytes.end()) ADD_FAILURE() << where << ": byte " << at - found.bytes.begin() << " differs";
}

/// Virtual ranks on one GPU, with windows that all of them reach.
class reachable_ranks {
 public:
  explicit reachable_ranks(std::uint32_t count) {
    std::vector<device_address> at;
    for (std::uint32_t rank = 0; rank < count; ++rank) {
      memory_.push_back(std::make_unique<device_array<unsigned char>>(byte_list(size)));
      at.push_back(memory_.back()->address());
    }
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (std::uint32_t rank = 0; rank < count; ++rank) {
      auto group = peer_group::from_addresses(rank, at, size);
      ranks.push_back({group->allocate(user_size).value()});
      others.push_back(group->allocate(256).value());
    }
  }

  rank_list ranks;
  std::vector<peer_memory> others;  ///< windows for another use

 private:
  static constexpr std::uint64_t size = 2 * peer_header_bytes + user_size + 4096;
  std::vector<std::unique_ptr<device_array<unsigned char>>> memory_;
};

inline std::vector<parcel_case> cases_for(std::uint32_t ranks) {
  return {{ranks},
          {.ranks = ranks, .placed = row_placement::rank_major, .blocks = 1},
          {.ranks = ranks, .row_bytes = 1, .rows_skew = 3, .out_skew = 9},
          {.ranks = ranks, .row_bytes = 5, .rows_skew = 1, .out_skew = 2, .rows_gap = 3},
          {.ranks = ranks, .row_bytes = 33, .rows_skew = 1, .out_skew = 15, .rows_gap = 3, .out_gap = 5},
          {.ranks = ranks, .row_bytes = 80, .rows_gap = 16, .out_gap = 48, .blocks = 8},
          {.ranks = ranks, .row_bytes = 80, .out_gap = 48, .placed = row_placement::rank_major},
          {.ranks = ranks, .row_bytes = 9001, .groups = 1, .most_rows = 4, .rows_skew = 1, .out_skew = 4},
          {.ranks = ranks, .row_bytes = 12, .groups = 1, .most_rows = 99, .rows_skew = 1, .out_skew = 3, .out_gap = 5},
          {.ranks = ranks, .row_bytes = 400, .groups = 1, .most_rows = 90},
          {.ranks = ranks, .row_bytes = 16, .groups = 37, .most_rows = 60}};
}

}  // namespace tmap::testing
