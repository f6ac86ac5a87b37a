// SPDX-License-Identifier: Apache-2.0
#include "lib/service/lease.hpp"

#include <utility>

#include "lib/support/log.hpp"

namespace tmap::service {

lease::lease(std::shared_ptr<core> service, cudaStream_t home, bool is_trusted, std::size_t parts)
    : service_{std::move(service)}, home_{home}, is_trusted_{is_trusted} {
  parts_.reserve(parts);
}

lease::~lease() {
  if (parts_.empty() || service_->calls().is_exiting()) return;
  const result<void> released = release();
  if (!released && released.error().code == status::wrong_context) {
    support::log(log_level::warning, "a batch ended while another CUDA context was current: its slots are lost");
  }
}

result<lent_slots> lease::take(std::uint64_t count) {
  return hold(service_->take(count, home_));
}

result<lent_slots> lease::take_reading(const lease& old, std::uint64_t count) {
  return hold(service_->take(count, home_, old.as_read()));
}

result<lent_slots> lease::take_beside(const lease& old, std::uint64_t count) {
  return hold(service_->take_in(pool::range_of(*old.parts_.front()).slab, count, home_, old.as_read()));
}

result<lent_slots> lease::hold(result<pool::lease_ptr> taken) {
  if (!taken) return failure{taken.error()};
  parts_.push_back(std::move(*taken));
  return lent_slots{*parts_.back()};
}

void lease::share(const lease& other) {
  parts_.insert(parts_.end(), other.parts_.begin(), other.parts_.end());
}

std::uint64_t lease::slot_count() const {
  std::uint64_t count = 0;
  for (const pool::lease_ptr& part : parts_) count += pool::range_of(*part).count;
  return count;
}

result<void> lease::use_on(cudaStream_t stream) const {
  if (const result<void> entered = service_->enter(); !entered) return entered;
  for (const pool::lease_ptr& part : parts_) {
    if (const result<void> used = service_->use_on(part, stream, home_); !used) return used;
  }
  return {};
}

result<void> lease::release() {
  if (const result<void> entered = service_->enter(); !entered) return entered;
  result<void> released;
  for (pool::lease_ptr& part : parts_) {
    const result<void> ended = is_batch_ ? service_->release(std::move(part)) : service_->withdraw(std::move(part));
    if (released && !ended) released = ended;
  }
  parts_.clear();
  return released;
}

}  // namespace tmap::service
