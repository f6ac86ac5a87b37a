// SPDX-License-Identifier: Apache-2.0
// The tensor maps that products are made with: every one of them is legal, for every plan and form.
#include <tmap/grouped_gemm.hpp>
#include <tmap/map_template.hpp>

#include <gtest/gtest.h>

#include <cstdint>

#include "kernels/gemm_launch.hpp"

namespace tmap::gemm::testing {
namespace {

void expect_legal(const kernels::gemm_map_spec& spec, const char* operand, const kernels::gemm_plan& plan) {
  // As `make_template` checks, but without the driver.
  const result<map_template> made = make_zeroed_template(spec.spec, spec.fields);
  ASSERT_TRUE(made.has_value()) << operand << ", " << plan.name << ": " << to_string(made.error());
  EXPECT_EQ(made->fields, spec.fields);
}

template <class Problem>
void expect_legal_maps(const Problem& problem) {
  EXPECT_LT(kernels::choose_gemm_plan(problem), kernels::gemm_plan_count);
  for (const kernels::gemm_plan& plan : kernels::gemm_plans) {
    const kernels::gemm_map_specs specs = kernels::gemm_specs(problem, plan);
    expect_legal(specs.a, "a", plan);
    expect_legal(specs.b, "b", plan);
    expect_legal(specs.c, "c", plan);
  }
}

row_problem rows_of(operand_type type, b_layout layout, epilogue_kind kind, std::uint64_t rows, std::uint64_t n,
                    std::uint64_t k) {
  const std::uint64_t bytes = operand_bytes(type);
  const std::uint64_t c_columns = kind == epilogue_kind::swiglu ? n / 2 : n;
  row_problem made;
  made.type = type;
  made.groups = 3;
  made.rows = rows;
  made.n = n;
  made.k = k;
  made.a = {0x100000, k * bytes + 16};
  made.b = {0x200000, (layout == b_layout::n_by_k ? k : n) * bytes + 16};
  made.b_group_pitch_bytes = (layout == b_layout::n_by_k ? n : k) * made.b.pitch_bytes;
  made.layout = layout;
  made.c = {0x300000, c_columns * 2 + 16};
  made.with.kind = kind;
  return made;
}

TEST(GroupedMaps, OfRowsAreLegal) {
  for (const auto kind : {epilogue_kind::none, epilogue_kind::bias, epilogue_kind::swiglu, epilogue_kind::accumulate}) {
    for (const std::uint64_t rows : {1, 100, 100000}) {
      for (const std::uint64_t k : {16, 72, 7168}) {
        for (const std::uint64_t n : {32, 288, 28672}) {
          if (k * operand_bytes(operand_type::f8_e4m3) % 16 == 0) {
            expect_legal_maps(rows_of(operand_type::f8_e4m3, b_layout::n_by_k, kind, rows, n, k));
          }
          for (const auto layout : {b_layout::n_by_k, b_layout::k_by_n}) {
            expect_legal_maps(rows_of(operand_type::bf16, layout, kind, rows, n, k));
            expect_legal_maps(rows_of(operand_type::f16, layout, kind, rows, n, k));
          }
        }
      }
    }
  }
}

TEST(GroupedMaps, OfWeightsAreLegal) {
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
  }
}

TEST(GroupedMaps, OfPointersAreLegal) {
  for (const auto layout : {b_layout::n_by_k, b_layout::k_by_n}) {
    pointer_problem made;
    made.type = operand_type::f16;
    made.groups = 3;
    made.layout = layout;
    expect_legal_maps(made);
  }
}

}  // namespace
}  // namespace tmap::gemm::testing
