// SPDX-License-Identifier: Apache-2.0
#include <variant>

#include "lib/service/check_arguments.hpp"
#include "lib/service/lease.hpp"
#include "lib/service/make_batch.hpp"
#include "lib/support/check.hpp"
#include "lib/support/trace.hpp"

namespace tmap::service {
namespace {

/// The arguments of one update, for all its steps.
struct update_job {
  const std::shared_ptr<core>& service;
  const map_batch& batch;
  const lease& old;  ///< of `batch`
  const changed_maps& changed;
  const map_template& base;
  const tensor_source& source;
  const encode_run& run;

  std::uint32_t map_count() const { return batch.size(); }
  cudaStream_t stream() const { return run.where.stream.get(); }
  bool is_trusted() const { return run.choices.trusted; }
  /// Returns the tile of all maps: those that stay and those made from `base`.
  detail::tile_shape shape() const {
    const detail::tile_shape made = detail::shape_of(base.spec, base.fields);
    return made == access::shape_of(batch) ? made : detail::tile_shape{};
  }
};

constexpr std::uint64_t indices_per_slot = sizeof(tensor_map) / sizeof(std::uint32_t);

/// Rows describe a whole batch, not single maps.
failure rows_refused() {
  return failure{error{.code = status::unsupported,
                       .argument = "source",
                       .reason = "is `ragged_rows`; an update takes patches or columns"}};
}

result<void> check(const update_job& job) {
  const support::argument changed{"changed"};
  support::arguments given;
  if (&job.old.service() != job.service.get()) {
    given.refuse("batch", "is another service's; update it with the service that made it");
  }
  given.equal(job.is_trusted(), job.old.is_trusted(), support::argument{"choices"}.member("trusted"),
              "is {found}; it must be {allowed}, as when `batch` was made");
  given.at_most(job.changed.count, max_batch, changed.member("count"));
  if (job.changed.count != 0) given.pointer(job.changed.indices, changed.member("indices"));
  check_arguments(given, job.base, job.source, job.run);
  return given.outcome();
}

// The old maps are read on the job's stream, by the kernel that copies them or through the new
// batch. So the take of fresh slots adds that stream to theirs.

/// Returns the slots that sharing needs: the changed maps, and a table with the slot of each map.
std::uint64_t shared_slots(const update_job& job) {
  return job.changed.count + (job.map_count() + indices_per_slot - 1) / indices_per_slot;
}

bool may_share(const update_job& job) {
  return job.old.slot_count() + shared_slots(job) <= 2 * std::uint64_t{job.map_count()};
}

result<void> encode_changed(const update_job& job, const lent_slots& fresh, std::uint32_t* table) {
  const kernels::update_target target{.changes = job.changed.indices,
                                      .change_count = job.changed.count,
                                      .map_count = job.map_count(),
                                      .slots = fresh.slots(),
                                      .statuses = job.is_trusted() ? nullptr : fresh.statuses(),
                                      .table = table,
                                      .first_slot = fresh.range.first};
  const result<void> encoded =
      job.service->calls().update(job.base, job.source, target, job.run, job.service->totals());
  if (!encoded) return failure{job.service->judge(encoded.error())};
  return job.service->publish(fresh, job.stream());
}

result<map_batch> share(const update_job& job, const std::shared_ptr<lease>& held, const lent_slots& fresh) {
  held->share(job.old);
  if (const result<void> opened = job.service->open(fresh, job.stream()); !opened) return failure{opened.error()};
  tensor_map* const slab = pool::slots_of(fresh.range.slab);
  auto* const table = reinterpret_cast<std::uint32_t*>(fresh.slots() + job.changed.count);
  const map_batch_ref from = job.batch.ref();
  const auto offset = static_cast<std::uint32_t>(from.slots - slab);
  const result<void> shared = job.service->as_result(job.service->calls().share(from, offset, table, job.stream()));
  if (!shared) return failure{shared.error()};
  if (const result<void> encoded = encode_changed(job, fresh, table); !encoded) return failure{encoded.error()};
  const map_batch_ref ref{
      .slots = slab,
      .statuses = job.is_trusted() ? nullptr : pool::statuses_of(fresh.range.slab, fresh.range.slab_capacity),
      .indices = table,
      .count = job.map_count(),
      .generation = fresh.generation,
      .records = pool::records_of(fresh.range.slab, fresh.range.slab_capacity)};
  return access::make_batch(held, ref, {}, job.shape());
}

result<map_batch> compact(const update_job& job) {
  const auto held = std::make_shared<lease>(job.service, job.stream(), job.is_trusted());
  const result<lent_slots> fresh = held->take_reading(job.old, job.map_count());
  if (!fresh) return failure{fresh.error()};
  if (const result<void> opened = job.service->open(*fresh, job.stream()); !opened) return failure{opened.error()};
  const map_batch_ref ref = ref_to(*fresh, job.map_count(), job.is_trusted());
  map_status* const statuses = job.is_trusted() ? nullptr : fresh->statuses();
  const cudaError_t code = job.service->calls().gather(job.batch.ref(), fresh->slots(), statuses, job.stream());
  if (const result<void> gathered = job.service->as_result(code); !gathered) return failure{gathered.error()};
  if (const result<void> encoded = encode_changed(job, *fresh, nullptr); !encoded) return failure{encoded.error()};
  return access::make_batch(held, ref, {}, job.shape());
}

result<map_batch> share_or_compact(const update_job& job) {
  if (!may_share(job)) return compact(job);
  const auto held = std::make_shared<lease>(job.service, job.stream(), job.is_trusted(), job.old.part_count() + 1);
  const result<lent_slots> fresh = held->take_beside(job.old, shared_slots(job));
  if (fresh) return share(job, held, *fresh);
  if (fresh.error().code != status::pool_exhausted) return failure{fresh.error()};
  return compact(job);
}

}  // namespace

result<map_batch> update_batch(const std::shared_ptr<core>& service, const map_batch& batch,
                               const changed_maps& changed, const map_template& base, const tensor_source& source,
                               const encode_run& run) {
  const support::trace_range range{"tmap service update"};
  if (const result<void> entered = service->enter(); !entered) return failure{entered.error()};
  const lease* const old = access::lease_of(batch);
  if (old == nullptr) return support::refused("batch", "is empty; it must be a batch that holds maps");
  if (std::holds_alternative<ragged_rows>(source)) return rows_refused();
  const update_job job{service, batch, *old, changed, base, source, run};
  if (const result<void> checked = check(job); !checked) return failure{checked.error()};
  result<map_batch> updated = share_or_compact(job);
  if (updated) service->count_batch(changed.count);
  return updated;
}

}  // namespace tmap::service
