// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/gemm.h>
#include <tmap/c/xla.h>

#include <cstdint>

#include "lib/interop/xla_call.hpp"

namespace tmap::interop {
namespace {

using xla::element;

/// The arrays that both products have.
struct product {
  product(arguments& all, const xla::call_frame& frame, std::uint64_t rhs_rank)
      : lhs{all, frame.arguments, 0, "lhs"},
        rhs{all, frame.arguments, 1, "rhs"},
        sizes{all, frame.arguments, 2, "sizes"},
        counts{all, frame.arguments, frame.arguments.count > 3 ? 3 : 2, "counts"},
        out{all, frame.results, 0, "out"},
        workspace{all, frame.results, 1, "workspace"},
        has_counts{frame.arguments.count > 3} {
    lhs.expect_rank(2);
    rhs.expect_rank(rhs_rank);
    sizes.expect_rank(1);
    counts.expect_rank(1);
    out.expect_rank(5 - rhs_rank);
    workspace.expect_rank(1);
    sizes.expect(element::s32);
    counts.expect(element::s32);
    workspace.expect(element::u8);
    if (!all) return;
    counts.expect(0, sizes.dim(0));
    if (!lhs.is_of(element::bf16) && !lhs.is_of(element::f16)) lhs.refuse_type();
    rhs.expect(lhs.type());
    if (!out.is_of(element::f32)) out.expect(lhs.type());
  }

  template <class Problem>
  Problem problem() const {
    Problem made{};
    made.struct_size = sizeof made;
    made.operand = lhs.is_of(element::f16) ? TMAP_OPERAND_F16 : TMAP_OPERAND_BF16;
    made.groups = static_cast<std::uint32_t>(sizes.dim(0));
    made.b_layout = TMAP_B_K_BY_N;
    made.c_type = out.is_of(element::f32) ? TMAP_RESULT_F32 : TMAP_RESULT_LIKE_OPERANDS;
    made.rows = lhs.dim(0);
    made.offsets = {sizes.data(), has_counts ? TMAP_OFFSETS_BEGINS_AND_COUNTS : TMAP_OFFSETS_SIZES, 4,
                    has_counts ? counts.data() : nullptr, 0};
    made.a = {lhs.address(), 2 * lhs.dim(1)};
    made.c.address = out.address();
    return made;
  }
  std::uint64_t result_bytes() const { return out.is_of(element::f32) ? 4 : 2; }

  xla::operand lhs, rhs, sizes, counts, out, workspace;
  bool has_counts;
};

tmap_call call_for(const product& of, void* stream) {
  tmap_call made = xla::call_on(stream);
  made.workspace = of.workspace.data();
  made.workspace_bytes = of.workspace.dim(0);
  return made;
}

answer multiply_rows(const xla::call_frame& frame, void* stream, tmap_status& done) {
  arguments given;
  const product of{given, frame, 3};
  const auto is_turned =
      static_cast<std::uint32_t>(xla::integer_of(given, frame.attributes, "turned", "turned", element::s32));
  given.enumerator(is_turned, 1u, "turned");
  if (!given) return given.complaint();
  const std::uint64_t k = of.lhs.dim(1), n = of.rhs.dim(is_turned ? 1 : 2);
  of.rhs.expect(0, of.sizes.dim(0));
  of.rhs.expect(is_turned ? 2 : 1, k);
  of.out.expect(0, of.lhs.dim(0));
  of.out.expect(1, n);
  if (!given) return given.complaint();
  auto problem = of.problem<tmap_row_problem>();
  problem.n = n;
  problem.k = k;
  problem.b = {of.rhs.address(), 2 * of.rhs.dim(2)};
  problem.b_group_pitch_bytes = problem.b.pitch_bytes * of.rhs.dim(1);
  if (is_turned) problem.b_layout = TMAP_B_N_BY_K;
  problem.c.pitch_bytes = of.result_bytes() * n;
  problem.zero_rest = 1;  // by JAX's contract
  const tmap_call call = call_for(of, stream);
  done = tmap_gemm_rows(&problem, &call);
  return {};
}

answer multiply_weights(const xla::call_frame& frame, void* stream, tmap_status& done) {
  arguments given;
  const product of{given, frame, 2};
  if (!given) return given.complaint();
  const std::uint64_t m = of.lhs.dim(1), n = of.rhs.dim(1);
  of.rhs.expect(0, of.lhs.dim(0));
  of.out.expect(0, of.sizes.dim(0));
  of.out.expect(1, m);
  of.out.expect(2, n);
  if (!given) return given.complaint();
  auto problem = of.problem<tmap_weight_problem>();
  problem.a_layout = TMAP_A_K_BY_M;
  problem.zero_rest = 1;  // of groups that do not fit
  problem.m = m;
  problem.n = n;
  problem.b = {of.rhs.address(), 2 * n};
  problem.c.pitch_bytes = of.result_bytes() * n;
  problem.c_group_pitch_bytes = m * problem.c.pitch_bytes;
  const tmap_call call = call_for(of, stream);
  done = tmap_gemm_weights(&problem, &call);
  return {};
}

}  // namespace
}  // namespace tmap::interop

void* tmap_xla_rows(void* frame) {
  return tmap::interop::xla::handle(__func__, frame, tmap::interop::multiply_rows);
}

void* tmap_xla_weights(void* frame) {
  return tmap::interop::xla::handle(__func__, frame, tmap::interop::multiply_weights);
}
