// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/convert_gemm.hpp"

#include "lib/interop/bad_item.hpp"

namespace tmap::interop {
namespace {

template <class Enum>
constexpr bool same(int number, Enum value) {
  return number == static_cast<int>(value);
}
static_assert(same(TMAP_OPERAND_BF16, gemm::operand_type::bf16) && same(TMAP_OPERAND_F16, gemm::operand_type::f16));
static_assert(same(TMAP_OPERAND_F8_E4M3, gemm::operand_type::f8_e4m3));
static_assert(same(TMAP_B_N_BY_K, gemm::b_layout::n_by_k) && same(TMAP_B_K_BY_N, gemm::b_layout::k_by_n));
static_assert(same(TMAP_EPILOGUE_NONE, gemm::epilogue_kind::none) &&
              same(TMAP_EPILOGUE_BIAS, gemm::epilogue_kind::bias));
static_assert(same(TMAP_EPILOGUE_SWIGLU, gemm::epilogue_kind::swiglu));
static_assert(same(TMAP_EPILOGUE_ACCUMULATE, gemm::epilogue_kind::accumulate));
static_assert(sizeof(gemm::group_status) == sizeof(std::uint32_t));

/// What all problems have.
template <class Problem>
void check_common(arguments& given, const Problem* problem) {
  given.structure(problem, "problem");
  if (!given) return;
  given.enumerator(problem->operand, TMAP_OPERAND_F8_E4M3, "problem.operand");
  given.enumerator(problem->epilogue, TMAP_EPILOGUE_ACCUMULATE, "problem.epilogue");
}

void check_offsets(arguments& given, const tmap_group_offsets& offsets) {
  given.enumerator(offsets.format, TMAP_OFFSETS_SIZES, "problem.offsets.format");
}

row_offsets offsets_of(const tmap_group_offsets& from) {
  return {from.values, static_cast<offset_format>(from.format), from.bytes};
}

gemm::matrix matrix_of(const tmap_matrix& from) {
  return {from.address, from.pitch_bytes};
}

}  // namespace

void check_problem(arguments& given, const tmap_row_problem* problem) {
  check_common(given, problem);
  if (!given) return;
  given.enumerator(problem->layout, TMAP_B_K_BY_N, "problem.layout");
  given.enumerator(problem->fast_accumulation, 1, "problem.fast_accumulation");
  check_offsets(given, problem->offsets);
}

void check_problem(arguments& given, const tmap_weight_problem* problem) {
  check_common(given, problem);
  if (given) check_offsets(given, problem->offsets);
}

void check_problem(arguments& given, const tmap_pointer_problem* problem) {
  check_common(given, problem);
  if (given) given.enumerator(problem->layout, TMAP_B_K_BY_N, "problem.layout");
}

gemm::row_problem problem_of(const tmap_row_problem& from) {
  return {.type = static_cast<gemm::operand_type>(from.operand),
          .groups = from.groups,
          .rows = from.rows,
          .n = from.n,
          .k = from.k,
          .offsets = offsets_of(from.offsets),
          .a = matrix_of(from.a),
          .b = matrix_of(from.b),
          .b_group_pitch_bytes = from.b_group_pitch_bytes,
          .layout = static_cast<gemm::b_layout>(from.layout),
          .c = matrix_of(from.c),
          .with = {.kind = static_cast<gemm::epilogue_kind>(from.epilogue),
                   .bias = from.bias,
                   .row_scales = from.row_scales,
                   .column_scales = from.column_scales},
          .fast_accumulation = from.fast_accumulation != 0};
}

gemm::weight_problem problem_of(const tmap_weight_problem& from) {
  return {.type = static_cast<gemm::operand_type>(from.operand),
          .groups = from.groups,
          .rows = from.rows,
          .m = from.m,
          .n = from.n,
          .offsets = offsets_of(from.offsets),
          .a = matrix_of(from.a),
          .b = matrix_of(from.b),
          .c = matrix_of(from.c),
          .c_group_pitch_bytes = from.c_group_pitch_bytes,
          .kind = static_cast<gemm::epilogue_kind>(from.epilogue)};
}

gemm::pointer_problem problem_of(const tmap_pointer_problem& from) {
  return {.type = static_cast<gemm::operand_type>(from.operand),
          .groups = from.groups,
          .a = from.a,
          .b = from.b,
          .c = from.c,
          .a_pitch_bytes = from.a_pitch_bytes,
          .b_pitch_bytes = from.b_pitch_bytes,
          .c_pitch_bytes = from.c_pitch_bytes,
          .m = from.m,
          .n = from.n,
          .k = from.k,
          .layout = static_cast<gemm::b_layout>(from.layout),
          .kind = static_cast<gemm::epilogue_kind>(from.epilogue)};
}

gemm::run run_of(const tmap_gemm_options* options, const on_stream& where) {
  if (options == nullptr) return {where};
  gemm::run made{.where = where,
                 .statuses = reinterpret_cast<gemm::group_status*>(options->statuses),
                 .header = reinterpret_cast<batch_header*>(options->header),
                 .windows = {},
                 .check = check_of(*options),
                 .choices = {}};
  if (options->plan != 0) made.choices.plan = options->plan - 1;
  return made;
}

}  // namespace tmap::interop
