// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/service.h>
#include <tmap/map_service.hpp>

#include <memory>
#include <utility>

#include "lib/interop/convert.hpp"
#include "lib/interop/convert_call.hpp"
#include "lib/interop/inputs.hpp"
#include "lib/interop/objects.hpp"

namespace tmap::interop {
void check_members(arguments& all, const tmap_service_options& options, const support::argument& name) {
  all.enumerator(options.skip_self_test, 1, name.member("skip_self_test"));
}

service_options library_of(const tmap_service_options& options) {
  return {.capacity = options.capacity == 0 ? service_options{}.capacity : options.capacity,
          .max_capacity = options.max_capacity,
          .memory = options.memory,
          .memory_bytes = options.memory_bytes,
          .self_test = options.skip_self_test == 0};
}

namespace {

answer create(const service_options& options, tmap_service& service) {
  result<map_service> made = map_service::create(options);
  if (!made) return made.error();
  return hand_out(services(), std::make_shared<map_service>(std::move(*made)), &service);
}

/// Hands out the batch that `make` lends.
template <class Make>
answer hand_out_batch(tmap_batch& batch, const Make& make) {
  return hand_out_made(batches(), &batch, [&](std::shared_ptr<held_batch>& to) -> answer {
    auto held = std::make_shared<held_batch>(map_batch{});
    result<map_batch> made = make();
    if (!made) return made.error();
    held->batch = std::move(*made);
    to = std::move(held);
    return {};
  });
}

answer encode(map_service& service, const map_template& base, const tensor_source& source, std::uint64_t count,
              tmap_batch& batch, const encode_run& how) {
  return hand_out_batch(batch, [&] { return service.encode(base, source, count, how); });
}

answer update(held_batch& old_batch, map_service& service, const changed_maps& changed, const map_template& base,
              const tensor_source& source, tmap_batch& batch, const encode_run& how) {
  const batch_turn turn{old_batch};
  if (!turn.is_granted()) return busy("old");
  return hand_out_batch(batch, [&] { return service.update(old_batch.batch, changed, base, source, how); });
}

}  // namespace
}  // namespace tmap::interop

using namespace tmap::interop;

uint64_t tmap_service_memory_bytes(uint64_t capacity) {
  return tmap::service_memory_bytes(capacity);
}

tmap_status tmap_service_create(const tmap_service_options* options, tmap_service* service) {
  return run(__func__, create, optional_input{"options", options}, output{"service", service});
}

tmap_status tmap_service_destroy(tmap_service service) {
  return call(__func__, [&] { return services().remove(service.value) == nullptr ? stale("service") : answer{}; });
}

tmap_status tmap_service_statistics(tmap_service service, char* text, size_t capacity, size_t* length) {
  return run(
      __func__, [](const auto& of, const auto& to) { return to.write_made(to_json(of.statistics())); },
      object{"service", services(), service.value}, text_output{text, capacity, length});
}

tmap_status tmap_service_encode(tmap_service service, tmap_template base, const tmap_patch_source* source,
                                uint64_t count, tmap_batch* batch, const tmap_call* call) {
  return run(__func__, encode, object{"service", services(), service.value}, object{"base", templates(), base.value},
             input{"source", source}, as_is{count}, output{"batch", batch}, service_call{call});
}

tmap_status tmap_service_update(tmap_service service, tmap_batch old, const uint32_t* changed, uint64_t changed_count,
                                tmap_template base, const tmap_patch_source* source, tmap_batch* batch,
                                const tmap_call* call) {
  return run(__func__, update, object{"old", batches(), old.value}, object{"service", services(), service.value},
             as_is{tmap::changed_maps{changed, changed_count}}, object{"base", templates(), base.value},
             input{"source", source}, output{"batch", batch}, service_call{call});
}

tmap_status tmap_service_reserve(tmap_service service, uint64_t count, tmap_batch* batch, tmap_stream stream) {
  return run(
      __func__,
      [&](tmap::map_service& by, tmap_batch& to) {
        return hand_out_batch(to, [&] { return by.reserve(count, cuda::stream_ref{stream}); });
      },
      object{"service", services(), service.value}, output{"batch", batch});
}
