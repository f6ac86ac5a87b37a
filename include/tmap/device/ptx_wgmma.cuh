// SPDX-License-Identifier: Apache-2.0
#pragma once

// The instructions by which a warpgroup multiplies (PTX ISA 9.7.15). Both operands are in shared
// memory, the sums in registers. `a` and `b` are matrix descriptors. Where `keeps` is 0, the sums
// start from 0. All 128 threads call them, converged.

#include <tmap/detail/standard.hpp>

namespace tmap::device::ptx {

// wgmma.fence.sync.aligned;                                       PTX ISA 9.7.15.7.1, sm_90a
__device__ inline void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
}

// wgmma.commit_group.sync.aligned;                                PTX ISA 9.7.15.7.2, sm_90a
__device__ inline void wgmma_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
}

// wgmma.wait_group.sync.aligned n;                                PTX ISA 9.7.15.7.3, sm_90a
template <int Pending>
__device__ void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(Pending) : "memory");
}

// Emits no instruction. The compiler may neither read nor write the sum across it.
__device__ inline void keep_sum(float& sum) {
  asm volatile("" : "+f"(sum) : : "memory");
}

// Emits no instruction. The compiler keeps the word, or pointer, and does not compute it again.
__device__ inline void keep_word(std::uint32_t& word) {
  asm volatile("" : "+r"(word));
}
template <class T>
__device__ void keep_word(T*& pointer) {
  asm volatile("" : "+l"(pointer));
}

// setmaxnreg.{inc,dec}.sync.aligned.u32 n;                        PTX ISA 9.7.19.5, sm_90a
template <int Registers>
__device__ void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(Registers));
}
template <int Registers>
__device__ void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(Registers));
}

// stmatrix.sync.aligned.m8n8.x4.shared.b16 [a], {v0, v1, v2, v3};  PTX ISA 9.7.15.5.16, sm_90
__device__ inline void stmatrix_x4(void* shared, const std::uint32_t (&v)[4]) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
               :
               : "r"(to), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3])
               : "memory");
}

// The sums of a wgmma as its text names them, and as operands of the asm statement.
#define TMAP_WGMMA_NAMES_64                                                          \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TMAP_WGMMA_NAMES_128                                                                     \
  TMAP_WGMMA_NAMES_64                                                                            \
  ", "                                                                                           \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "             \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define TMAP_WGMMA_SUMS_8(d, i)                                                                               \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])
#define TMAP_WGMMA_SUMS_64(d, i)                                                                                    \
  TMAP_WGMMA_SUMS_8(d, i), TMAP_WGMMA_SUMS_8(d, i + 8), TMAP_WGMMA_SUMS_8(d, i + 16), TMAP_WGMMA_SUMS_8(d, i + 24), \
      TMAP_WGMMA_SUMS_8(d, i + 32), TMAP_WGMMA_SUMS_8(d, i + 40), TMAP_WGMMA_SUMS_8(d, i + 48),                     \
      TMAP_WGMMA_SUMS_8(d, i + 56)

// wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16; PTX ISA 9.7.15.5, sm_90a
template <bool TransposesA, bool TransposesB>
__device__ void wgmma_bf16(float (&d)[64], std::uint64_t a, std::uint64_t b, std::uint32_t keeps) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{" TMAP_WGMMA_NAMES_64 "}, %64, %65, p, 1, 1, %67, %68; }"
      : TMAP_WGMMA_SUMS_64(d, 0)
      : "l"(a), "l"(b), "r"(keeps), "n"(TransposesA ? 1 : 0), "n"(TransposesB ? 1 : 0)
      : "memory");
}

// wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16; PTX ISA 9.7.15.5, sm_90a
template <bool TransposesA, bool TransposesB>
__device__ void wgmma_f16(float (&d)[64], std::uint64_t a, std::uint64_t b, std::uint32_t keeps) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" TMAP_WGMMA_NAMES_64
      "}, %64, %65, p, 1, 1, %67, %68; }"
      : TMAP_WGMMA_SUMS_64(d, 0)
      : "l"(a), "l"(b), "r"(keeps), "n"(TransposesA ? 1 : 0), "n"(TransposesB ? 1 : 0)
      : "memory");
}

// wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3; PTX ISA 9.7.15.5, sm_90a
__device__ inline void wgmma_e4m3(float (&d)[64], std::uint64_t a, std::uint64_t b, std::uint32_t keeps) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 "
      "{" TMAP_WGMMA_NAMES_64 "}, %64, %65, p, 1, 1; }"
      : TMAP_WGMMA_SUMS_64(d, 0)
      : "l"(a), "l"(b), "r"(keeps)
      : "memory");
}

// wgmma.mma_async.sync.aligned.m64n128k32.f32.e5m2.e4m3; PTX ISA 9.7.15.5, sm_90a
__device__ inline void wgmma_e5m2_e4m3(float (&d)[64], std::uint64_t a, std::uint64_t b, std::uint32_t keeps) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k32.f32.e5m2.e4m3 "
      "{" TMAP_WGMMA_NAMES_64 "}, %64, %65, p, 1, 1; }"
      : TMAP_WGMMA_SUMS_64(d, 0)
      : "l"(a), "l"(b), "r"(keeps)
      : "memory");
}

// wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16; PTX ISA 9.7.15.5, sm_90a
template <bool TransposesA, bool TransposesB>
__device__ void wgmma_bf16(float (&d)[128], std::uint64_t a, std::uint64_t b, std::uint32_t keeps) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
      "{" TMAP_WGMMA_NAMES_128 "}, %128, %129, p, 1, 1, %131, %132; }"
      : TMAP_WGMMA_SUMS_64(d, 0), TMAP_WGMMA_SUMS_64(d, 64)
      : "l"(a), "l"(b), "r"(keeps), "n"(TransposesA ? 1 : 0), "n"(TransposesB ? 1 : 0)
      : "memory");
}

// wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16; PTX ISA 9.7.15.5, sm_90a
template <bool TransposesA, bool TransposesB>
__device__ void wgmma_f16(float (&d)[128], std::uint64_t a, std::uint64_t b, std::uint32_t keeps) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
      "{" TMAP_WGMMA_NAMES_128 "}, %128, %129, p, 1, 1, %131, %132; }"
      : TMAP_WGMMA_SUMS_64(d, 0), TMAP_WGMMA_SUMS_64(d, 64)
      : "l"(a), "l"(b), "r"(keeps), "n"(TransposesA ? 1 : 0), "n"(TransposesB ? 1 : 0)
      : "memory");
}

// wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3; PTX ISA 9.7.15.5, sm_90a
__device__ inline void wgmma_e4m3(float (&d)[128], std::uint64_t a, std::uint64_t b, std::uint32_t keeps) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3 "
      "{" TMAP_WGMMA_NAMES_128 "}, %128, %129, p, 1, 1; }"
      : TMAP_WGMMA_SUMS_64(d, 0), TMAP_WGMMA_SUMS_64(d, 64)
      : "l"(a), "l"(b), "r"(keeps)
      : "memory");
}

#undef TMAP_WGMMA_NAMES_64
#undef TMAP_WGMMA_NAMES_128
#undef TMAP_WGMMA_SUMS_8
#undef TMAP_WGMMA_SUMS_64

}  // namespace tmap::device::ptx
