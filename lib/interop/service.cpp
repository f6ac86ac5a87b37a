// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/service.h>
#include <tmap/map_service.hpp>

#include <memory>
#include <utility>

#include "lib/interop/bad_item.hpp"
#include "lib/interop/convert_source.hpp"
#include "lib/interop/objects.hpp"
#include "lib/interop/text.hpp"

namespace tmap::interop {
namespace {

service_options options_of(const tmap_service_options* options) {
  if (options == nullptr) return {};
  return {.capacity = options->capacity == 0 ? service_options{}.capacity : options->capacity,
          .max_capacity = options->max_capacity,
          .memory = options->memory,
          .memory_bytes = options->memory_bytes,
          .self_test = options->skip_self_test == 0};
}

answer create(const tmap_service_options* options, tmap_service* service) {
  arguments given;
  given.optional_structure(options, "options");
  if (given && options != nullptr) given.enumerator(options->skip_self_test, 1, "options.skip_self_test");
  given.pointer(service, "service");
  if (!given) return given.complaint();
  result<map_service> made = map_service::create(options_of(options));
  if (!made) return made.error();
  return hand_out(services(), std::make_shared<map_service>(std::move(*made)), service);
}

void check_request(arguments& given, const tmap_encode_request* request) {
  given.optional_structure(request, "request");
  if (!given || request == nullptr) return;
  given.enumerator(request->trusted, 1, "request.trusted");
  given.enumerator(request->publish, TMAP_PUBLISH_COPY_FENCE, "request.publish");
  check_check(given, request, "request.check");
}

/// The batch that `make` lends. Its handle is there before it, so that without memory for one no slot was taken.
template <class Make>
answer hand_out_batch(tmap_batch* batch, const Make& make) {
  const auto held = std::make_shared<held_batch>(map_batch{});
  const batch_turn turn{*held};  // a call that guesses the handle finds it busy
  tmap_batch handle{};
  if (const answer handed = hand_out(batches(), held, &handle); !handed.is_ok()) return handed;
  result<map_batch> made = make();
  if (!made) {
    batches().remove(handle.value);
    return complaint_of(made.error(), "request");
  }
  held->batch = std::move(*made);
  *batch = handle;
  return {};
}

/// What encode and update both need.
struct encode_call {
  tmap_service service;
  tmap_template base;
  const tmap_patch_source* source;
  const tmap_encode_request* request;
  tmap_batch* batch;
  tmap_stream stream;
};

/// `make(service, template, source, run)` for what `asked` names.
template <class Make>
answer encode_with(const encode_call& asked, const Make& make) {
  arguments given;
  check_source(given, asked.source, "source");
  check_request(given, asked.request);
  given.pointer(asked.batch, "batch");
  if (!given) return given.complaint();
  const auto service = services().find(asked.service.value);
  if (service == nullptr) return stale("service");
  const auto base = templates().find(asked.base.value);
  if (base == nullptr) return stale("base");
  const tmap_encode_request request = asked.request == nullptr ? tmap_encode_request{} : *asked.request;
  return hand_out_batch(asked.batch, [&] {
    return make(*service, *base, source_of(*asked.source), run_of(request, *asked.source, asked.stream));
  });
}

answer encode(const encode_call& asked, uint64_t count) {
  return encode_with(asked, [&](map_service& service, const map_template& base, const tensor_source& source,
                                const encode_run& run) { return service.encode(base, source, count, run); });
}

answer update(const encode_call& asked, tmap_batch old, const changed_maps& changed) {
  const auto held = batches().find(old.value);
  if (held == nullptr) return stale("old");
  const batch_turn turn{*held};
  if (!turn.is_granted()) return busy("old");
  return encode_with(
      asked, [&](map_service& service, const map_template& base, const tensor_source& source, const encode_run& run) {
        return service.update(held->batch, changed, base, source, run);
      });
}

answer reserve(tmap_service service, uint64_t count, tmap_batch* batch, tmap_stream stream) {
  arguments given;
  given.pointer(batch, "batch");
  if (!given) return given.complaint();
  const auto found = services().find(service.value);
  if (found == nullptr) return stale("service");
  return hand_out_batch(batch, [&] { return found->reserve(count, cuda::stream_ref{stream}); });
}

answer statistics(tmap_service service, char* text, size_t capacity, size_t* length) {
  arguments given;
  check_text(given, text, capacity, length);
  if (!given) return given.complaint();
  const auto found = services().find(service.value);
  if (found == nullptr) return stale("service");
  return write_made_text(to_json(found->statistics()), text, capacity, length);
}

}  // namespace
}  // namespace tmap::interop

using namespace tmap::interop;

uint64_t tmap_service_memory_bytes(uint64_t capacity) {
  return tmap::service_memory_bytes(capacity);
}

tmap_status tmap_service_create(const tmap_service_options* options, tmap_service* service) {
  return call(__func__, [&] { return create(options, service); });
}

tmap_status tmap_service_destroy(tmap_service service) {
  return call(__func__, [&] { return services().remove(service.value) == nullptr ? stale("service") : answer{}; });
}

tmap_status tmap_service_statistics(tmap_service service, char* text, size_t capacity, size_t* length) {
  return call(__func__, [&] { return statistics(service, text, capacity, length); });
}

tmap_status tmap_service_encode(tmap_service service, tmap_template base, const tmap_patch_source* source,
                                uint64_t count, const tmap_encode_request* request, tmap_batch* batch,
                                tmap_stream stream) {
  return call(__func__, [&] { return encode({service, base, source, request, batch, stream}, count); });
}

tmap_status tmap_service_update(tmap_service service, tmap_batch old, const uint32_t* changed, uint64_t changed_count,
                                tmap_template base, const tmap_patch_source* source, const tmap_encode_request* request,
                                tmap_batch* batch, tmap_stream stream) {
  return call(__func__, [&] {
    return update({service, base, source, request, batch, stream}, old, {changed, changed_count});
  });
}

tmap_status tmap_service_reserve(tmap_service service, uint64_t count, tmap_batch* batch, tmap_stream stream) {
  return call(__func__, [&] { return reserve(service, count, batch, stream); });
}
