// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/batch.h>

/// @file
/// Grouped products, which grouped_gemm.hpp describes. Pointers are device memory of the caller.

#ifdef __cplusplus
extern "C" {
#endif

enum { TMAP_OPERAND_BF16 = 0, TMAP_OPERAND_F16 = 1, TMAP_OPERAND_F8_E4M3 = 2, TMAP_OPERAND_F8_E5M2 = 3 };
enum { TMAP_A_M_BY_K = 0, TMAP_A_K_BY_M = 1 };
enum { TMAP_B_N_BY_K = 0, TMAP_B_K_BY_N = 1 };
enum { TMAP_RESULT_LIKE_OPERANDS = 0, TMAP_RESULT_F32 = 1, TMAP_RESULT_F8_E4M3 = 2 };
enum { TMAP_GATE_NONE = 0, TMAP_GATE_SILU = 1, TMAP_GATE_GELU = 2, TMAP_GATE_GELU_TANH = 3 };
enum { TMAP_GATE_HALVES = 0, TMAP_GATE_INTERLEAVED = 1 };

/// Its layout never changes.
typedef struct tmap_matrix {
  uint64_t address;
  uint64_t pitch_bytes;
} tmap_matrix;

/// `tmap::gemm::gate`. Its layout never changes.
typedef struct tmap_gate {
  uint32_t function;  ///< TMAP_GATE_NONE to TMAP_GATE_GELU_TANH
  uint32_t columns;   ///< TMAP_GATE_HALVES or TMAP_GATE_INTERLEAVED
  float alpha;        ///< 0: 1
  float limit;        ///< 0: none
  float value_shift;
  uint32_t backward;  ///< 0 or 1
  tmap_matrix kept;
} tmap_gate;

/// `tmap::gemm::result_scales`. Its layout never changes.
typedef struct tmap_result_scales {
  float* values;
  uint64_t row_stride;
  uint64_t column_stride;
  uint32_t are_powers_of_two;  ///< 0 or 1
  uint32_t are_given;          ///< 0 or 1
} tmap_result_scales;

/// `tmap::gemm::block_scales`. Its layout never changes.
typedef struct tmap_block_scales {
  const float* values;
  uint64_t line_stride;
  uint64_t k_stride;
  uint64_t group_stride;
  uint32_t lines;  ///< 0: 1
  uint32_t reserved;
} tmap_block_scales;

/// `tmap::gemm::row_problem`.
typedef struct tmap_row_problem {
  uint32_t struct_size;
  uint32_t operand;  ///< TMAP_OPERAND_*
  uint32_t groups;
  uint32_t a_layout;           ///< TMAP_A_*
  uint32_t b_layout;           ///< TMAP_B_*
  uint32_t c_type;             ///< TMAP_RESULT_*
  uint32_t accumulate;         ///< 0 or 1
  uint32_t fast_accumulation;  ///< 0 or 1
  uint64_t rows;
  uint64_t n;
  uint64_t k;
  tmap_row_offsets offsets;
  tmap_matrix a;
  tmap_matrix b;
  uint64_t b_group_pitch_bytes;
  const uint64_t* b_addresses;  ///< null, or one for each group
  tmap_matrix c;
  const uint64_t* c_addresses;  ///< null, or one for each group
  tmap_result_scales c_scales;
  const float* row_scales;
  uint64_t row_scale_stride;  ///< 0: 1
  const float* column_scales;
  const void* bias;
  tmap_gate gate;
  const int32_t* a_rows;  ///< null, or the row of A of each row
  uint64_t a_row_count;   ///< 0 without `a_rows`
  const int32_t* c_rows;  ///< null, or the row of C of each row
  uint64_t c_row_count;   ///< 0 without `c_rows`
  tmap_block_scales a_scales;
  tmap_block_scales b_scales;
  uint32_t zero_rest;  ///< 0 or 1
  uint32_t reserved;   ///< 0
  /// Null, or [groups + 1] words that a running dispatch raises
  /// (`tmap::gemm::row_problem::pending`).
  const uint32_t* pending;
} tmap_row_problem;

/// `tmap::gemm::column_problem`.
typedef struct tmap_column_problem {
  uint32_t struct_size;
  uint32_t operand;  ///< TMAP_OPERAND_*
  uint32_t groups;
  uint32_t a_layout;  ///< TMAP_A_*
  uint32_t b_layout;  ///< TMAP_B_*
  uint32_t reserved;  ///< 0
  uint64_t columns;
  uint64_t m;
  uint64_t k;
  tmap_row_offsets offsets;
  tmap_matrix a;
  uint64_t a_group_pitch_bytes;
  tmap_matrix b;
  tmap_matrix c;
} tmap_column_problem;

/// `tmap::gemm::weight_problem`. Layouts are TMAP_A_K_BY_M and TMAP_B_K_BY_N where rows follow each
/// other.
typedef struct tmap_weight_problem {
  uint32_t struct_size;
  uint32_t operand;  ///< TMAP_OPERAND_*
  uint32_t groups;
  uint32_t a_layout;    ///< TMAP_A_*
  uint32_t b_layout;    ///< TMAP_B_*
  uint32_t c_type;      ///< TMAP_RESULT_LIKE_OPERANDS or TMAP_RESULT_F32
  uint32_t accumulate;  ///< 0 or 1
  uint32_t zero_rest;   ///< 0 or 1
  uint64_t rows;
  uint64_t m;
  uint64_t n;
  tmap_row_offsets offsets;
  tmap_matrix a;
  tmap_matrix b;
  tmap_matrix c;
  uint64_t c_group_pitch_bytes;
  const uint64_t* c_addresses;  ///< null, or one for each group
  tmap_block_scales a_scales;   ///< of operands of 8 bits, which have both
  tmap_block_scales b_scales;
} tmap_weight_problem;

/// `tmap::gemm::pointer_problem`: arrays of `groups` values in device memory.
typedef struct tmap_pointer_problem {
  uint32_t struct_size;
  uint32_t operand;  ///< TMAP_OPERAND_*
  uint32_t groups;
  uint32_t a_layout;    ///< TMAP_A_*
  uint32_t b_layout;    ///< TMAP_B_*
  uint32_t c_type;      ///< TMAP_RESULT_LIKE_OPERANDS or TMAP_RESULT_F32
  uint32_t accumulate;  ///< 0 or 1
  uint32_t reserved;    ///< 0
  const uint64_t* a;
  const uint64_t* b;
  const uint64_t* c;
  const int64_t* a_pitch_bytes;
  const int64_t* b_pitch_bytes;
  const int64_t* c_pitch_bytes;
  const int64_t* m;
  const int64_t* n;
  const int64_t* k;
} tmap_pointer_problem;

/// Enough for every call on this many groups.
TMAP_API tmap_status tmap_gemm_workspace_bytes(uint32_t groups, uint64_t* bytes);

TMAP_API uint32_t tmap_gemm_plan_count(void);
TMAP_API const char* tmap_gemm_plan_name(uint32_t plan);  ///< null from the count on

/// Each works in the call's workspace.
TMAP_API tmap_status tmap_gemm_rows(const tmap_row_problem* problem, const tmap_call* call);
TMAP_API tmap_status tmap_gemm_columns(const tmap_column_problem* problem, const tmap_call* call);
TMAP_API tmap_status tmap_gemm_weights(const tmap_weight_problem* problem, const tmap_call* call);
TMAP_API tmap_status tmap_gemm_pointers(const tmap_pointer_problem* problem, const tmap_call* call);

#ifdef __cplusplus
}
#endif
