// SPDX-License-Identifier: Apache-2.0
// Tests dispatches and combines of experts in C without a GPU: what becomes of each member of their
// problems, and what is refused by which name.
#include <tmap/tmap.h>
#include <tmap/expert_parallel.hpp>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "interop/refuses_bad_structs.hpp"
#include "interop/sized.hpp"
#include "interop/unread.hpp"
#include "lib/interop/convert.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t experts_buffer_bytes = 8 << 20;
constexpr std::uint64_t days_of_patience = 25 * 60 * 60 * 1000;
constexpr std::array<std::uint64_t, 2> expert_buffers{0x10000000, 0x70000000};

/// Returns sizes that differ from each other.
tmap_expert_shape expert_sizes() {
  tmap_expert_shape made = sized<tmap_expert_shape>();
  made.k = 2;
  made.tokens = 100;
  made.arrivals = 200;
  made.columns = 128;
  made.experts = 8;
  made.row_bytes = 256;
  made.result_type = TMAP_FLOAT_BF16;
  return made;
}

class c_peer_experts : public ::testing::Test {
 protected:
  c_peer_experts() {
    tmap_peer_group group{};
    EXPECT_EQ(tmap_peer_group_from_addresses(1, expert_buffers.data(), 2, experts_buffer_bytes, &group), TMAP_OK);
    EXPECT_EQ(tmap_peer_group_allocate(group, experts_buffer_bytes - TMAP_PEER_HEADER_BYTES, &window_), TMAP_OK);
    EXPECT_EQ(tmap_peer_group_destroy(group), TMAP_OK);
  }
  ~c_peer_experts() override { tmap_peer_memory_destroy(window_); }

  static std::uint64_t at(std::uint64_t offset) { return expert_buffers[1] + TMAP_PEER_HEADER_BYTES + offset; }

  /// Returns a problem without fault, for a window of these addresses.
  static tmap_peer_dispatch_problem dispatched() {
    tmap_peer_dispatch_problem made = sized<tmap_peer_dispatch_problem>();
    made.sizes = expert_sizes();
    made.x = {at(0), 256};
    made.ids = unread<std::int32_t>(0x1000);
    made.out = {at(1 << 20), 272};
    made.workspace = unread<void>(at(2 << 20));
    made.workspace_bytes = 4 << 20;
    return made;
  }
  static tmap_peer_combine_problem combined() {
    tmap_peer_combine_problem made = sized<tmap_peer_combine_problem>();
    made.sizes = expert_sizes();
    made.values = {at(1 << 20), 256};
    made.out = {0x3000000, 272};
    made.workspace = unread<void>(at(2 << 20));
    made.workspace_bytes = 4 << 20;
    return made;
  }

  template <class Spoil>
  std::string refused_dispatch(const Spoil& spoil) const {
    tmap_peer_dispatch_problem bad = dispatched();
    spoil(bad);
    return refused(tmap_peer_dispatch(window_, &bad, nullptr));
  }
  template <class Spoil>
  std::string refused_combine(const Spoil& spoil) const {
    tmap_peer_combine_problem bad = combined();
    spoil(bad);
    return refused(tmap_peer_combine(window_, &bad, nullptr));
  }

  tmap_peer_memory window_{};
};

TEST(c_expert_shapes, are_converted_whole) {
  tmap_expert_shape from = expert_sizes();
  from.rows = 48;
  from.alignment = 16;
  from.scales = 5;
  from.returned = TMAP_RETURN_ROWS;
  const expert_parallel::shape made = interop::library_of(from);
  EXPECT_EQ(made.tokens, 100u);
  EXPECT_EQ(made.k, 2u);
  EXPECT_EQ(made.experts, 8u);
  EXPECT_EQ(made.arrivals, 200u);
  EXPECT_EQ(made.rows, 48u);
  EXPECT_EQ(made.alignment, 16u);
  EXPECT_EQ(made.row_bytes, 256u);
  EXPECT_EQ(made.scales, 5u);
  EXPECT_EQ(made.columns, 128u);
  EXPECT_EQ(made.result_type, moe::float_type::bf16);
  EXPECT_EQ(made.returned, expert_parallel::return_kind::rows);
  from.alignment = 0;
  EXPECT_EQ(interop::library_of(from).alignment, 1u);
}

