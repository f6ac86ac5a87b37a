// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/status.h>

/// @file
/// Handlers of custom calls of XLA, which `tmap.jax` registers. They speak the C interface of
/// XLA's foreign functions, of major version 0: the argument is an `XLA_FFI_CallFrame`, the result
/// an `XLA_FFI_Error` or null. XLA gives the stream. Handlers enqueue and return, and may be
/// captured. Nothing of XLA is needed to build or load tmap.
///
/// Arrays are dense and row-major, in device memory. An error names the argument.
///
/// Operands of products have elements of bf16 or f16, and results have the same type or f32.
/// `sizes`, s32 [groups], are the rows of groups that follow each other. With an argument `counts`
/// after it, s32 [groups], they are the rows at which groups begin. The last result is the
/// workspace, u8 with at least `tmap_gemm_workspace_bytes(groups)`.

#ifdef __cplusplus
extern "C" {
#endif

/// Multiplies groups of rows: lhs [rows, k], rhs [groups, k, n], sizes, (counts) -> [rows, n],
/// workspace. With the attribute `turned` (s32) of 1, rhs is [groups, n, k]. Rows that belong to no
/// group become zero.
TMAP_API void* tmap_xla_rows(void* frame);

/// Sums over rows: lhs [rows, m], rhs [rows, n], sizes, (counts) -> [groups, m, n], workspace.
/// Groups without rows become zero.
TMAP_API void* tmap_xla_weights(void* frame);

/// Pads rows without gaps (padded_rows.hpp): values [..., rows, elements...], ends [..., groups] ->
/// [..., groups, longest, elements...]. Ends are s32 or s64. The dims before `groups` are a batch,
/// the same in all arrays, and each of its members is a launch. Elements are of a type of XLA of 1,
/// 2, 4 or 8 bytes. The attribute `fill` (s64) has the bytes of one, lowest first.
TMAP_API void* tmap_xla_pad_rows(void* frame);

/// Does the inverse of `tmap_xla_pad_rows`: dense, ends -> values.
TMAP_API void* tmap_xla_unpad_rows(void* frame);

#ifdef __cplusplus
}
#endif
