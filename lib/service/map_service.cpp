// SPDX-License-Identifier: Apache-2.0
#include <tmap/map_service.hpp>

#include <new>
#include <utility>

#include "lib/pool/slab_layout.hpp"
#include "lib/service/create_service.hpp"
#include "lib/service/lease.hpp"
#include "lib/service/make_batch.hpp"
#include "lib/support/arguments.hpp"

namespace tmap {
namespace {

/// Returns the batch that `make` makes, if the service was not moved from.
template <class Make>
result<map_batch> made_by(const std::shared_ptr<service::core>& core, const Make& make) noexcept {
  if (core == nullptr) {
    return support::refused("map_service", "was moved from; call the service that it was moved to");
  }
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return failure{error{.code = status::out_of_memory}};
  }
}

}  // namespace

result<map_service> service::create_service(const service_options& options, const service_calls& calls) noexcept {
  try {
    result<std::shared_ptr<core>> made = core::create(options, calls);
    if (!made) return failure{made.error()};
    return access::make_service(std::move(*made));
  } catch (const std::bad_alloc&) {
    return failure{error{.code = status::out_of_memory}};
  }
}

std::uint64_t service_memory_bytes(std::uint64_t capacity) {
  return pool::slab_bytes(capacity) + service::totals_bytes;
}

map_service::map_service(std::shared_ptr<service::core> core) : core_{std::move(core)} {}
map_service::map_service(map_service&&) noexcept = default;
map_service& map_service::operator=(map_service&&) noexcept = default;
map_service::~map_service() = default;

result<map_service> map_service::create(const service_options& options) {
  return service::create_service(options, service::real_service_calls());
}

result<map_batch> map_service::encode(const map_template& base, const tensor_source& source, std::uint64_t count,
                                      const encode_run& run) {
  return made_by(core_, [&] { return service::encode_batch(core_, base, source, count, run); });
}

result<map_batch> map_service::update(const map_batch& batch, const changed_maps& changed, const map_template& base,
                                      const tensor_source& source, const encode_run& run) {
  return made_by(core_, [&] { return service::update_batch(core_, batch, changed, base, source, run); });
}

result<map_batch> map_service::reserve(std::uint64_t count, cuda::stream_ref stream) {
  return made_by(core_, [&] { return service::reserve_batch(core_, count, stream.get()); });
}

service_statistics map_service::statistics() const {
  return core_ == nullptr ? service_statistics{} : core_->statistics();
}

}  // namespace tmap