TEST_F(c_peer_experts, dispatches_are_converted_whole) {
  tmap_peer_dispatch_problem from = dispatched();
  from.x_scales = unread<float>(0x2000);
  from.x_scale_pitch = 7;
  from.weights = unread<float>(0x3000);
  from.out_scales = unread<float>(0x4000);
  from.counts = unread<std::int32_t>(0x5000);
  from.begins = unread<std::int32_t>(0x6000);
  from.ends = unread<std::int32_t>(0x7000);
  from.weight_of_row = unread<float>(0x8000);
  from.pending = unread<std::uint32_t>(0x9000);
  from.ready = reinterpret_cast<tmap_event>(0xa000);
  const expert_parallel::dispatch_problem made = interop::library_of(from);
  EXPECT_EQ(made.sizes.arrivals, 200u);
  EXPECT_EQ(made.x.address, at(0));
  EXPECT_EQ(made.x.pitch_bytes, 256u);
  EXPECT_EQ(made.x_scales, from.x_scales);
  EXPECT_EQ(made.x_scale_pitch, 7u);
  EXPECT_EQ(made.ids, from.ids);
  EXPECT_EQ(made.weights, from.weights);
  EXPECT_EQ(made.out.address, at(1 << 20));
  EXPECT_EQ(made.out.pitch_bytes, 272u);
  EXPECT_EQ(made.out_scales, from.out_scales);
  EXPECT_EQ(made.counts, from.counts);
  EXPECT_EQ(made.begins, from.begins);
  EXPECT_EQ(made.ends, from.ends);
  EXPECT_EQ(made.weight_of_row, from.weight_of_row);
  EXPECT_EQ(made.pending, from.pending);
  EXPECT_EQ(made.ready, reinterpret_cast<cudaEvent_t>(0xa000));
}

TEST_F(c_peer_experts, combines_are_converted_whole) {
  tmap_peer_combine_problem from = combined();
  from.weights = unread<float>(0x3000);
  from.base = {0x4000000, 288};
  const expert_parallel::combine_problem made = interop::library_of(from);
  EXPECT_EQ(made.sizes.tokens, 100u);
  EXPECT_EQ(made.values.address, at(1 << 20));
  EXPECT_EQ(made.values.pitch_bytes, 256u);
  EXPECT_EQ(made.weights, from.weights);
  EXPECT_EQ(made.base.address, 0x4000000u);
  EXPECT_EQ(made.base.pitch_bytes, 288u);
  EXPECT_EQ(made.out.address, 0x3000000u);
  EXPECT_EQ(made.out.pitch_bytes, 272u);
}

TEST_F(c_peer_experts, structs_are_checked) {
  refuses_bad_structs<tmap_peer_dispatch_problem>(dispatched(),
                                                  [&](auto* p) { return tmap_peer_dispatch(window_, p, nullptr); });
  refuses_bad_structs<tmap_peer_combine_problem>(combined(),
                                                 [&](auto* p) { return tmap_peer_combine(window_, p, nullptr); });
  EXPECT_EQ(refused_dispatch([](auto& p) { p.sizes.struct_size = 0; }), "problem.sizes.struct_size");
  EXPECT_EQ(refused_combine([](auto& p) { --p.sizes.struct_size; }), "problem.sizes.struct_size");
}

