// SPDX-License-Identifier: Apache-2.0
#include <tmap/map_service.hpp>

#include <fmt/format.h>

#include <atomic>
#include <mutex>

#include "lib/pool/relaxed_capture.hpp"
#include "lib/service/service_core.hpp"
#include "lib/support/without_throwing.hpp"

namespace tmap {
namespace {

/// Reads a number that kernels may add to at the same time.
std::uint64_t read_shared(std::uint64_t& number) {
  return std::atomic_ref{number}.load(std::memory_order_relaxed);
}

}  // namespace

namespace service {

/// Fetches the totals. If that fails, the last ones stay.
void core::fetch_totals() {
  const pool::relaxed_capture relaxed{*calls_.pool};
  cudaError_t code = relaxed.code();
  if (code == cudaSuccess) code = calls_.copy(block_.totals(), totals_, sizeof(kernels::batch_totals), stream_.get());
  if (code == cudaSuccess) code = calls_.wait(stream_.get());
  if (!as_result(code)) return;
  seen_.bad_maps = block_.totals()->bad_maps;
  seen_.empty_maps = block_.totals()->empty_maps;
}

service_statistics core::ask_device() {
  const std::lock_guard lock{seen_mutex_};
  fetch_totals();
  if (guard_.is_dead()) return seen_;
  seen_.slots = pool_->counts();
  seen_.peak_leased = pool_->peak_in_use();
  seen_.cross_stream_reuses = pool_->cross_stream_reuses();
  seen_.device_bytes = pool_->device_bytes();
  if (!checks_hazards) return seen_;
  seen_.hazards = 0;
  for (std::uint64_t& of_kind : block_.hazards()->counts) seen_.hazards += read_shared(of_kind);
  return seen_;
}

service_statistics core::last_seen() {
  std::unique_lock lock{seen_mutex_, std::try_to_lock};
  if (!lock.owns_lock()) {
    if (guard_.is_forked()) return {};  // locked by a thread that this process does not have
    lock.lock();
  }
  return seen_;
}

service_statistics core::statistics() {
  service_statistics now = guard_.check() ? ask_device() : last_seen();
  now.batches = batches_.load(std::memory_order_relaxed);
  now.encoded_maps = encoded_maps_.load(std::memory_order_relaxed);
  now.exhausted_calls = exhausted_calls_.load(std::memory_order_relaxed);
  return now;
}

}  // namespace service

std::string to_json(const service_statistics& statistics) {
  return support::without_throwing([&] {
    // Written by hand, because the destructor of a JSON object of the library allocates, and ends
    // the process if that fails.
    const slot_counts& slots = statistics.slots;
    return fmt::format(R"({{"slots":{{"capacity":{},"free":{},"leased":{},)"
                       R"("pending":{},"captured":{}}},)"
                       R"("peak_leased":{},"batches":{},"encoded_maps":{},)"
                       R"("bad_maps":{},"empty_maps":{},)"
                       R"("exhausted_calls":{},"cross_stream_reuses":{},)"
                       R"("device_bytes":{},"hazards":{}}})",
                       slots.capacity, slots.free, slots.leased, slots.pending, slots.captured, statistics.peak_leased,
                       statistics.batches, statistics.encoded_maps, statistics.bad_maps, statistics.empty_maps,
                       statistics.exhausted_calls, statistics.cross_stream_reuses, statistics.device_bytes,
                       statistics.hazards);
  });
}

}  // namespace tmap
