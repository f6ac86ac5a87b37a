// SPDX-License-Identifier: Apache-2.0
// Tests which arguments dispatch and combine refuse. Every argument is refused before CUDA is
// called.
#include <tmap/expert_parallel.hpp>
#include <tmap/peer_group.hpp>

#include <gtest/gtest.h>

#include "support/refusal.hpp"

namespace tmap::testing {
namespace {

using expert_parallel::combine_problem;
using expert_parallel::dispatch_problem;
using expert_parallel::shape;

constexpr std::uint64_t experts_window = 8 << 20;

class experts_refusals : public ::testing::Test {
 protected:
  experts_refusals() {
    auto group = peer_group::from_addresses(1, {0x10000000, 0x70000000}, experts_window + peer_header_bytes);
    window_ = group->allocate(experts_window).value();
    sizes() = {.tokens = 100, .k = 2, .experts = 8, .arrivals = 200, .row_bytes = 256, .columns = 128};
    sizes().result_type = moe::float_type::bf16;
    sent_.x = {at(0), 256};
    sent_.out = {at(1 << 20), 256};
    sent_.ids = reinterpret_cast<const std::int32_t*>(0x1000);
    returned_.sizes = sizes();
    returned_.values = {0x2000000, 256};
    returned_.out = {0x3000000, 256};
    run_.scratch = {reinterpret_cast<void*>(at(2 << 20)), experts_window - (2 << 20)};
  }

  shape& sizes() { return sent_.sizes; }
  std::uint64_t at(std::uint64_t offset) const { return window_.ref().address(1, offset); }
  void expect_dispatch_refused(const char* argument) { expect_refused(dispatch_async(window_, sent_, run_), argument); }
  void expect_combine_refused(const char* argument) {
    expect_refused(combine_async(window_, returned_, run_), argument);
  }

