// SPDX-License-Identifier: Apache-2.0
#include "lib/service/check_arguments.hpp"
#include "lib/service/lease.hpp"
#include "lib/service/make_batch.hpp"
#include "lib/support/trace.hpp"

namespace tmap::service {
namespace {

template <class Source>
result<void> check_call(const map_template& base, const Source& source, std::uint64_t count,
                        const encode_request& request) {
  support::arguments given;
  given.range(count, 1, max_batch, "count");
  check_arguments(given, base, source, request);
  if constexpr (requires { source.workspace; }) check_sums(given, source, count);
  return given.outcome();
}

}  // namespace

encode_options options_of(const encode_request& request, batch_totals* totals, batch_header* header) {
  return {.header = header,
          .totals = request.trusted ? nullptr : totals,
          .windows = request.windows,
          .window_count = request.window_count,
          .trusted = request.trusted,
          .check = request.check,
          .published_by = request.published_by};
}

map_batch_ref ref_to(const lent_slots& lent, std::uint32_t first, std::uint32_t count, bool is_trusted) {
  return {.slots = lent.slots() + first,
          .statuses = is_trusted ? nullptr : lent.statuses() + first,
          .count = count,
          .generation = lent.generation,
          .records = lent.records(first)};
}

template <class Source>
result<map_batch> encode_batch(const std::shared_ptr<core>& service, const map_template& base, const Source& source,
                               std::uint64_t count, cudaStream_t stream, const encode_request& request) {
  const support::trace_range range{"tmap service encode"};
  if (const result<void> entered = service->enter(); !entered) return failure{entered.error()};
  if (const result<void> checked = check_call(base, source, count, request); !checked) return failure{checked.error()};
  const auto held = std::make_shared<lease>(service, stream, request.trusted);
  const std::uint32_t headers = request.header ? 1 : 0;
  const result<lent_slots> lent = held->take(count + headers);
  if (!lent) return failure{lent.error()};
  auto* const header = request.header ? reinterpret_cast<batch_header*>(lent->slots()) : nullptr;
  encode_options options = options_of(request, service->totals(), header);
  if (!request.trusted) options.statuses = lent->statuses() + headers;
  if (const result<void> opened = service->open(*lent, stream); !opened) return failure{opened.error()};
  const result<void> encoded =
      service->calls().encode_of(source)(base, source, lent->slots() + headers, count, stream, options);
  if (!encoded) return failure{service->judge(encoded.error())};
  if (const result<void> published = service->publish(*lent, stream); !published) return failure{published.error()};
  service->count_batch(count);
  return access::make_batch(held, ref_to(*lent, headers, static_cast<std::uint32_t>(count), request.trusted), {},
                            header, detail::shape_of(base.spec, base.fields));
}

template result<map_batch> encode_batch(const std::shared_ptr<core>&, const map_template&, const patch_array&,
                                        std::uint64_t, cudaStream_t, const encode_request&);
template result<map_batch> encode_batch(const std::shared_ptr<core>&, const map_template&, const patch_columns&,
                                        std::uint64_t, cudaStream_t, const encode_request&);
template result<map_batch> encode_batch(const std::shared_ptr<core>&, const map_template&, const compact_columns&,
                                        std::uint64_t, cudaStream_t, const encode_request&);
template result<map_batch> encode_batch(const std::shared_ptr<core>&, const map_template&,
                                        const ragged_rows<std::int32_t>&, std::uint64_t, cudaStream_t,
                                        const encode_request&);
template result<map_batch> encode_batch(const std::shared_ptr<core>&, const map_template&,
                                        const ragged_rows<std::int64_t>&, std::uint64_t, cudaStream_t,
                                        const encode_request&);

result<map_batch> reserve_batch(const std::shared_ptr<core>& service, std::uint64_t count, cudaStream_t stream) {
  const support::trace_range range{"tmap service reserve"};
  if (const result<void> entered = service->enter(); !entered) return failure{entered.error()};
  support::arguments given;
  given.range(count, 1, max_batch, "count");
  if (!given) return failure{given.complaint()};
  const auto held = std::make_shared<lease>(service, stream, false);
  const result<lent_slots> lent = held->take(count);
  if (!lent) return failure{lent.error()};
  if (const result<void> opened = service->open(*lent, stream); !opened) return failure{opened.error()};
  const map_batch_writer writer{.slots = lent->slots(),
                                .statuses = lent->statuses(),
                                .count = static_cast<std::uint32_t>(count),
                                .generation = lent->generation,
                                .records = lent->records()};
  service->count_batch(0);
  return access::make_batch(held, ref_to(*lent, 0, writer.count, false), writer, nullptr);
}

}  // namespace tmap::service
