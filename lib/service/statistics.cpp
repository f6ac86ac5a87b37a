// SPDX-License-Identifier: Apache-2.0
#include <tmap/map_service.hpp>

#include <nlohmann/json.hpp>

#include <atomic>
#include <mutex>

#include "lib/service/service_core.hpp"
#include "lib/support/without_throwing.hpp"

namespace tmap {
namespace {

/// Of a number that kernels add to meanwhile.
std::uint64_t read_shared(std::uint64_t& number) {
  return std::atomic_ref{number}.load(std::memory_order_relaxed);
}

}  // namespace

namespace service {

void core::read_device_side(service_statistics& into) {
  into.slots = pool_->counts();
  into.peak_leased = pool_->peak_in_use();
  into.cross_stream_reuses = pool_->cross_stream_reuses();
  into.device_bytes = pool_->device_bytes();
  device_counts& counts = *block_.get();
  into.bad_maps = read_shared(counts.totals.bad_maps);
  into.empty_maps = read_shared(counts.totals.empty_maps);
  into.hazards = 0;
  for (std::uint64_t& of_kind : counts.hazards.counts) into.hazards += read_shared(of_kind);
}

service_statistics core::statistics() {
  service_statistics now;
  const bool may_ask = guard_.check().has_value();
  if (may_ask) read_device_side(now);
  // Only tried, since a fork may have left the lock closed for ever.
  if (const std::unique_lock lock{seen_mutex_, std::try_to_lock}; lock.owns_lock()) {
    if (may_ask) {
      seen_ = now;
    } else {
      now = seen_;
    }
  }
  now.batches = batches_.load(std::memory_order_relaxed);
  now.encoded_maps = encoded_maps_.load(std::memory_order_relaxed);
  now.exhausted_calls = exhausted_calls_.load(std::memory_order_relaxed);
  return now;
}

}  // namespace service

std::string to_json(const service_statistics& statistics) {
  return support::without_throwing([&] {
    const slot_counts& slots = statistics.slots;
    const nlohmann::ordered_json object{
        {"slots",
         {{"capacity", slots.capacity},
          {"free", slots.free},
          {"leased", slots.leased},
          {"pending", slots.pending},
          {"captured", slots.captured}}},
        {"peak_leased", statistics.peak_leased},
        {"batches", statistics.batches},
        {"encoded_maps", statistics.encoded_maps},
        {"bad_maps", statistics.bad_maps},
        {"empty_maps", statistics.empty_maps},
        {"exhausted_calls", statistics.exhausted_calls},
        {"cross_stream_reuses", statistics.cross_stream_reuses},
        {"device_bytes", statistics.device_bytes},
        {"hazards", statistics.hazards},
    };
    return object.dump();
  });
}

}  // namespace tmap