  peer_memory window_;
  dispatch_problem sent_;
  combine_problem returned_;
  expert_parallel::run run_{.stream = cuda::stream_ref{cudaStream_t{}}};
};

TEST_F(experts_refusals, calls_need_a_window) {
  expect_refused(dispatch_async({}, sent_, run_), "window");
  expect_refused(combine_async({}, returned_, run_), "window");
}

TEST_F(experts_refusals, experts_are_dealt_evenly) {
  sizes().experts = 7;
  expect_dispatch_refused("problem.sizes.experts");
  sizes().experts = 0;
  expect_dispatch_refused("problem.sizes.experts");
  sizes().experts = 2 * (moe::max_experts + 1);
  expect_dispatch_refused("problem.sizes.experts");
}

TEST_F(experts_refusals, sizes_have_bounds) {
  const shape good = sizes();
  const auto refused = [&](const char* argument) {
    expect_dispatch_refused(argument);
    sizes() = good;
  };
  sizes().k = 0;
  refused("problem.sizes.k");
  sizes().k = moe::max_k + 1;
  refused("problem.sizes.k");
  sizes().tokens = moe::max_choices / 2 + 1;
  refused("problem.sizes.tokens");
  sizes().arrivals = moe::max_choices / 2 + 1;
  refused("problem.sizes.arrivals");
  sizes().alignment = 3;
  refused("problem.sizes.alignment");
  sizes().alignment = 16;
  sizes().rows = 100;
  refused("problem.sizes.rows");
  sizes().row_bytes = 24;
  refused("problem.sizes.row_bytes");
  sizes().scales = 4097;
  refused("problem.sizes.scales");
  sizes().columns = 0;
  refused("problem.sizes.columns");
  sizes().columns = 4;
  refused("problem.sizes.columns");
}

TEST_F(experts_refusals, rows_lie_in_the_window_and_apart) {
  const dispatch_problem good = sent_;
  const auto refused = [&](const char* argument) {
    expect_dispatch_refused(argument);
    sent_ = good;
  };
  sent_.x.address = 0x2000000;
  refused("problem.x.address");
  sent_.x.pitch_bytes = 240;
  refused("problem.x.pitch_bytes");
  sent_.x.pitch_bytes = 264;
  refused("problem.x.pitch_bytes");
  sent_.out.address = at(experts_window - 256);
  refused("problem.out.address");
  sent_.out.address = at(256);
  refused("problem.out");
  sent_.out.address = at(2 << 20);
  refused("run.scratch.memory");
}

TEST_F(experts_refusals, arrays_are_there) {
  const dispatch_problem good = sent_;
  sent_.ids = nullptr;
  expect_dispatch_refused("problem.ids");
  sent_ = good;
  sizes().scales = 2;
  expect_dispatch_refused("problem.x_scales");
  sent_.x_scales = reinterpret_cast<const float*>(0x1000);
  sent_.x_scale_pitch = 1;
  expect_dispatch_refused("problem.x_scale_pitch");
  sent_ = good;
  sent_.counts = reinterpret_cast<std::int32_t*>(0x1002);
  expect_dispatch_refused("problem.counts");
  sent_ = good;
  sent_.pending = reinterpret_cast<std::uint32_t*>(0x1002);
  expect_dispatch_refused("problem.pending");
  sent_.pending = reinterpret_cast<std::uint32_t*>(0x1000);
  expect_dispatch_refused("problem.ready");
}

TEST_F(experts_refusals, results_that_come_home_one_by_one_are_counted_by_32_bits) {
  shape sizes{.tokens = 1 << 22, .k = 32, .experts = 1024, .arrivals = 1, .row_bytes = 16, .columns = 8};
  sizes.returned = expert_parallel::return_kind::rows;
  EXPECT_TRUE(expert_parallel::workspace_bytes(sizes, 16).has_value());
  expect_refused(expert_parallel::workspace_bytes(sizes, 32), "sizes.tokens");
  sizes.returned = expert_parallel::return_kind::sums;
  EXPECT_TRUE(expert_parallel::workspace_bytes(sizes, 32).has_value());
}

TEST_F(experts_refusals, a_workspace_is_large_enough_and_in_the_window) {
  const std::uint64_t needed = expert_parallel::workspace_bytes(sizes(), 2).value();
  EXPECT_GT(needed, 0u);
  run_.scratch.bytes = needed - 1;
  expect_dispatch_refused("run.scratch.bytes");
  expect_combine_refused("run.scratch.bytes");
  run_.scratch = {reinterpret_cast<void*>(at(experts_window - 256)), needed};
  expect_dispatch_refused("run.scratch.memory");
  run_.scratch.memory = reinterpret_cast<void*>(at((2 << 20) + 16));
  expect_dispatch_refused("run.scratch.memory");
  expect_refused(expert_parallel::workspace_bytes(sizes(), 0), "ranks");
  expect_refused(expert_parallel::workspace_bytes(sizes(), 3), "sizes.experts");
}

TEST_F(experts_refusals, matrices_of_a_combine_are_aligned) {
  const combine_problem good = returned_;
  returned_.values.address = 8;
  expect_combine_refused("problem.values.address");
  returned_ = good;
  returned_.out.pitch_bytes = 128;
  expect_combine_refused("problem.out.pitch_bytes");
  returned_ = good;
  returned_.base = {0x4000008, 256};
  expect_combine_refused("problem.base.address");
}

TEST_F(experts_refusals, results_that_others_pull_lie_in_the_window) {
  returned_.sizes.returned = expert_parallel::return_kind::rows;
  expect_combine_refused("problem.values.address");
  returned_.values.address = at(2 << 20);
  expect_combine_refused("run.scratch.memory");
  returned_.sizes.returned = static_cast<expert_parallel::return_kind>(2);
  expect_combine_refused("problem.sizes.returned");
}

TEST_F(experts_refusals, blocks_and_patience_of_a_run_have_bounds) {
  run_.blocks = 144;
  expect_dispatch_refused("run.blocks");
  run_.blocks = 16;
  run_.patience = std::chrono::milliseconds{0};
  expect_combine_refused("run.patience");
}

}  // namespace
}  // namespace tmap::testing
