// SPDX-License-Identifier: Apache-2.0
// Tests the templates of maps that a thread keeps from one product to the next. The CUDA runtime of
// this program counts the calls of the driver.
#include <tmap/grouped_gemm.hpp>
#include <tmap/make_template.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>

#include "interop/wrapped_cuda.hpp"
#include "lib/gemm/plan.hpp"
#include "lib/gemm/prepare.hpp"

namespace tmap::testing {
namespace {

gemm::row_problem problem_of(gemm::operand_type type, gemm::b_layout layout, gemm::result_type c_type) {
  gemm::row_problem problem;
  problem.type = type;
  problem.b_layout = layout;
  problem.c_type = c_type;
  problem.groups = 4;
  problem.rows = 100;
  problem.n = problem.k = 64;
  problem.a = problem.b = problem.c = {0x10000, 128};
  problem.b_group_pitch_bytes = 64 * 128;
  return problem;
}

bool is_made_from(const map_template& found, const gemm::map_spec& from) {
  const result<map_template> made = make_template(from.spec, from.fields);
  return made && found.map == made->map && found.fields == made->fields &&
         std::memcmp(&found.spec, &made->spec, sizeof found.spec) == 0;
}

void expect_own_templates(const gemm::row_problem& problem, std::uint32_t plan) {
  const gemm::map_specs specs = gemm::map_specs_of(problem, kernels::gemm_plans[plan]);
  const result<gemm::prepared_product> ready = gemm::prepare(problem, plan);
  ASSERT_TRUE(ready.has_value());
  EXPECT_TRUE(is_made_from(ready->maps.a, specs.a));
  EXPECT_TRUE(is_made_from(ready->maps.b, specs.b));
  EXPECT_TRUE(is_made_from(ready->maps.c, specs.c));
  EXPECT_TRUE(is_made_from(ready->maps.second, specs.second));
}

TEST(kept_templates, each_product_gets_its_own_whatever_came_before) {
  use_gpu(wrapped_gpu::h200);
  for (int round = 0; round < 2; ++round) {
    for (const auto type : {gemm::operand_type::bf16, gemm::operand_type::f16, gemm::operand_type::f8_e4m3}) {
      for (const auto layout : {gemm::b_layout::n_by_k, gemm::b_layout::k_by_n}) {
        for (const auto c_type : {gemm::result_type::like_operands, gemm::result_type::f32}) {
          for (std::uint32_t plan = 0; plan < gemm::plan_count(); ++plan) {
            expect_own_templates(problem_of(type, layout, c_type), plan);
          }
        }
      }
    }
  }
}

TEST(kept_templates, save_calls_of_the_driver) {
  use_gpu(wrapped_gpu::h200);
  std::thread{[] {
    const auto calls_of_a_product = [] {
      const auto problem = problem_of(gemm::operand_type::bf16, gemm::b_layout::n_by_k, gemm::result_type::f32);
      const std::uint64_t before = cuda_calls_made();
      EXPECT_TRUE(gemm::prepare(problem, 0u).has_value());
      return cuda_calls_made() - before;
    };
    const std::uint64_t first = calls_of_a_product();
    EXPECT_GE(first, calls_of_a_product() + 3);  // of A, C and the second results
  }}.join();
}

}  // namespace
}  // namespace tmap::testing