TEST_F(c_peer_experts, dispatches_are_refused_by_the_names_of_c) {
  EXPECT_EQ(refused_dispatch([](auto& p) { p.sizes.experts = 7; }), "problem.sizes.experts");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.sizes.k = 0; }), "problem.sizes.k");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.sizes.tokens = ~std::uint64_t{0}; }), "problem.sizes.tokens");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.sizes.arrivals = ~std::uint64_t{0}; }), "problem.sizes.arrivals");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.sizes.alignment = 3; }), "problem.sizes.alignment");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.sizes.row_bytes = 24; }), "problem.sizes.row_bytes");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.sizes.scales = 4097; }), "problem.sizes.scales");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.sizes.columns = 4; }), "problem.sizes.columns");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.sizes.result_type = 3; }), "problem.sizes.result_type");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.sizes.returned = 2; }), "problem.sizes.returned");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.x.address = 0x2000000; }), "problem.x.address");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.x.pitch_bytes = 264; }), "problem.x.pitch_bytes");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.out.address = at(256); }), "problem.out");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.ids = nullptr; }), "problem.ids");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.weights = unread<float>(0x1002); }), "problem.weights");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.sizes.scales = 2; }), "problem.x_scales");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.out_scales = unread<float>(0x1002); }), "problem.out_scales");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.counts = unread<std::int32_t>(0x1002); }), "problem.counts");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.begins = unread<std::int32_t>(0x1002); }), "problem.begins");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.ends = unread<std::int32_t>(0x1002); }), "problem.ends");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.weight_of_row = unread<float>(0x1002); }), "problem.weight_of_row");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.pending = unread<std::uint32_t>(0x1002); }), "problem.pending");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.pending = unread<std::uint32_t>(0x1000); }), "problem.ready");
}

TEST_F(c_peer_experts, combines_are_refused_by_the_names_of_c) {
  EXPECT_EQ(refused_combine([](auto& p) { p.sizes.experts = 7; }), "problem.sizes.experts");
  EXPECT_EQ(refused_combine([](auto& p) { p.values.address = 8; }), "problem.values.address");
  EXPECT_EQ(refused_combine([](auto& p) { p.out.pitch_bytes = 128; }), "problem.out.pitch_bytes");
  EXPECT_EQ(refused_combine([](auto& p) { p.base = {0x4000008, 256}; }), "problem.base.address");
  EXPECT_EQ(refused_combine([](auto& p) {
              p.sizes.returned = TMAP_RETURN_ROWS;
              p.values.address = 0x2000000;
            }),
            "problem.values.address");
}

TEST_F(c_peer_experts, choices_of_a_run_belong_to_the_problem) {
  EXPECT_EQ(refused_dispatch([](auto& p) { p.blocks = 144; }), "problem.blocks");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.patience_ms = days_of_patience; }), "problem.patience_ms");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.workspace = nullptr; }), "problem.workspace");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.workspace = unread<void>(at((2 << 20) + 16)); }), "problem.workspace");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.workspace = unread<void>(at(0)); }), "problem.workspace");
  EXPECT_EQ(refused_dispatch([](auto& p) { p.workspace_bytes = 1 << 10; }), "problem.workspace_bytes");
  EXPECT_EQ(refused_combine([](auto& p) { p.blocks = 144; }), "problem.blocks");
  EXPECT_EQ(refused_combine([](auto& p) { p.patience_ms = days_of_patience; }), "problem.patience_ms");
  EXPECT_EQ(refused_combine([](auto& p) { p.workspace = nullptr; }), "problem.workspace");
  EXPECT_EQ(refused_combine([](auto& p) { p.workspace_bytes = 1 << 10; }), "problem.workspace_bytes");
}

TEST_F(c_peer_experts, handles_of_no_window_are_refused) {
  const tmap_peer_dispatch_problem there = dispatched();
  const tmap_peer_combine_problem back = combined();
  tmap_peer_memory ended = window_;
  EXPECT_EQ(tmap_peer_memory_destroy(window_), TMAP_OK);
  for (const std::uint64_t wild : {std::uint64_t{0}, ended.value, ~std::uint64_t{0}}) {
    EXPECT_EQ(tmap_peer_dispatch({wild}, &there, nullptr), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_peer_combine({wild}, &back, nullptr), TMAP_INVALID_HANDLE);
  }
}

