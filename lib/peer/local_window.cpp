// SPDX-License-Identifier: Apache-2.0
#include "lib/peer/local_window.hpp"

#include <utility>

#include "lib/support/check.hpp"

namespace tmap::peer {

local_window::local_window(std::shared_ptr<communicator> over, std::uint64_t bytes, std::uint64_t pair_bytes)
    : over_{std::move(over)}, at_{kernels::peer::layout_of(over_->ranks(), bytes, pair_bytes)} {
  image_.bytes = bytes;
  image_.rank = over_->rank();
  image_.ranks = over_->ranks();
}

/// Leaves the memory of a broken group, because NCCL may still use it.
local_window::~local_window() {
  if (!over_->may_end() || data_ == nullptr) return;
  const device_guard current{over_->calls(), over_->device()};
  const cudaError_t code = current.code() == cudaSuccess ? over_->calls().free(data_) : current.code();
  if (code != cudaSuccess) support::clear_last_error(code);
}

result<void> local_window::allocate() {
  TMAP_TRY_CUDA(over_->calls().allocate(&data_, end_of(at_, image_.ranks)));
  const auto own = reinterpret_cast<std::uintptr_t>(data_);
  for (std::uint32_t i = 0; i < image_.ranks; ++i) image_.windows[i] = i == image_.rank ? own : own + at_.image;
  return clear(over_->calls(), data_, peer_header_bytes);
}

result<void> local_window::connect() {
  return over_->run([this](cudaStream_t stream) { return carry(at_.parcel_bytes(), stream); });
}

result<void> local_window::exchange(kernels::peer::exchange_request request, std::uint64_t patience,
                                    cudaStream_t stream) const {
  const peer_calls& calls = over_->calls();
  request.lacking = at_.lacking;
  request.is_eager = false;  // no rank writes into the window of another
  if (const result<void> usable = over_->check(); !usable) return usable;
  TMAP_TRY_CUDA(calls.pack_parcels(image_, request, at_, stream));
  if (const result<void> carried = carry(at_.parcel_bytes(), stream); !carried) return carried;
  TMAP_TRY_CUDA(calls.deliver_parcels(image_, request, at_, stream));
  TMAP_TRY_CUDA(calls.exchange(image_, request, patience, stream));
  return {};
}

result<void> local_window::meet(cudaStream_t stream) const {
  if (const result<void> usable = over_->check(); !usable) return usable;
  return carry(sizeof(std::uint64_t), stream);
}

result<void> local_window::carry(std::uint64_t bytes, cudaStream_t stream) const {
  return over_->all_to_all(numbers_at(at_.outbox), numbers_at(at_.inbox), bytes / sizeof(std::uint64_t), stream);
}

std::uint64_t* local_window::numbers_at(std::uint64_t offset) const {
  return reinterpret_cast<std::uint64_t*>(static_cast<unsigned char*>(data_) + offset);
}

}  // namespace tmap::peer
