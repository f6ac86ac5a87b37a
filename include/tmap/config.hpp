// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Macros that all headers use. TMAP_HOST_DEVICE marks functions that run on host and device when
/// nvcc compiles them. TMAP_API marks what the shared library exports; everything else is hidden.

#if defined(__CUDACC__)
#define TMAP_HOST_DEVICE __host__ __device__
#else
#define TMAP_HOST_DEVICE
#endif

#define TMAP_API __attribute__((visibility("default")))

// Goes before a loop that usually runs once. Unrolled, a GPU would fetch copies of it that never
// run.
#if defined(__CUDA_ARCH__)
#define TMAP_KEEP_ROLLED _Pragma("unroll 1")
#else
#define TMAP_KEEP_ROLLED
#endif
