// SPDX-License-Identifier: Apache-2.0
#pragma once

// Arguments of grouped products that are checked, but never read.

#include <tmap/grouped_gemm.hpp>

#include <cstdint>

namespace tmap::gemm::testing {

inline const cuda::stream_ref no_stream{cudaStream_t{}};

template <class T>
T* somewhere(std::uint64_t offset = 0) {
  return reinterpret_cast<T*>(0x10000 + offset);
}

inline row_problem rows() {
  row_problem made;
  made.groups = 10;
  made.rows = 100;
  made.n = 64;
  made.k = 32;
  made.offsets.values = somewhere<void>();
  made.a = {0x10000, 64};
  made.b = {0x20000, 64};
  made.b_group_pitch_bytes = 64 * 64;
  made.c = {0x30000, 128};
  return made;
}

}  // namespace tmap::gemm::testing
