// SPDX-License-Identifier: Apache-2.0
#pragma once

// What headers that device code includes use of the standard library, and the only file of them
// that names it. NVRTC has no standard library: there, `std` means libcu++ inside of tmap, and the
// namespace `::std` stays as it was found. `::memcpy` and `::printf` are NVRTC's own.

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
