// SPDX-License-Identifier: Apache-2.0
#include "lib/service/check_arguments.hpp"
#include "lib/service/lease.hpp"
#include "lib/service/make_batch.hpp"
#include "lib/support/trace.hpp"

namespace tmap::service {
namespace {

result<void> check_call(const map_template& base, const tensor_source& source, std::uint64_t count,
                        const encode_run& run) {
  support::arguments given;
  given.range(count, 1, max_batch, "count");
  check_arguments(given, base, source, run);
  check_scratch(given, source, count, run);
  return given.outcome();
}

}  // namespace

map_batch_ref ref_to(const lent_slots& lent, std::uint32_t count, bool is_trusted) {
  return {.slots = lent.slots(),
          .statuses = is_trusted ? nullptr : lent.statuses(),
          .count = count,
          .generation = lent.generation,
          .records = lent.records()};
}

result<map_batch> encode_batch(const std::shared_ptr<core>& service, const map_template& base,
                               const tensor_source& source, std::uint64_t count, const encode_run& run) {
  const support::trace_range range{"tmap service encode"};
  if (const result<void> entered = service->enter(); !entered) return failure{entered.error()};
  if (const result<void> checked = check_call(base, source, count, run); !checked) return failure{checked.error()};
  cudaStream_t const stream = run.where.stream.get();
  const bool is_trusted = run.choices.trusted;
  const auto held = std::make_shared<lease>(service, stream, is_trusted);
  const result<lent_slots> lent = held->take(count);
  if (!lent) return failure{lent.error()};
  if (const result<void> opened = service->open(*lent, stream); !opened) return failure{opened.error()};
  encode_run own = run;
  if (!is_trusted) own.statuses = lent->statuses();
  const result<void> encoded = service->calls().encode(base, source, lent->slots(), count, own, service->totals());
  if (!encoded) return failure{service->judge(encoded.error())};
  if (const result<void> published = service->publish(*lent, stream); !published) return failure{published.error()};
  service->count_batch(count);
  return access::make_batch(held, ref_to(*lent, static_cast<std::uint32_t>(count), is_trusted), {},
                            detail::shape_of(base.spec, base.fields));
}

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
  return access::make_batch(held, ref_to(*lent, writer.count, false), writer);
}

}  // namespace tmap::service
