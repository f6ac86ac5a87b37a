// SPDX-License-Identifier: Apache-2.0
// Runs dispatches to experts and combines, and compares every byte with the order by expert and the
// sums by definition. Virtual ranks and two GPUs run the same tests.
#include "lib/encode/device.hpp"
#include "peer/experts_fixture.hpp"

namespace tmap::testing {
namespace {

TEST_P(experts_on_gpus, rows_land_by_expert_and_sums_come_home) {
  run_both_ways(4);
}

/// Few tokens are then sorted before their weights have come.
TEST_P(experts_on_gpus, nobody_need_ask_for_the_weights_of_rows) {
  wants_weights_ = false;
  prepare();
  replay_graphs();
  run_both_ways(4);
}

TEST_P(experts_on_gpus, results_may_be_added_to_x) {
  adds_to_x_ = true;
  x_gap_ = 48;
  run_both_ways(2);
}

TEST_P(experts_on_gpus, results_that_come_one_by_one_have_the_bits_of_one_gpu) {
  sizes_.returned = expert_parallel::return_kind::rows;
  run_both_ways(4);
}

TEST_P(experts_on_gpus, rows_of_8_bits_bring_their_scales) {
  sizes_.row_bytes = 640;
  sizes_.scales = 5;
  run_both_ways(3);
}

TEST_P(experts_on_gpus, rows_may_have_gaps_and_be_larger_than_a_piece) {
  sizes_.row_bytes = 40016;
  x_gap_ = 48;
  tokens_ = {7, 9};
  prepare();
  run_calls(2);
}

TEST_P(experts_on_gpus, rows_of_16_bytes_and_one_block) {
  sizes_.row_bytes = 16;
  blocks_ = 1;
  tokens_ = {301, 77};
  run_both_ways(2);
}

TEST_P(experts_on_gpus, experts_begin_at_multiples_of_the_alignment) {
  sizes_.alignment = 16;
  run_both_ways(2);
}

TEST_P(experts_on_gpus, all_tokens_may_go_to_one_expert_or_to_none) {
  choose_ = [](std::uint32_t) { return 3; };
  run_both_ways(2);
  choose_ = [](std::uint32_t) { return -1; };
  run_both_ways(2);
}

TEST_P(experts_on_gpus, numbers_that_are_no_experts_are_left_out) {
  choose_ = [this](std::uint32_t drawn) -> std::int32_t {
    if (drawn % 4 == 0) return static_cast<std::int32_t>(drawn);
    return drawn % 4 == 1 ? static_cast<std::int32_t>(sizes_.experts) : 1;
  };
  run_both_ways(2);
}

TEST_P(experts_on_gpus, a_graph_is_replayed_with_other_routes) {
  sizes_.scales = 2;
  prepare();
  replay_graphs();
}

TEST_P(experts_on_gpus, a_graph_with_room_for_many_is_replayed) {
  prepare_for_many();
  replay_graphs();
}

TEST_P(experts_on_gpus, ranks_may_have_room_for_few_or_for_many) {
  sizes_.arrivals = all_tokens();
  sizes_.experts = 4 * count();
  sizes_.rows = row_count(sizes_, count());
  odd_ranks_have_room_ = true;
  prepare();
  run_calls(2);
}

/// With one token more, each step has a kernel of its own.
TEST_P(experts_on_gpus, as_many_choices_as_one_block_sorts) {
  sizes_.row_bytes = 16;
  sizes_.k = 8;
  tokens_ = {expert_parallel::most_prepared_choices / sizes_.k / count()};
  for (const bool wanted : {false, true}) {
    SCOPED_TRACE(wanted);
    wants_weights_ = wanted;
    prepare();
    run_calls(2);
  }
  sizes_.arrivals = sizes_.rows = 0;
  ++tokens_[0];
  prepare();
  run_calls(2);
}

TEST_P(experts_on_gpus, blocks_may_fill_the_gpu_and_no_more) {
  const result<std::uint32_t> multiprocessors = multiprocessor_count();
  TMAP_ASSERT_OK(multiprocessors);
  prepare();
  blocks_ = *multiprocessors;
  const auto refused = dispatch_async(on(0).window, dispatched(0), run_of(0));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, status::invalid_argument);
  EXPECT_EQ(refused.error().argument.view(), "run.blocks");
  const auto sharing = static_cast<std::uint32_t>(std::ranges::count(GetParam().gpus, GetParam().gpus[0]));
  blocks_ = *multiprocessors / sharing - 1;  // one more block prepares the dispatch
  run_calls(3);
}

TEST_P(experts_on_gpus, a_graph_that_returns_rows_is_replayed) {
  sizes_.returned = expert_parallel::return_kind::rows;
  prepare();
  replay_graphs();
}

INSTANTIATE_TEST_SUITE_P(one_rank, experts_on_gpus, ::testing::Values(virtual_ranks(1)));
INSTANTIATE_TEST_SUITE_P(two_virtual_ranks, experts_on_gpus, ::testing::Values(virtual_ranks(2)));
INSTANTIATE_TEST_SUITE_P(four_virtual_ranks, experts_on_gpus, ::testing::Values(virtual_ranks(4)));
INSTANTIATE_TEST_SUITE_P(eight_virtual_ranks, experts_on_gpus, ::testing::Values(virtual_ranks(8)));
INSTANTIATE_TEST_SUITE_P(two_gpus, experts_on_gpus, ::testing::Values(ranks_of_process({0, 1})));
INSTANTIATE_TEST_SUITE_P(two_ranks_over_nccl, experts_on_gpus, ::testing::Values(ranks_over_nccl({0, 0})));
INSTANTIATE_TEST_SUITE_P(two_gpus_over_nccl, experts_on_gpus, ::testing::Values(ranks_over_nccl({0, 1})));

}  // namespace
}  // namespace tmap::testing
