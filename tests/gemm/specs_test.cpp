// SPDX-License-Identifier: Apache-2.0
// Tests that the tensor maps of products are legal for every plan and form.
#include <tmap/grouped_gemm.hpp>
#include <tmap/make_template.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "kernels/gemm/gemm_group.hpp"
#include "lib/gemm/plan.hpp"

namespace tmap::gemm::testing {
namespace {

void expect_legal(const map_spec& spec, const char* operand, const kernels::gemm_plan& plan) {
  // Checks the same as `make_template`, but without the driver.
  const result<map_template> made = make_zeroed_template(spec.spec, spec.fields);
  ASSERT_TRUE(made.has_value()) << operand << ", " << plan.name << ": " << to_string(made.error());
  EXPECT_EQ(made->fields, spec.fields);
}

template <class Problem>
void expect_legal_maps(const Problem& problem) {
  EXPECT_LT(choose_plan(problem), kernels::gemm_plan_count);
  for (const kernels::gemm_plan& plan : kernels::gemm_plans) {
    const map_specs specs = map_specs_of(problem, plan);
    expect_legal(specs.a, "a", plan);
    expect_legal(specs.b, "b", plan);
    expect_legal(specs.c, "c", plan);
    expect_legal(specs.second, "second", plan);
  }
}

row_problem rows_of(operand_type type, b_layout layout, gate_function function, std::uint64_t rows, std::uint64_t n,
                    std::uint64_t k) {
  const std::uint64_t bytes = operand_bytes(type);
  const std::uint64_t c_columns = function != gate_function::none ? n / 2 : n;
  row_problem made;
  made.type = type;
  made.groups = 3;
  made.rows = rows;
  made.n = n;
  made.k = k;
  made.a = {0x100000, k * bytes + 16};
  made.b = {0x200000, (layout == b_layout::n_by_k ? k : n) * bytes + 16};
  made.b_group_pitch_bytes = (layout == b_layout::n_by_k ? n : k) * made.b.pitch_bytes;
  made.b_layout = layout;
  made.c = {0x300000, c_columns * 2 + 16};
  made.epilogue.gate.function = function;
  return made;
}

TEST(grouped_maps, of_rows_are_legal) {
  for (const auto function : {gate_function::none, gate_function::silu}) {
    for (const std::uint64_t rows : {1, 100, 100000}) {
      for (const std::uint64_t k : {16, 72, 7168}) {
        for (const std::uint64_t n : {32, 288, 28672}) {
          if (k * operand_bytes(operand_type::f8_e4m3) % 16 == 0) {
            expect_legal_maps(rows_of(operand_type::f8_e4m3, b_layout::n_by_k, function, rows, n, k));
          }
          for (const auto layout : {b_layout::n_by_k, b_layout::k_by_n}) {
            expect_legal_maps(rows_of(operand_type::bf16, layout, function, rows, n, k));
            expect_legal_maps(rows_of(operand_type::f16, layout, function, rows, n, k));
          }
        }
      }
    }
  }
}

TEST(grouped_maps, of_rows_cover_all_groups_of_b) {
  for (const auto layout : {b_layout::n_by_k, b_layout::k_by_n}) {
    const row_problem problem = rows_of(operand_type::bf16, layout, gate_function::none, 100, 288, 72);
    const tensor_spec b = map_specs_of(problem, kernels::gemm_plans[0]).b.spec;
    const bool by_n = layout == b_layout::n_by_k;
    EXPECT_EQ(b.global_dim[0], by_n ? 72u : 288u);
    EXPECT_EQ(b.global_dim[1], by_n ? 288u : 72u);
    EXPECT_EQ(b.global_dim[2], 3u);
    EXPECT_EQ(b.global_stride_bytes[0], problem.b.pitch_bytes);
    EXPECT_EQ(b.global_stride_bytes[1], problem.b_group_pitch_bytes);
  }
}

TEST(grouped_maps, of_one_group_ask_for_no_distance) {
  row_problem one = rows_of(operand_type::bf16, b_layout::n_by_k, gate_function::none, 100, 288, 72);
  one.groups = 1;
  one.b_group_pitch_bytes = 3;
  expect_legal_maps(one);
}

/// In pairs, each block loads half of a stage. The other block's half arrives by multicast.
TEST(grouped_maps, of_pairs_load_half_of_a_tile) {
  const row_problem problem = rows_of(operand_type::bf16, b_layout::n_by_k, gate_function::none, 1000, 512, 512);
  for (const kernels::gemm_plan& plan : kernels::gemm_plans) {
    const std::uint32_t share = plan.is_paired ? 2 : 1;
    const map_specs specs = map_specs_of(problem, plan);
    EXPECT_EQ(specs.a.spec.box_dim[1], plan.tile_m / share) << plan.name;
    EXPECT_EQ(specs.b.spec.box_dim[1], plan.tile_n / share) << plan.name;
    pointer_problem pointers;
    pointers.type = operand_type::f16;
    pointers.groups = 3;
    const map_specs anywhere = map_specs_of(pointers, plan);
    EXPECT_EQ(anywhere.a.spec.box_dim[1], plan.tile_m / share) << plan.name;
    EXPECT_EQ(anywhere.b.spec.box_dim[1], plan.tile_n / share) << plan.name;
  }
}

/// f32 is added in memory, by the type of C's map. A store takes 128 bytes of a row.
TEST(grouped_maps, of_results_have_their_type) {
  const auto expect_type = [](operand_type type, result_type c_type, element_type stored, std::uint32_t columns) {
    row_problem problem = rows_of(type, b_layout::n_by_k, gate_function::none, 100, 64, 64);
    problem.c_type = c_type;
    for (const kernels::gemm_plan& plan : kernels::gemm_plans) {
      const tensor_spec spec = map_specs_of(problem, plan).c.spec;
      EXPECT_EQ(spec.type, stored);
      EXPECT_EQ(spec.box_dim[0], columns);
    }
    expect_legal_maps(problem);
  };
  expect_type(operand_type::f16, result_type::like_operands, element_type::f16, 64);
  expect_type(operand_type::bf16, result_type::like_operands, element_type::bf16, 64);
  expect_type(operand_type::f8_e4m3, result_type::like_operands, element_type::bf16, 64);
  for (const operand_type type : {operand_type::bf16, operand_type::f16, operand_type::f8_e4m3}) {
    expect_type(type, result_type::f32, element_type::f32, 32);
    expect_type(type, result_type::f8_e4m3, element_type::u8, 128);
  }
}

TEST(grouped_scratch, holds_all_that_is_cut_from_it) {
  for (const std::uint32_t groups : {1u, 7u, 1024u}) {
    const kernels::gemm_scratch cut = kernels::cut_scratch(nullptr, groups);
    const auto end = reinterpret_cast<std::uintptr_t>(cut.taken) + sizeof(std::uint32_t);
    EXPECT_LE(end, kernels::gemm_scratch_bytes(groups));
  }
}

TEST(grouped_plan, goes_by_the_rows_of_a_group_and_the_tiles_of_all) {
  const auto name_of = [](std::uint32_t groups, std::uint64_t rows, std::uint64_t n) {
    row_problem problem = rows_of(operand_type::bf16, b_layout::n_by_k, gate_function::none, rows, n, 64);
    problem.groups = groups;
    return std::string{kernels::gemm_plans[choose_plan(problem)].name};
  };
  EXPECT_EQ(name_of(4, 4 * 64, 512), "64x256");
  EXPECT_EQ(name_of(4, 4 * 64 + 1, 512), "128x128") << "one group at least has 65 rows";
  EXPECT_EQ(name_of(66, 66 * 56, 512), "64x256");
  EXPECT_EQ(name_of(66, 66 * 56 + 1, 512), "128x256 pairs") << "some of these groups have more than 64 rows";
  EXPECT_EQ(name_of(66, 66 * 64, 256), "64x256") << "66 tiles";
  EXPECT_EQ(name_of(1, 131 * 128, 256), "128x128");
  EXPECT_EQ(name_of(1, 131 * 128 + 1, 256), "128x256 pairs") << "132 tiles, the last of one row";
  EXPECT_EQ(name_of(66, 66 * 128, 264), "128x256 pairs") << "two tiles of columns a group";
}

TEST(grouped_plan, of_scaled_results_holds_what_shares_a_scale) {
  const auto name_of = [](gate_function function, std::uint64_t rows) {
    row_problem problem = rows_of(operand_type::f8_e4m3, b_layout::n_by_k, function, rows, 512, 64);
    problem.groups = 4;
    problem.c_type = result_type::f8_e4m3;
    const std::uint32_t plan = choose_plan(problem);
    EXPECT_TRUE(is_plan_of(problem, plan));
    return std::string{kernels::gemm_plans[plan].name};
  };
  EXPECT_EQ(name_of(gate_function::silu, 4), "64x256");
  EXPECT_EQ(name_of(gate_function::silu, 4 * 64), "64x256");
  EXPECT_EQ(name_of(gate_function::silu, 4 * 64 + 1), "128x256 pairs") << "a tile of 128x128 has 64 results of a row";
  EXPECT_EQ(name_of(gate_function::silu, 100000), "128x256 pairs");
  EXPECT_EQ(name_of(gate_function::none, 4 * 64), "64x256");
  EXPECT_EQ(name_of(gate_function::none, 4 * 64 + 1), "128x128");
}

TEST(grouped_maps, of_weights_are_legal) {
  for (const std::uint64_t side : {8, 264, 7168}) {
    weight_problem made;
    made.type = operand_type::bf16;
    made.groups = 3;
    made.rows = 100;
    made.m = side;
    made.n = 2 * side;
    made.a = {0x100000, made.m * 2};
    made.b = {0x200000, made.n * 2};
    made.c = {0x300000, made.n * 2};
    made.c_group_pitch_bytes = made.m * made.c.pitch_bytes;
    expect_legal_maps(made);
    made.type = operand_type::f8_e5m2;
    made.a_layout = a_layout::m_by_k;
    made.b_layout = b_layout::n_by_k;
    made.a.pitch_bytes = made.b.pitch_bytes = 112;
    expect_legal_maps(made);
  }
}

TEST(grouped_maps, of_columns_are_legal) {
  for (const auto a : {a_layout::m_by_k, a_layout::k_by_m}) {
    for (const auto b : {b_layout::n_by_k, b_layout::k_by_n}) {
      column_problem made;
      made.groups = 3;
      made.columns = 100;
      made.m = 33;
      made.k = 64;
      made.a_layout = a;
      made.b_layout = b;
      expect_legal_maps(made);
    }
  }
}

TEST(grouped_maps, of_a_list_of_addresses_are_one_for_each_group) {
  row_problem problem = rows_of(operand_type::bf16, b_layout::k_by_n, gate_function::silu, 100, 288, 72);
  const std::uint64_t addresses[3]{};
  problem.b_addresses = addresses;
  expect_legal_maps(problem);
  EXPECT_EQ(map_specs_of(problem, kernels::gemm_plans[0]).b.spec.rank, 2u);
}

TEST(grouped_maps, of_pointers_are_legal) {
  for (const auto layout : {b_layout::n_by_k, b_layout::k_by_n}) {
    pointer_problem made;
    made.type = operand_type::f16;
    made.groups = 3;
    made.b_layout = layout;
    expect_legal_maps(made);
  }
}

}  // namespace
}  // namespace tmap::gemm::testing
