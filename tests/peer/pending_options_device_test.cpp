// SPDX-License-Identifier: Apache-2.0
// Products with options begin while rows come.
#include <numeric>

#include "peer/pending_fixture.hpp"

namespace tmap::testing::pending {
namespace {

using options_of_dispatches = products_of_dispatches;

/// Gives rows of 8 bits, with a scale for each 128 elements.
void take_8_bits(shape& sizes, gemm::operand_type& type) {
  type = gemm::operand_type::f8_e4m3;
  sizes.row_bytes = width;
  sizes.scales = scales_of_row;
}

TEST_P(options_of_dispatches, rows_of_8_bits_and_their_scales_have_the_same_bits) {
  take_8_bits(sizes_, type_);
  for (const std::uint64_t tokens : {few_tokens, many_tokens}) {
    prepare(tokens);
    compare(5);
  }
}

TEST_P(options_of_dispatches, rows_of_no_expert_become_zero) {
  sizes_.alignment = 16;  // so there are some between experts
  change_ = [](std::uint32_t, gemm::row_problem& made) { made.zero_rest = true; };
  for (const std::uint64_t tokens : {few_tokens, many_tokens}) {
    prepare(tokens);
    compare(5);
    const words last = memory_[0]->c.download();
    EXPECT_EQ(last.back(), 0u) << "the last row belongs to no expert";
  }
}

TEST_P(options_of_dispatches, results_go_to_other_rows) {
  for (const bool has_8_bits : {false, true}) {
    if (has_8_bits) take_8_bits(sizes_, type_);
    prepare(many_tokens);
    std::vector<std::int32_t> numbers(rows());
    std::iota(numbers.begin(), numbers.end(), 0);
    std::shuffle(numbers.begin(), numbers.end(), random());
    std::vector<std::unique_ptr<device_array<std::int32_t>>> lists;
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      static_cast<void>(on(rank));
      lists.push_back(std::make_unique<device_array<std::int32_t>>(numbers));
    }
    change_ = [&](std::uint32_t rank, gemm::row_problem& made) {
      made.c_rows = lists[rank]->data();
      made.c_row_count = made.rows;
    };
    compare(5);
  }
}

TEST_P(options_of_dispatches, gated_results_have_the_same_bits) {
  for (const bool has_8_bits : {false, true}) {
    if (has_8_bits) take_8_bits(sizes_, type_);
    change_ = [](std::uint32_t, gemm::row_problem& made) { made.epilogue.gate.function = gemm::gate_function::silu; };
    prepare(many_tokens);
    compare(5);
  }
}

INSTANTIATE_TEST_SUITE_P(one_rank, options_of_dispatches, ::testing::Values(virtual_ranks(1)));
INSTANTIATE_TEST_SUITE_P(two_virtual_ranks, options_of_dispatches, ::testing::Values(virtual_ranks(2)));
INSTANTIATE_TEST_SUITE_P(two_gpus, options_of_dispatches, ::testing::Values(ranks_of_process({0, 1})));

}  // namespace
}  // namespace tmap::testing::pending
