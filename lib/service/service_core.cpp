// SPDX-License-Identifier: Apache-2.0
#include "lib/service/service_core.hpp"

#include <fmt/format.h>

#include <bit>
#include <string>
#include <utility>

#include "lib/pool/relaxed_capture.hpp"
#include "lib/pool/slab_layout.hpp"
#include "lib/service/private_stream.hpp"
#include "lib/service/self_test.hpp"
#include "lib/support/arguments.hpp"
#include "lib/support/check.hpp"
#include "lib/support/log.hpp"

namespace tmap::service {
namespace {

std::string text_of(const slot_counts& slots) {
  return fmt::format("{} slots, of which {} free, {} leased, {} pending, {} captured", slots.capacity, slots.free,
                     slots.leased, slots.pending, slots.captured);
}

result<void> check_options(const service_options& options) {
  const support::argument name{"options"};
  support::arguments given;
  given.range(options.capacity, 1, max_batch, name.member("capacity"));
  if (options.max_capacity != 0) given.at_least(options.max_capacity, options.capacity, name.member("max_capacity"));
  if (!given || options.memory == nullptr) return given.outcome();
  given.at_least(options.memory_bytes, service_memory_bytes(options.capacity), name.member("memory_bytes"));
  given.pointer(options.memory, pool::slab_alignment, name.member("memory"));
  return given.outcome();
}

/// Clears the caller's memory.
result<void> clear_memory(const service_options& options, cudaStream_t stream, const service_calls& calls) {
  TMAP_TRY_CUDA(calls.clear(options.memory, service_memory_bytes(options.capacity), stream));
  TMAP_TRY_CUDA(calls.wait(stream));
  return {};
}

/// Opens the records of a slab for no lease, so that the use of a slot that was never lent finds
/// the log, too.
auto opener_of_records(const service_calls& calls, hazard_log* log, cudaStream_t stream) {
  return [&calls, log, stream](void* slab, std::uint64_t capacity) -> result<void> {
    TMAP_TRY_CUDA(calls.open_slots(pool::records_of(slab, capacity), capacity, 0, log, stream));
    TMAP_TRY_CUDA(calls.wait(stream));
    return {};
  };
}

result<std::shared_ptr<pool::map_pool>> make_pool(const service_options& options, const host_block& block,
                                                  cudaStream_t stream, const service_calls& calls) {
  pool::pool_options pool{.capacity = options.capacity, .extra_bytes = totals_bytes, .memory = options.memory};
  if (options.memory == nullptr) pool.max_capacity = options.max_capacity;
  if (checks_hazards) pool.prepare = opener_of_records(calls, block.hazards(), stream);
  return pool::map_pool::create(pool, *calls.pool);
}

}  // namespace

result<std::shared_ptr<core>> core::create(const service_options& options, const service_calls& calls) {
  static_cast<void>(calls.is_exiting());  // watches from now on
  if (const result<void> checked = check_options(options); !checked) return failure{checked.error()};
  const pool::relaxed_capture relaxed{*calls.pool};
  if (const result<void> usable = calls.check_machine(); !usable) return failure{usable.error()};
  TMAP_TRY_CUDA(relaxed.code());
  const result<home_context> home = find_home_context(calls);
  if (!home) return failure{home.error()};
  if (options.self_test) {
    if (const result<void> passed = pass_self_test(home->id, calls); !passed) return failure{passed.error()};
  }
  host_block block{calls};
  private_stream stream{calls};
  TMAP_TRY_CUDA(block.allocate());
  TMAP_TRY_CUDA(stream.open());
  if (options.memory != nullptr) {
    const result<void> cleared = clear_memory(options, stream.get(), calls);
    if (!cleared) return failure{cleared.error()};
  }
  result<std::shared_ptr<pool::map_pool>> pool = make_pool(options, block, stream.get(), calls);
  if (!pool) return failure{pool.error()};
  return std::make_shared<core>(calls, *home, std::move(block), std::move(stream), std::move(*pool));
}

core::core(const service_calls& calls, const home_context& home, host_block block, private_stream stream,
           std::shared_ptr<pool::map_pool> pool)
    : calls_{calls},
      guard_{calls, home},
      block_{std::move(block)},
      stream_{std::move(stream)},
      pool_{std::move(pool)},
      totals_{static_cast<kernels::batch_totals*>(pool_->extra())} {
  device_bytes_ = pool_->device_bytes();
  support::log_made(log_level::debug,
                    [&] { return fmt::format("a service made in context {}: {}", home.id, text_of(pool_->counts())); });
}

core::~core() {
  if (!may_free()) {
    pool_->abandon();
    block_.leak();
    stream_.leak();
    return;
  }
  const pool::relaxed_capture relaxed{*calls_.pool};
  const slot_counts slots = pool_->counts();
  support::log_made(log_level::debug, [&] { return fmt::format("a service ends: {}", text_of(slots)); });
  if (checks_hazards && slots.captured != 0) block_.leak();
  pool_->disown();
  pool_.reset();
  // Close here: when the members' destructors run, the thread is no longer relaxed.
  stream_.close();
  block_.free();
}

bool core::may_free() {
  if (calls_.is_exiting()) return false;
  const result<void> entered = guard_.check();
  if (!entered && entered.error().code == status::wrong_context) {
    support::log(log_level::warning, "a service ended while another CUDA context was current: its memory is not freed");
  }
  return entered.has_value();
}

result<pool::lease_ptr> core::take(std::uint64_t count, cudaStream_t stream, const pool::read_leases& read) {
  result<pool::lease_ptr> taken = pool_->take(count, stream, nullptr, read);
  if (!taken && taken.error().code == status::pool_exhausted) note_exhaustion(taken.error());
  if (!taken) return failure{guard_.judge(taken.error())};
  note_growth(pool::range_of(**taken).slab);
  return taken;
}

result<pool::lease_ptr> core::take_in(const void* slab, std::uint64_t count, cudaStream_t stream,
                                      const pool::read_leases& read) {
  result<pool::lease_ptr> taken = pool_->take(count, stream, slab, read);
  return taken ? std::move(taken) : failure{guard_.judge(taken.error())};
}

result<void> core::use_on(const pool::lease_ptr& lease, cudaStream_t stream, cudaStream_t home) {
  const result<void> used = pool_->use_on(lease, stream, home);
  return used ? used : failure{guard_.judge(used.error())};
}

result<void> core::release(pool::lease_ptr lease) noexcept {
  const result<void> ended = pool_->release(std::move(lease));
  return ended ? ended : failure{guard_.die(ended.error())};
}

result<void> core::withdraw(pool::lease_ptr lease) noexcept {
  const result<void> ended = pool_->withdraw(std::move(lease));
  return ended ? ended : failure{guard_.die(ended.error())};
}

result<void> core::open(const lent_slots& lent, cudaStream_t stream) {
  if (!checks_hazards) return {};
  return as_result(calls_.open_slots(lent.records(), lent.range.count, lent.generation, block_.hazards(), stream));
}

result<void> core::publish(const lent_slots& lent, cudaStream_t stream) {
  if (!checks_hazards) return {};
  return as_result(calls_.publish_slots(lent.records(), lent.range.count, lent.generation, stream));
}

void core::count_batch(std::uint64_t encoded_maps) {
  batches_.fetch_add(1, std::memory_order_relaxed);
  encoded_maps_.fetch_add(encoded_maps, std::memory_order_relaxed);
}

void core::note_growth(const void* slab) {
  if (last_slab_.exchange(slab, std::memory_order_relaxed) == slab) return;
  const std::uint64_t bytes = pool_->device_bytes();
  if (device_bytes_.exchange(bytes, std::memory_order_relaxed) == bytes) return;
  support::log_made(log_level::debug,
                    [&] { return fmt::format("a service has grown to {} bytes of device memory", bytes); });
}

void core::note_exhaustion(const error& e) {
  const std::uint64_t calls = exhausted_calls_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (!std::has_single_bit(calls)) return;
  support::log_made(log_level::warning,
                    [&] { return fmt::format("{} (call {} that found too few)", to_string(e), calls); });
}

}  // namespace tmap::service
