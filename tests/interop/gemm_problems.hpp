// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/gemm.h>

#include <cstdint>

#include "interop/sized.hpp"
#include "interop/unread.hpp"

// Legal products in C. No array of a problem has the address of another one. None is read.

namespace tmap::testing {

inline tmap_row_problem c_rows() {
  tmap_row_problem made = sized<tmap_row_problem>();
  made.operand = TMAP_OPERAND_F16;
  made.groups = 10;
  made.b_layout = TMAP_B_K_BY_N;
  made.rows = 100;
  made.n = 64;
  made.k = 32;
  made.offsets = {unread<void>(0xb0000), TMAP_OFFSETS_BEGINS_AND_COUNTS, 8, unread<void>(0x90000), 7};
  made.a_layout = TMAP_A_K_BY_M;
  made.b_addresses = unread<std::uint64_t>(0x70000);
  made.c_addresses = unread<std::uint64_t>(0x80000);
  made.a = {0x10000, 208};
  made.b = {0x20000, 128};
  made.b_group_pitch_bytes = 32 * 128;
  made.c = {0x30000, 144};
  made.c_type = TMAP_RESULT_LIKE_OPERANDS;
  made.accumulate = 1;
  made.c_scales = {unread<float>(0xe0000), 5, 7, 1, 1};
  made.row_scales = unread<float>(0x50000);
  made.row_scale_stride = 3;
  made.column_scales = unread<float>(0x60000);
  made.bias = unread<void>(0x40000);
  made.gate = {TMAP_GATE_GELU, TMAP_GATE_INTERLEAVED, 1.5f, 7, 2, 0, {0xf0000, 160}};
  return made;
}

inline tmap_weight_problem c_weights() {
  tmap_weight_problem made = sized<tmap_weight_problem>();
  made.groups = 10;
  made.c_type = TMAP_RESULT_F32;
  made.accumulate = 1;
  made.rows = 100;
  made.m = 64;
  made.n = 32;
  made.offsets = {unread<void>(0xb0000), TMAP_OFFSETS_SIZES, 4, nullptr, 0};
  made.b_layout = TMAP_B_K_BY_N;
  made.c_addresses = unread<std::uint64_t>(0x80000);
  made.a = {0x10000, 208};
  made.b = {0x20000, 64};
  made.c = {0x30000, 160};
  made.c_group_pitch_bytes = 64 * 160;
  return made;
}

inline tmap_column_problem c_columns() {
  tmap_column_problem made = sized<tmap_column_problem>();
  made.operand = TMAP_OPERAND_F16;
  made.groups = 10;
  made.a_layout = TMAP_A_K_BY_M;
  made.b_layout = TMAP_B_K_BY_N;
  made.columns = 100;
  made.m = 33;
  made.k = 32;
  made.offsets = {unread<void>(0xb0000), TMAP_OFFSETS_SLOTS, 4, nullptr, 10};
  made.a = {0x10000, 80};
  made.a_group_pitch_bytes = 32 * 80;
  made.b = {0x20000, 208};
  made.c = {0x30000, 224};
  return made;
}

inline tmap_pointer_problem c_pointers() {
  tmap_pointer_problem made = sized<tmap_pointer_problem>();
  made.groups = 10;
  made.a = unread<std::uint64_t>(0x10000);
  made.b = unread<std::uint64_t>(0x20000);
  made.c = unread<std::uint64_t>(0x30000);
  made.a_pitch_bytes = unread<std::int64_t>(0x40000);
  made.b_pitch_bytes = unread<std::int64_t>(0x50000);
  made.c_pitch_bytes = unread<std::int64_t>(0x60000);
  made.m = unread<std::int64_t>(0x70000);
  made.n = unread<std::int64_t>(0x80000);
  made.k = unread<std::int64_t>(0x90000);
  return made;
}

}  // namespace tmap::testing
