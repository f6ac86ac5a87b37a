// SPDX-License-Identifier: Apache-2.0
#pragma once

// Arguments of grouped products that are checked, but never read, and calls that are refused.

#include <tmap/grouped_gemm.hpp>

#include <cstdint>
#include <functional>
#include <string>

#include "support/refusal.hpp"

namespace tmap::gemm::testing {

inline const cuda::stream_ref no_stream{cudaStream_t{}};

template <class T>
T* somewhere(std::uint64_t offset = 0) {
  return reinterpret_cast<T*>(0x10000 + offset);
}

/// Multiplies [100, 32] by groups of [64, 32] transposed, with 2-byte elements and tight pitches.
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

inline weight_problem weights() {
  weight_problem made;
  made.groups = 10;
  made.rows = 100;
  made.m = 64;
  made.n = 32;
  made.offsets.values = somewhere<void>();
  made.a = {0x10000, 128};
  made.b = {0x20000, 64};
  made.c = {0x30000, 64};
  made.c_group_pitch_bytes = 64 * 64;
  return made;
}

inline pointer_problem pointers() {
  pointer_problem made;
  made.groups = 10;
  made.a = made.b = made.c = somewhere<std::uint64_t>();
  made.a_pitch_bytes = made.b_pitch_bytes = made.c_pitch_bytes = somewhere<std::int64_t>();
  made.m = made.n = made.k = somewhere<std::int64_t>();
  return made;
}

inline run in(const workspace& scratch) {
  return {{no_stream, scratch}};
}

inline workspace enough() {
  return {somewhere<void>(), workspace_bytes(10).value()};
}

inline run good_run() {
  return in(enough());
}

/// Breaks the problem of a good call with `spoil`, and expects the error to name `problem.` and the
/// member.
template <class Problem>
void refuses(Problem problem, const std::string& member, const std::function<void(Problem&)>& spoil) {
  spoil(problem);
  tmap::testing::expect_refused(multiply(problem, good_run()), "problem." + member);
}

inline void rows_refuse(const std::string& member, const std::function<void(row_problem&)>& spoil) {
  refuses<row_problem>(rows(), member, spoil);
}

}  // namespace tmap::gemm::testing
