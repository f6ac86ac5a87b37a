// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/call.h>
#include <tmap/c/gemm.h>

/// @file
/// The two ends of a layer of experts, which moe.hpp describes, and a whole layer, which
/// moe_layer.hpp describes. Pointers are device memory of the caller.

#ifdef __cplusplus
extern "C" {
#endif

enum { TMAP_FLOAT_F32 = 0, TMAP_FLOAT_BF16 = 1, TMAP_FLOAT_F16 = 2 };
enum { TMAP_CHOICES_FROM_LOGITS = 0, TMAP_CHOICES_GIVEN = 1 };
enum { TMAP_SCORING_SOFTMAX_THEN_TOP_K = 0, TMAP_SCORING_TOP_K_THEN_SOFTMAX = 1, TMAP_SCORING_SIGMOID = 2 };
enum { TMAP_GROUP_SCORE_LARGEST = 0, TMAP_GROUP_SCORE_SUM_OF_TWO_LARGEST = 1 };

/// `tmap::moe::expert_groups`. Its layout never changes. Zeros stand for one group.
typedef struct tmap_expert_groups {
  uint32_t count;
  uint32_t chosen;
  uint32_t score;  ///< TMAP_GROUP_SCORE_*
  uint32_t padding;
} tmap_expert_groups;

/// `tmap::moe::logits` or `tmap::moe::given_choices`. Members of the other kind must be 0.
typedef struct tmap_choices {
  uint32_t kind;  ///< TMAP_CHOICES_*
  // From logits:
  uint32_t type;       ///< TMAP_FLOAT_*
  tmap_matrix values;  ///< [tokens, experts]
  uint32_t scoring;    ///< TMAP_SCORING_*
  float scale;         ///< 0 stands for 1
  const float* bias;
  tmap_expert_groups groups;
  uint32_t renormalise;  ///< 0 or 1
  // Given:
  uint32_t bytes;  ///< of an id: 4 or 8
  const void* ids;
  const float* weights;
} tmap_choices;

/// `tmap::moe::route_problem`.
typedef struct tmap_route_problem {
  uint32_t struct_size;
  uint32_t experts;
  uint64_t tokens;
  uint32_t k;
  uint32_t alignment;  ///< 0 stands for 1
  uint64_t rows;
  tmap_choices choices;
} tmap_route_problem;

/// `tmap::moe::route_results`.
typedef struct tmap_route_results {
  uint32_t struct_size;
  uint32_t reserved;
  int32_t* ids;
  float* weights;
  int32_t* counts;
  int32_t* begins;  ///< experts + 1 elements
  int32_t* ends;
  int32_t* row_of_choice;
  int32_t* token_of_row;
  float* weight_of_row;
} tmap_route_results;

/// `tmap::moe::combine_problem`.
typedef struct tmap_combine_problem {
  uint32_t struct_size;
  uint32_t k;
  uint64_t tokens;
  uint64_t columns;
  uint64_t rows;
  uint32_t row_type;  ///< TMAP_FLOAT_*
  uint32_t reserved;
  tmap_matrix values;
  const int32_t* row_of_choice;
  const float* weights;
  tmap_matrix base;
  tmap_matrix out;
} tmap_combine_problem;

/// `tmap::moe::expert_weights`. Its layout never changes.
typedef struct tmap_expert_weights {
  tmap_matrix values;
  uint64_t group_pitch_bytes;
  const uint64_t* addresses;  ///< null, or one for each expert
  const void* bias;
  tmap_block_scales scales;
} tmap_expert_weights;

/// `tmap::moe::layer_problem`. Its `routing` has a `struct_size` of its own.
typedef struct tmap_layer_problem {
  uint32_t struct_size;
  uint32_t operand;  ///< TMAP_OPERAND_*
  tmap_route_problem routing;
  uint64_t width;
  uint64_t inner;
  tmap_matrix x;
  tmap_expert_weights gate_up;
  tmap_gate gate;
  tmap_expert_weights down;
  tmap_matrix base;
  tmap_matrix out;
  uint32_t powers_of_two;  ///< 0 or 1
  uint32_t reserved;
} tmap_layer_problem;

/// `tmap::moe::layer_results`. Its `routed` has a `struct_size` of its own.
typedef struct tmap_layer_results {
  uint32_t struct_size;
  uint32_t reserved;
  tmap_route_results routed;
  tmap_matrix rows;
  tmap_matrix activated;
  float* row_scales;
  float* activated_scales;
  tmap_matrix outputs;
  uint32_t* gate_up_statuses;
  uint32_t* down_statuses;
} tmap_layer_results;

/// `tmap::moe::combine_gradients`.
typedef struct tmap_combine_gradients {
  uint32_t struct_size;
  uint32_t k;
  uint64_t tokens;
  uint64_t columns;
  uint64_t rows;
  uint32_t row_type;  ///< TMAP_FLOAT_*
  uint32_t reserved;
  tmap_matrix values;
  const int32_t* row_of_choice;
  const float* weights;
  tmap_matrix d_out;
  tmap_matrix d_values;
  float* d_weights;
} tmap_combine_gradients;

/// `tmap::moe::most_rows`; 0 if `alignment` is 0.
TMAP_API uint64_t tmap_moe_most_rows(uint64_t tokens, uint32_t experts, uint32_t k, uint32_t alignment);

/// Enough for the problem, with any results.
TMAP_API tmap_status tmap_moe_workspace_bytes(const tmap_route_problem* problem, uint64_t* bytes);

/// Works in the call's workspace. Null results stand for zeros.
TMAP_API tmap_status tmap_moe_route(const tmap_route_problem* problem, const tmap_route_results* results,
                                    const tmap_call* call);
TMAP_API tmap_status tmap_moe_combine(const tmap_combine_problem* problem, const tmap_call* call);
TMAP_API tmap_status tmap_moe_combine_backward(const tmap_combine_gradients* problem, const tmap_call* call);

/// Enough for the problem, with any results.
TMAP_API tmap_status tmap_moe_layer_workspace_bytes(const tmap_layer_problem* problem, uint64_t* bytes);

/// Works in the call's workspace. Null results stand for zeros.
TMAP_API tmap_status tmap_moe_layer(const tmap_layer_problem* problem, const tmap_layer_results* results,
                                    const tmap_call* call);

#ifdef __cplusplus
}
#endif
