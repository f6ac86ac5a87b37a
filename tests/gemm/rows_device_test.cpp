// SPDX-License-Identifier: Apache-2.0
// Tests products with groups of rows on the GPU. Compares every form with sums in double, and every
// byte of the output.
#include <tmap/decode.hpp>
#include <tmap/faults.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <tuple>
#include <vector>

#include "gemm/row_runs.hpp"
#include "kernels/gemm/gemm_group.hpp"
#include "support/run_seed.hpp"

namespace tmap::gemm::testing {
namespace {

/// Rounds sizes up if lines of A run along the rows: groups then begin at multiples of 8.
std::vector<std::int64_t> of_layout(a_layout layout, const std::vector<std::int64_t>& sizes) {
  return layout == a_layout::m_by_k ? sizes : aligned_sizes(sizes);
}

const std::vector<std::int64_t> edge_sizes{0, 1, 63, 64, 65, 0, 127, 128, 129, 1000, 0};

class grouped_rows_of_type
    : public gemm_test,
      public ::testing::WithParamInterface<std::tuple<operand_type, a_layout, b_layout, input_kind, bool>> {
 protected:
  static row_settings settings() {
    row_settings with;
    std::tie(with.type, with.a_layout, with.b_layout, with.kind, with.fast_accumulation) = GetParam();
    with.sizes = of_layout(with.a_layout, edge_sizes);
    return with;
  }
};

TEST_P(grouped_rows_of_type, sizes_around_tiles) {
  run(settings());
}

TEST_P(grouped_rows_of_type, every_epilogue) {
  for (int parts = 0; parts < 32; ++parts) {
    row_settings with = settings();
    with.bias = (parts & 1) != 0;
    with.accumulate = (parts & 2) != 0;
    with.row_scales = (parts & 4) != 0;
    with.column_scales = (parts & 8) != 0;
    if ((parts & 16) != 0) with.gates.function = gate_function::silu;
    // The function of a gate does not return integers.
    if (with.has_gates()) with.kind = input_kind::normal;
    with.sizes = of_layout(with.a_layout, {70, 0, 1, 130});
    run(with);
  }
}

TEST_P(grouped_rows_of_type, tails_of_columns_and_of_k) {
  const std::uint64_t unit = 16 / operand_bytes(std::get<0>(GetParam()));
  for (const std::uint64_t n : {unit, 5 * unit, 17 * unit, 33 * unit, 65 * unit}) {
    for (const std::uint64_t k : {unit, 8 * unit, 9 * unit, 25 * unit, 129 * unit}) {
      row_settings with = settings();
      with.n = n;
      with.k = k;
      with.sizes = of_layout(with.a_layout, {3, 0, 129, 64});
      with.number = n + k;
      run(with);
    }
  }
}

TEST_P(grouped_rows_of_type, tails_with_swiglu) {
  for (const std::uint64_t n : {std::uint64_t{32}, std::uint64_t{96}, std::uint64_t{288}, std::uint64_t{544}}) {
    row_settings with = settings();
    with.kind = input_kind::normal;
    with.gates.function = gate_function::silu;
    with.n = n;
    with.sizes = of_layout(with.a_layout, {3, 0, 129, 64});
    run(with);
  }
}

INSTANTIATE_TEST_SUITE_P(sixteen_bits, grouped_rows_of_type,
                         ::testing::Combine(::testing::Values(operand_type::bf16, operand_type::f16),
                                            ::testing::Values(a_layout::m_by_k, a_layout::k_by_m),
                                            ::testing::Values(b_layout::n_by_k, b_layout::k_by_n),
                                            ::testing::Values(input_kind::normal, input_kind::integers),
                                            ::testing::Values(false)));
INSTANTIATE_TEST_SUITE_P(eight_bits, grouped_rows_of_type,
                         ::testing::Combine(::testing::Values(operand_type::f8_e4m3),
                                            ::testing::Values(a_layout::m_by_k), ::testing::Values(b_layout::n_by_k),
                                            ::testing::Values(input_kind::normal, input_kind::integers),
                                            ::testing::Bool()));

TEST_F(grouped_rows, every_format_of_offsets) {
  for (const auto format : every_format) {
    for (const auto layout : {a_layout::m_by_k, a_layout::k_by_m}) {
      for (const std::uint32_t bytes : {4u, 8u}) {
        row_settings with;
        with.kind = input_kind::integers;
        with.a_layout = layout;
        with.sizes = of_layout(layout, edge_sizes);
        with.format = format;
        with.offset_bytes = bytes;
        run(with);
      }
    }
  }
}

TEST_F(grouped_rows, every_plan) {
  for (const auto a : {a_layout::m_by_k, a_layout::k_by_m}) {
    for (const auto b : {b_layout::n_by_k, b_layout::k_by_n}) {
      for (const std::uint64_t n : {520, 1000}) {
        row_settings with;
        with.kind = input_kind::integers;
        with.a_layout = a;
        with.b_layout = b;
        with.sizes = of_layout(a, plan_sizes);
        with.n = n;
        with.k = 328;
        run_every_plan(with);
      }
    }
  }
}

TEST_F(grouped_rows, few_blocks_in_every_plan) {
  row_settings with;
  with.kind = input_kind::integers;
  with.sizes = plan_sizes;
  with.n = 520;
  const row_case made(with);
  const rows_on_device device(made);
  const auto want = made.expected();
  for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
    for (const std::uint32_t blocks : {2u, 3u, 9u, 1'000'000u}) {
      device.reset_output();
      TMAP_ASSERT_OK(device.enqueue_bounded(plan, blocks));
      device.expect(made, want, fmt::format("{} with {} blocks", plan_name(plan), blocks));
    }
  }
}

TEST_F(grouped_rows, matrices_by_lists_of_addresses) {
  for (int lists = 1; lists < 4; ++lists) {
    for (const auto layout : {b_layout::n_by_k, b_layout::k_by_n}) {
      row_settings with;
      with.kind = input_kind::integers;
      with.b_layout = layout;
      with.lists_b = (lists & 1) != 0;
      with.lists_c = (lists & 2) != 0;
      with.sizes = plan_sizes;
      run_every_plan(with);
      with.kind = input_kind::normal;
      with.gates.function = gate_function::silu;
      run_every_plan(with);
    }
  }
}

TEST_F(grouped_rows, bad_addresses_in_lists_touch_nothing) {
  row_settings with;
  with.kind = input_kind::integers;
  with.sizes = {40, 40, 40, 0, 40};
  with.lists_b = with.lists_c = true;
  const row_case made(with);
  const rows_on_device device(made);
  const auto bad = static_cast<std::uint32_t>(fault::address);
  const auto spoil = [](const std::uint64_t* list, std::uint64_t index, std::uint64_t value) {
    EXPECT_EQ(cudaMemcpy(const_cast<std::uint64_t*>(list) + index, &value, sizeof(value), cudaMemcpyHostToDevice),
              cudaSuccess);
  };
  spoil(device.problem().b_addresses, 1, 0);
  spoil(device.problem().c_addresses, 2, (std::uint64_t{1} << 57) - 16);
  spoil(device.problem().c_addresses, 3, 8);  // of an empty group, whose address nobody reads
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  std::vector<judged_group> judged = made.judged();
  judged[1].status.bits = judged[2].status.bits = bad;
  device.memory().expect(judged);
  const host_matrix got = device.output();
  for (const std::size_t g : {1, 2}) {
    for (std::uint64_t row = judged[g].begin; row < judged[g].end; ++row) {
      for (std::uint64_t column = 0; column < with.n; ++column) {
        ASSERT_EQ(got.bytes()[got.place_of(row, column)], poison_byte) << "group " << g;
      }
    }
  }
}

TEST_F(grouped_rows, groups_that_share_rows_are_bad_unless_their_outputs_are_apart) {
  row_settings with;
  with.kind = input_kind::integers;
  with.format = offset_format::begins_and_counts;
  with.sizes = {30, 30, 30, 30};
  with.fills_gaps = true;
  row_case made(with);
  const rows_on_device device(made);
  for (const std::vector<std::int64_t>& values : {std::vector<std::int64_t>{0, 29, 60, 40, 30, 30, 30, 20},
                                                  {100, 90, 80, 0, 10, 10, 10, 80},
                                                  {50, 0, 49, 0, 10, 60, 1, 10},
                                                  {-1, 5, 1 << 30, 20, 10, 1 << 30, -4, 20}}) {
    device.set_offsets(made, values);
    TMAP_ASSERT_OK(device.enqueue(nullptr));
    device.expect(made, "first begin " + std::to_string(values[0]));
  }
}

TEST_F(grouped_rows, groups_that_begin_where_no_copy_can_are_bad) {
  row_settings with;
  with.kind = input_kind::integers;
  with.a_layout = a_layout::k_by_m;
  with.sizes = {8, 5, 3, 64, 9};
  run(with);
}

TEST_F(grouped_rows, labels_that_name_no_group_are_counted) {
  row_settings with;
  with.kind = input_kind::integers;
  with.format = offset_format::labels;
  with.sizes = {20, 20, 20};
  with.fills_gaps = true;
  row_case made(with);
  std::vector<std::int64_t> labels = made.offsets();
  std::fill(labels.begin(), labels.begin() + 4, 3);
  labels[4] = -2;
  made.set_offsets(labels);
  const rows_on_device device(made);
  TMAP_ASSERT_OK(reset_faults());
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect(made, "labels 3 and -2 of three groups");
  const result<fault_report> report = reset_faults();
  TMAP_ASSERT_OK(report);
  EXPECT_EQ(report->groups, 5u);
  EXPECT_LT(report->first.index, 5u);
  EXPECT_EQ(report->first.bits, static_cast<std::uint64_t>(fault::label));
}

TEST_F(grouped_rows, every_plan_with_gates) {
  for (const std::uint64_t n : {544, 960}) {
    row_settings with;
    with.sizes = plan_sizes;
    with.gates.function = gate_function::silu;
    with.n = n;
    run_every_plan(with);
  }
}

TEST_F(grouped_rows, every_number_of_rows_from1_to300) {
  row_settings with;
  with.kind = input_kind::integers;
  with.n = 64;
  with.k = 64;
  for (std::int64_t rows = 1; rows <= 300; ++rows) with.sizes.push_back(rows);
  run(with);
}

TEST_F(grouped_rows, empty_groups_anywhere) {
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{0, 0, 5, 9}, {5, 0, 0, 9}, {5, 9, 0, 0}, {0, 0, 0, 0}, {0}, {77}, {1}}) {
    row_settings with;
    with.kind = input_kind::integers;
    with.sizes = sizes;
    run(with);
  }
}

