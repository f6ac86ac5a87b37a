// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/status.h>

/// @file
/// Handlers of custom calls of XLA, which `tmap.jax` registers. They speak the C interface of
/// XLA's foreign functions, of major version 0: the argument is an `XLA_FFI_CallFrame`, the result
/// an `XLA_FFI_Error` or null. XLA gives the stream. Handlers enqueue and return, and may be
/// captured. Nothing of XLA is needed to build or load tmap.
///
/// Arrays are dense and row-major, in device memory. Operands have elements of bf16 or f16, and
/// results have the same type or f32. `sizes`, s32 [groups], are the rows of groups that follow
/// each other. With an argument `counts` after it, s32 [groups], they are the rows at which groups
/// begin. The last result is the workspace, u8 with at least `tmap_gemm_workspace_bytes(groups)`.
/// An error names the argument.

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

#ifdef __cplusplus
}
#endif
