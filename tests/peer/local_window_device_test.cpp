// SPDX-License-Identifier: Apache-2.0
// Runs exchanges with windows that peers do not reach, whose parcels are carried by copies on one
// GPU. Every byte is compared with exchanges that pull.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "peer/carried_ranks.hpp"
#include "peer/compared_exchange.hpp"

namespace tmap::testing {
namespace {

class exchange_by_parcels : public gpu_test, public ::testing::WithParamInterface<std::uint32_t> {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    pulled_ = std::make_unique<reachable_ranks>(GetParam());
    std::vector<const peer_memory*> meeting;
    for (const peer_memory& each : pulled_->others) meeting.push_back(&each);
    carrier_ = std::make_unique<carrier>(meeting);
    for (peer_memory& each : carrier_->allocate(user_size, pair_size)) carried_.push_back({std::move(each)});
    ASSERT_EQ(carried_.size(), GetParam());
  }
  void TearDown() override {
    carried_.clear();
    pulled_.reset();
    gpu_test::TearDown();
  }

  /// Runs a call both ways, and compares how it ended and all bytes. Returns how it ended.
  std::string expect_equal(const parcel_case& given, std::uint32_t call) {
    const std::vector<exchanged> expected = exchange(pulled_->ranks, given, call);
    const std::vector<exchanged> found = exchange(carried_, given, call);
    for (std::uint32_t rank = 0; rank < found.size(); ++rank) {
      expect_same(found[rank], expected[rank], "rank " + std::to_string(rank) + ", call " + std::to_string(call));
    }
    return found[0].outcome;
  }

  std::unique_ptr<reachable_ranks> pulled_;
  std::unique_ptr<carrier> carrier_;
  rank_list carried_;
};

TEST_P(exchange_by_parcels, every_byte_is_that_of_an_exchange_that_pulls) {
  std::uint32_t call = 0;
  for (const parcel_case& each : cases_for(GetParam())) {
    SCOPED_TRACE("rows of " + std::to_string(each.row_bytes));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(expect_equal(each, ++call), "success");
  }
  EXPECT_EQ(carrier_->carried(), call * GetParam());
}

TEST_P(exchange_by_parcels, calls_that_move_nothing_end_alike_and_the_group_goes_on) {
  const std::uint32_t last = GetParam() - 1;
  parcel_case small{GetParam()};
  small.changed = [=](std::uint32_t rank, exchange_problem& p) { p.capacity = rank == last ? 1 : p.capacity; };
  EXPECT_NE(expect_equal(small, 1).find("would get more rows"), std::string::npos);
  small.changed = [=](std::uint32_t rank, exchange_problem& p) { p.sent_rows = rank == last ? 1 : p.sent_rows; };
  EXPECT_NE(expect_equal(small, 2).find("more rows than it has"), std::string::npos);
  EXPECT_EQ(expect_equal({GetParam()}, 3), "success");
}

TEST_P(exchange_by_parcels, more_rows_for_a_rank_than_a_parcel_holds_move_nothing) {
  const parcel_case large{.ranks = GetParam(), .row_bytes = 9001, .groups = 1, .most_rows = 8};
  std::uint32_t refused = 0;
  for (std::uint32_t call = 0; call < 6; ++call) {
    bool is_too_much = false;
    for (std::uint32_t rank = 0; rank < GetParam(); ++rank) {
      const byte_list before = content(large, rank, call);
      for (std::uint32_t to = 0; to < GetParam(); ++to) {
        std::uint32_t rows = 0;
        std::memcpy(&rows, &before[splits_place + 4 * to], sizeof rows);
        is_too_much |= to != rank && rows > pair_size / 9001;
      }
    }
    const std::vector<exchanged> found = exchange(carried_, large, call);
    refused += is_too_much ? 1 : 0;
    for (std::uint32_t rank = 0; rank < GetParam(); ++rank) {
      EXPECT_EQ(found[rank].outcome, found[0].outcome);
      EXPECT_EQ(found[rank].outcome == "success", !is_too_much) << found[rank].outcome;
      if (is_too_much) expect_same(found[rank], {found[0].outcome, content(large, rank, call)}, "nothing moved");
    }
  }
  EXPECT_EQ(refused > 0, GetParam() > 1);
}

TEST_P(exchange_by_parcels, graphs_are_replayed_with_other_sizes) {
  const parcel_case given{.ranks = GetParam(), .row_bytes = 33, .rows_skew = 1, .out_gap = 5};
  std::vector<cudaGraphExec_t> graphs;
  for (const rank_with_stream& each : carried_) graphs.push_back(each.captured(given));
  for (std::uint32_t call = 0; call < 10; ++call) {
    const std::vector<exchanged> expected = exchange(pulled_->ranks, given, call);
    for (const rank_with_stream& each : carried_) each.write(given, call);
    for (std::uint32_t rank = 0; rank < GetParam(); ++rank) {
      TMAP_ASSERT_CUDA(cudaGraphLaunch(graphs[rank], carried_[rank].stream->get()));
    }
    for (std::uint32_t rank = 0; rank < GetParam(); ++rank) {
      expect_same(carried_[rank].read(), expected[rank], "replay " + std::to_string(call));
    }
  }
  for (const cudaGraphExec_t graph : graphs) EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
}

TEST_P(exchange_by_parcels, ranks_that_make_other_calls_learn_it_and_end) {
  if (GetParam() == 1) GTEST_SKIP() << "a rank agrees with itself";
  parcel_case odd{GetParam()};
  odd.changed = [](std::uint32_t rank, exchange_problem& p) { p.row_bytes = 40 + rank; };
  for (const exchanged& each : exchange(carried_, odd, 1)) {
    EXPECT_NE(each.outcome.find("made another call"), std::string::npos) << each.outcome;
  }
  for (const exchanged& each : exchange(carried_, {GetParam()}, 2)) EXPECT_NE(each.outcome, "success");
}

INSTANTIATE_TEST_SUITE_P(virtual_ranks, exchange_by_parcels, ::testing::Values(1u, 2u, 4u));

}  // namespace
}  // namespace tmap::testing
