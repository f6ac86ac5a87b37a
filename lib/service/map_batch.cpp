// SPDX-License-Identifier: Apache-2.0
#include <tmap/map_batch.hpp>

#include <new>
#include <utility>

#include "lib/service/lease.hpp"
#include "lib/support/arguments.hpp"

namespace tmap {

map_batch::map_batch(std::shared_ptr<service::lease> lease, const map_batch_ref& ref, const map_batch_writer& writer,
                     const detail::tile_shape& shape)
    : lease_{std::move(lease)}, ref_{ref}, writer_{writer}, shape_{shape} {}

map_batch::map_batch(map_batch&& other) noexcept
    : lease_{std::move(other.lease_)},
      ref_{std::exchange(other.ref_, {})},
      writer_{std::exchange(other.writer_, {})},
      shape_{std::exchange(other.shape_, {})} {}

map_batch& map_batch::operator=(map_batch&& other) noexcept {
  map_batch taken{std::move(other)};
  std::swap(lease_, taken.lease_);
  ref_ = taken.ref_;
  writer_ = taken.writer_;
  shape_ = taken.shape_;
  return *this;
}

map_batch::~map_batch() = default;

result<void> map_batch::use_on(cuda::stream_ref stream) {
  if (lease_ == nullptr) return support::refused("map_batch", "is empty; it must be a batch that holds maps");
  try {
    return lease_->use_on(stream.get());
  } catch (const std::bad_alloc&) {
    return failure{error{.code = status::out_of_memory}};
  }
}

result<void> map_batch::release() {
  if (lease_ == nullptr) return {};
  const result<void> released = lease_->release();
  if (!released && released.error().code == status::wrong_context) return released;
  *this = map_batch{};
  return released;
}

}  // namespace tmap
