// SPDX-License-Identifier: Apache-2.0
// Ends dispatches and combines without success: too little room, other sizes, ranks that do not
// come. experts_device_test.cpp makes the ranks.
#include "peer/experts_fixture.hpp"

namespace tmap::testing {
namespace {

TEST_P(experts_on_gpus, too_little_room_for_tokens_moves_nothing) {
  choose_ = [this](std::uint32_t) { return static_cast<std::int32_t>(sizes_.experts) - 1; };
  sizes_.arrivals = 30;
  prepare();
  expect_overflow();
  sizes_.arrivals = 0;
  prepare();
  run_calls(2);
}

TEST_P(experts_on_gpus, too_little_room_for_rows_moves_nothing) {
  choose_ = [this](std::uint32_t) { return static_cast<std::int32_t>(sizes_.experts) - 1; };
  for (const bool many : {false, true}) {
    SCOPED_TRACE(many);
    sizes_.arrivals = sizes_.rows = 0;
    many ? prepare_for_many() : prepare();
    sizes_.rows = all_tokens() * sizes_.k - 1;
    expect_overflow();
    sizes_.rows = all_tokens() * sizes_.k;
    run_calls(2);
  }
}

TEST_P(experts_on_gpus, a_second_combine_of_sums_is_refused_and_the_next_dispatch_works) {
  prepare();
  run_calls(1);
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    TMAP_ASSERT_OK(combine_async(on(rank).window, combined(rank), run_of(rank)));
  }
  for (std::uint32_t rank = 0; rank < count(); ++rank) expect_status(rank, status::invalid_argument);
  run_calls(1);
}

TEST_P(experts_on_gpus, a_combine_of_other_sizes_is_refused_and_the_right_one_works) {
  for (const auto returned : {expert_parallel::return_kind::sums, expert_parallel::return_kind::rows}) {
    sizes_.returned = returned;
    prepare();
    draw_all();
    dispatch_all();
    using change = void (*)(shape&);
    for (const change other : {change{[](shape& sizes) { sizes.columns -= 8; }},
                               change{[](shape& sizes) { sizes.tokens = 10 * sizes.tokens + 1; }},
                               change{[](shape& sizes) { sizes.k /= 2; }}}) {
      for (std::uint32_t rank = 0; rank < count(); ++rank) {
        combine_problem given = combined(rank);
        other(given.sizes);
        TMAP_ASSERT_OK(combine_async(on(rank).window, given, run_of(rank)));
      }
      for (std::uint32_t rank = 0; rank < count(); ++rank) expect_status(rank, status::invalid_argument);
    }
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      TMAP_ASSERT_OK(combine_async(on(rank).window, combined(rank), run_of(rank)));
    }
    expect_all();
  }
}

TEST_P(experts_on_gpus, ranks_whose_sizes_differ_learn_it) {
  if (count() == 1) GTEST_SKIP() << "needs two ranks";
  prepare();
  draw_all();
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    dispatch_problem given = dispatched(rank);
    if (rank == 1) given.sizes.returned = expert_parallel::return_kind::rows;
    TMAP_ASSERT_OK(dispatch_async(on(rank).window, given, run_of(rank)));
  }
  expect_mismatch();
}

TEST_P(experts_on_gpus, a_rank_that_does_not_come_is_named) {
  prepare();
  draw_all();
  const std::uint32_t late = count() - 1;
  for (std::uint32_t rank = 0; rank < late; ++rank) enqueue(rank);
  expect_named(late);
}

/// The rank has stopped between the two calls. New ranks work.
TEST_P(experts_on_gpus, a_rank_that_does_not_combine_is_named) {
  const std::uint32_t late = count() - 1;
  for (const auto returned : {expert_parallel::return_kind::sums, expert_parallel::return_kind::rows}) {
    sizes_.returned = returned;
    prepare();
    draw_all();
    dispatch_all();
    for (std::uint32_t rank = 0; rank < count(); ++rank) expect_ok(rank);
    for (std::uint32_t rank = 0; rank < late; ++rank) {
      TMAP_ASSERT_OK(combine_async(on(rank).window, combined(rank), run_of(rank)));
    }
    expect_named(late);
    rebuild();
    prepare();
    run_calls(1);
  }
}

}  // namespace
}  // namespace tmap::testing
