// SPDX-License-Identifier: Apache-2.0
#include <tmap/detail/peer_window.hpp>
#include <tmap/peer_exchange.hpp>

#include <cstddef>

#include "lib/peer/call_checks.hpp"
#include "lib/peer/make_group.hpp"
#include "lib/support/arguments.hpp"
#include "lib/support/check.hpp"

namespace tmap {

namespace peer {

/// A copy needs no multiprocessor, and waiting kernels may have taken them all.
result<void> abort_group(const peer_memory& window, const peer_calls& calls) {
  static constexpr std::uint32_t raised = 1;
  support::arguments given;
  check_window(given, window);
  if (!given) return given.outcome();
  const peer_memory_ref& ref = window.ref();
  cudaStream_t stream = nullptr;
  TMAP_TRY_CUDA(calls.open_stream(&stream));
  cudaError_t code = cudaSuccess;
  for (std::uint32_t i = 0; i < ref.ranks; ++i) {
    const std::uint64_t at = ref.windows[i] + offsetof(detail::peer::window_header, broken);
    const cudaError_t copied = calls.copy(reinterpret_cast<void*>(at), &raised, sizeof(raised), stream);
    if (code == cudaSuccess) code = copied;
  }
  if (code == cudaSuccess) code = calls.wait(stream);
  const cudaError_t closed = calls.close_stream(stream);
  TMAP_TRY_CUDA(code);
  TMAP_TRY_CUDA(closed);
  return {};
}

}  // namespace peer

result<void> abort_group(const peer_memory& window) {
  return peer::abort_group(window, peer::real_peer_calls());
}

}  // namespace tmap