/// Calls with a window that is destroyed meanwhile must find their fault or that it is gone.
TEST_F(c_peer_experts, a_window_ends_under_its_dispatches) {
  std::atomic<std::uint64_t> wrong{}, refusals{};
  tmap_peer_dispatch_problem there = dispatched();
  tmap_peer_combine_problem back = combined();
  there.blocks = back.blocks = 144;
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([&] {
      for (tmap_status ended = TMAP_OK; ended != TMAP_INVALID_HANDLE;) {
        ended = tmap_peer_dispatch(window_, &there, nullptr);
        wrong += ended != TMAP_INVALID_ARGUMENT && ended != TMAP_INVALID_HANDLE ? 1 : 0;
        ended = tmap_peer_combine(window_, &back, nullptr);
        wrong += ended != TMAP_INVALID_ARGUMENT && ended != TMAP_INVALID_HANDLE ? 1 : 0;
        refusals += ended == TMAP_INVALID_ARGUMENT ? 1 : 0;
      }
    });
  }
  while (refusals < 100 && wrong == 0) std::this_thread::yield();
  EXPECT_EQ(tmap_peer_memory_destroy(window_), TMAP_OK);
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(wrong, 0u);
}

TEST(c_expert_shapes, need_the_workspace_and_the_rows_of_the_library) {
  tmap_expert_shape sizes = expert_sizes();
  sizes.alignment = 16;
  for (const std::uint32_t returned : {TMAP_RETURN_SUMS, TMAP_RETURN_ROWS}) {
    sizes.returned = returned;
    for (const std::uint32_t ranks : {1u, 2u, 4u}) {
      std::uint64_t bytes = 77, rows = 77;
      ASSERT_EQ(tmap_peer_workspace_bytes(&sizes, ranks, &bytes), TMAP_OK);
      ASSERT_EQ(tmap_peer_expert_rows(&sizes, ranks, &rows), TMAP_OK);
      const expert_parallel::shape same = interop::library_of(sizes);
      EXPECT_EQ(bytes, expert_parallel::workspace_bytes(same, ranks).value());
      EXPECT_EQ(rows, expert_parallel::row_count(same, ranks));
      EXPECT_GT(bytes, rows);
    }
  }
  std::uint64_t rows = 77;
  sizes.rows = 4096;
  EXPECT_EQ(tmap_peer_expert_rows(&sizes, 2, &rows), TMAP_OK);
  EXPECT_EQ(rows, 4096u);
}

TEST(c_expert_shapes, are_refused_and_named) {
  tmap_expert_shape sizes = expert_sizes();
  std::uint64_t number = 77;
  const auto bytes_of = [&](const tmap_expert_shape* of) { return tmap_peer_workspace_bytes(of, 2, &number); };
  const auto rows_of = [&](const tmap_expert_shape* of) { return tmap_peer_expert_rows(of, 2, &number); };
  refuses_bad_structs<tmap_expert_shape>(sizes, bytes_of);
  refuses_bad_structs<tmap_expert_shape>(sizes, rows_of);
  EXPECT_EQ(refused(tmap_peer_workspace_bytes(&sizes, 0, &number)), "ranks");
  EXPECT_EQ(refused(tmap_peer_expert_rows(&sizes, 33, &number)), "ranks");
  EXPECT_EQ(refused(tmap_peer_workspace_bytes(&sizes, 3, &number)), "sizes.experts");
  EXPECT_EQ(refused(tmap_peer_expert_rows(&sizes, 3, &number)), "sizes.experts");
  EXPECT_EQ(refused(tmap_peer_workspace_bytes(&sizes, 2, nullptr)), "bytes");
  EXPECT_EQ(refused(tmap_peer_expert_rows(&sizes, 2, nullptr)), "rows");
  EXPECT_EQ(number, 77u);
}

}  // namespace
}  // namespace tmap::testing
