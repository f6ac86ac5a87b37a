// SPDX-License-Identifier: Apache-2.0
#include "lib/peer/provider.hpp"

#include "lib/support/arguments.hpp"
#include "lib/support/check.hpp"

namespace tmap::peer {

result<window> provider::open_local(std::uint64_t, std::uint64_t) {
  return support::refused("peer_group", "has no communicator of NCCL; its ranks reach each other: call `allocate`");
}

result<void> birthplace::check() const {
  if (!is_forked()) return {};
  return failure{error{.code = status::forked,
                       .reason = "the group was made before this process was forked off: CUDA works in the parent "
                                 "only"}};
}

device_guard::device_guard(const peer_calls& calls, int device) : calls_{calls}, code_{calls.current_device(&before_)} {
  if (code_ == cudaSuccess) code_ = calls.set_device(device);
}

device_guard::~device_guard() {
  if (before_ < 0) return;
  if (const cudaError_t code = calls_.set_device(before_); code != cudaSuccess) support::clear_last_error(code);
}

result<void> clear(const peer_calls& calls, void* data, std::size_t bytes) {
  cudaStream_t stream = nullptr;
  TMAP_TRY_CUDA(calls.open_stream(&stream));
  cudaError_t code = calls.clear(data, bytes, stream);
  if (code == cudaSuccess) code = calls.wait(stream);
  const cudaError_t closed = calls.close_stream(stream);
  TMAP_TRY_CUDA(code);
  TMAP_TRY_CUDA(closed);
  return {};
}

}  // namespace tmap::peer
