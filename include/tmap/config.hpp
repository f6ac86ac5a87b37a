// SPDX-License-Identifier: Apache-2.0
#pragma once

// Macros every header shares. TMAP_HOST_DEVICE marks functions that run on both sides when nvcc
// compiles them; TMAP_API marks what the shared library exports (everything else is hidden).

#if defined(__CUDACC__)
#define TMAP_HOST_DEVICE __host__ __device__
#else
#define TMAP_HOST_DEVICE
#endif

#define TMAP_API __attribute__((visibility("default")))

// Before a loop that runs once as a rule: on a GPU its copies would be fetched for nothing.
#if defined(__CUDA_ARCH__)
#define TMAP_KEEP_ROLLED _Pragma("unroll 1")
#else
#define TMAP_KEEP_ROLLED
#endif
