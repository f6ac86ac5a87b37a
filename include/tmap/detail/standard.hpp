// SPDX-License-Identifier: Apache-2.0
#pragma once

// Includes the standard library for all headers that device code includes; no other of them does.
// NVRTC has no standard library. There, `std` means libcu++ inside the namespace tmap, and `::std`
// is not changed. `::memcpy` and `::printf` are NVRTC's own.

#if defined(__CUDACC_RTC__)

#include <cuda/std/cassert>
#include <cuda/std/cstddef>
#include <cuda/std/cstdint>
#include <cuda/std/type_traits>

namespace tmap {
namespace std = cuda::std;
}  // namespace tmap

#else

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

#endif
