// SPDX-License-Identifier: Apache-2.0
#pragma once

// Holds what calls have in common that enqueue kernels for a group: checks of their arguments, and
// making the kernels ready.

#include <tmap/grouped_gemm.hpp>
#include <tmap/peer_memory.hpp>

#include <chrono>
#include <cstdint>

#include "lib/support/arguments.hpp"

namespace tmap::peer {

// Six pieces of 32 KiB fill most of a multiprocessor's shared memory.
inline constexpr std::uint32_t staging_bytes = 32768;
inline constexpr std::uint32_t stages = 6;
/// Rows for a rank of so many bytes are pushed. With fewer, pulls take less time.
inline constexpr std::uint32_t pushed_bytes = 4 << 20;
/// With fewer blocks, other ranks had better pull.
inline constexpr std::uint32_t pushing_blocks = 16;

inline std::uint64_t nanoseconds(std::chrono::milliseconds patience) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds{patience}.count());
}

/// Returns the offset of an address in this rank's window, as kernels count it.
inline std::uint64_t offset_of(const peer_memory_ref& ref, const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) - ref.windows[ref.rank];
}

/// Checks that a window is there.
void check_any_window(support::arguments& given, const peer_memory& window);
/// Checks that a window is there, and that all ranks reach it.
void check_window(support::arguments& given, const peer_memory& window);
void check_patience(support::arguments& given, std::chrono::milliseconds patience, const support::argument& name);
void check_blocks(support::arguments& given, std::uint32_t blocks, const support::argument& name);

/// Bytes of this rank's window.
struct extent {
  std::uint64_t begin;
  std::uint64_t bytes;
};
bool overlap(const extent& a, const extent& b);

/// Checks that an array is aligned and lies in the user's bytes of the own window.
extent check_array(support::arguments& given, const peer_memory_ref& ref, const void* data, std::uint64_t bytes,
                   std::uint64_t alignment, const support::argument& name);

/// Checks the pitch of a matrix with rows of `row_bytes`. Returns its bytes.
std::uint64_t check_rows(support::arguments& given, const gemm::matrix& of, std::uint64_t rows, std::uint64_t row_bytes,
                         const support::argument& name);

/// Makes the kernels ready for a launch on the current GPU.
[[nodiscard]] result<void> load_kernels();

}  // namespace tmap::peer