// There are many more tiles than blocks in every plan.
TEST_F(grouped_rows, a_thousand_groups) {
  std::mt19937_64 random = tmap::testing::run_random(7);
  row_settings with;
  with.kind = input_kind::integers;
  with.n = 64;
  with.k = 32;
  for (int g = 0; g < 1024; ++g) with.sizes.push_back(static_cast<std::int64_t>(random() % 90));
  run_every_plan(with);
}

// Set-up works in rounds, and each of its blocks takes several parts.
TEST_F(grouped_rows, thousands_of_small_groups) {
  for (const auto format : every_format) {
    std::mt19937_64 random = tmap::testing::run_random(8);
    row_settings with;
    with.kind = input_kind::integers;
    with.format = format;
    with.n = 64;
    with.k = 32;
    for (int g = 0; g < 5000; ++g) with.sizes.push_back(static_cast<std::int64_t>(random() % 3));
    run(with);
  }
}

TEST_F(grouped_rows, bad_groups_far_behind_the_first) {
  row_settings with;
  with.kind = input_kind::integers;
  with.n = 64;
  with.k = 32;
  with.sizes.assign(1000, 3);
  row_case made(with);
  std::vector<std::int64_t> ends = made.offsets();
  ends[300] = ends[299] - 1;
  ends[700] = std::int64_t{1} << 30;
  made.set_offsets(ends);
  const rows_on_device device(made);
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect(made, "ends 300 and 700 are wrong");
}

