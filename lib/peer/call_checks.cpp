// SPDX-License-Identifier: Apache-2.0
#include "lib/peer/call_checks.hpp"

#include "kernels/peer_launch.hpp"
#include "lib/encode/device.hpp"
#include "lib/pool/relaxed_capture.hpp"
#include "lib/support/check.hpp"

namespace tmap::peer {

using support::argument;
using support::arguments;

void check_any_window(arguments& given, const peer_memory& window) {
  if (!window) given.refuse("window", "is empty; call `peer_group::allocate`");
}

void check_window(arguments& given, const peer_memory& window) {
  check_any_window(given, window);
  if (!given || window.reaches_peers()) return;
  given.add(
      result<void>{failure{error{.code = status::no_peer_access,
                                 .argument = "window",
                                 .reason = "is one of `allocate_local`, which peers do not reach; this call needs "
                                           "one of `allocate`"}}});
}

void check_patience(arguments& given, std::chrono::milliseconds patience, const argument& name) {
  constexpr std::int64_t most_ms = 24 * 60 * 60 * 1000;
  given.range(static_cast<std::uint64_t>(patience.count()), 1, most_ms, name);
}

void check_blocks(arguments& given, std::uint32_t blocks, const argument& name) {
  constexpr std::uint32_t most_multiprocessors = 144;  // of a Hopper GPU
  const result<std::uint32_t> multiprocessors = multiprocessor_count();
  given.range(blocks, 1, (multiprocessors ? *multiprocessors : most_multiprocessors) - 1, name);
}

bool overlap(const extent& a, const extent& b) {
  return a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
}

extent check_array(arguments& given, const peer_memory_ref& ref, const void* data, std::uint64_t bytes,
                   std::uint64_t alignment, const argument& name) {
  given.pointer(data, alignment, name);
  const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(data) - ref.address(ref.rank);
  if (given && (offset > ref.bytes || bytes > ref.bytes - offset)) {
    given.refuse(name,
                 "does not lie in the window of this rank: it ends {found} bytes after the beginning, of {allowed}",
                 offset + bytes, ref.bytes);
  }
  return {offset, bytes};
}

std::uint64_t check_rows(arguments& given, const gemm::matrix& of, std::uint64_t rows, std::uint64_t row_bytes,
                         const argument& name) {
  constexpr std::uint64_t unit = 16, most_pitch = (std::uint64_t{1} << 32) - unit;
  given.range(of.pitch_bytes, row_bytes, most_pitch, name.member("pitch_bytes"));
  given.multiple(of.pitch_bytes, unit, name.member("pitch_bytes"));
  return rows == 0 ? 0 : (rows - 1) * of.pitch_bytes + row_bytes;
}

result<void> load_kernels() {
  if (const result<void> able = require_kernels(); !able) return able;
  const pool::relaxed_capture relaxed{pool::real_pool_calls()};
  TMAP_TRY_CUDA(relaxed.code());
  TMAP_TRY_CUDA(kernels::load_peer_kernels());
  return {};
}

}  // namespace tmap::peer