TEST_F(grouped_rows, a_long_k) {
  row_settings with;
  with.sizes = {130, 5};
  with.k = 7168;
  run(with);
}

/// C looks the same if the rest of a group's last tile reads as zeros or as the next group's rows.
TEST_F(grouped_rows, maps_of_a_end_where_their_groups_end) {
  row_settings with;
  with.sizes = {130, 0, 5, 64};
  const row_case made(with);
  const rows_on_device device(made);
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect(made, text_of(with));
  const kernels::gemm_scratch scratch = kernels::cut_scratch(device.memory().scratch().memory, with.groups());
  std::vector<tensor_map> maps(with.groups());
  ASSERT_EQ(cudaMemcpy(maps.data(), scratch.a, maps.size() * sizeof(maps[0]), cudaMemcpyDeviceToHost), cudaSuccess);
  const matrix a = device.problem().a;
  const std::vector<judged_group> judged = made.judged();
  for (const std::size_t g : {0, 2, 3}) {
    const result<decoded_map> map = decode(maps[g]);
    TMAP_ASSERT_OK(map);
    EXPECT_EQ(map->spec.global_address, a.address) << "group " << g;
    EXPECT_EQ(map->spec.global_dim[0], with.k) << "group " << g;
    EXPECT_EQ(map->spec.global_dim[1], judged[g].end) << "group " << g;
    EXPECT_EQ(map->spec.global_stride_bytes[0], a.pitch_bytes) << "group " << g;
  }
}

TEST_F(grouped_rows, no_spare_rows) {
  row_settings with;
  with.kind = input_kind::integers;
  with.sizes = {5, 130};
  with.spare_rows = 0;
  run(with);
}

}  // namespace
}  // namespace tmap::gemm::testing
