// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/map_service.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "lib/pool/map_pool.hpp"
#include "lib/service/context_guard.hpp"
#include "lib/service/host_block.hpp"
#include "lib/service/lent_slots.hpp"
#include "lib/service/private_stream.hpp"
#include "lib/service/service_calls.hpp"

namespace tmap::service {

/// Device memory for the totals, after the first slab.
inline constexpr std::uint64_t totals_bytes = 256;
static_assert(sizeof(kernels::batch_totals) <= totals_bytes);

/// The state of a service and all its batches: the pool, the guard and the counters. Lives as long
/// as the last of them. Thread-safe.
class core {
 public:
  [[nodiscard]] static result<std::shared_ptr<core>> create(const service_options& options, const service_calls& calls);
  /// Use `create`.
  core(const service_calls& calls, const home_context& home, host_block block, private_stream stream,
       std::shared_ptr<pool::map_pool> pool);
  core(const core&) = delete;
  core& operator=(const core&) = delete;
  /// Frees everything, unless CUDA may no longer be called or graphs still hold slots.
  ~core();

  const service_calls& calls() const { return calls_; }

  /// Checks whether a call may continue: `context_guard::check`.
  [[nodiscard]] result<void> enter() { return guard_.check(); }
  /// Returns the error for the caller. A failure that breaks the context makes the service dead.
  error judge(const error& e) { return guard_.judge(e); }
  [[nodiscard]] result<void> as_result(cudaError_t code) { return guard_.as_result(code); }

  [[nodiscard]] result<pool::lease_ptr> take(std::uint64_t count, cudaStream_t stream,
                                             const pool::read_leases& read = {});
  /// Takes slots of one slab. If it has too few, that is neither counted nor logged as exhaustion.
  [[nodiscard]] result<pool::lease_ptr> take_in(const void* slab, std::uint64_t count, cudaStream_t stream,
                                                const pool::read_leases& read);
  [[nodiscard]] result<void> use_on(const pool::lease_ptr& lease, cudaStream_t stream, cudaStream_t home);
  /// Ends one hold. If that fails the service is dead, because nothing can show when the slots are
  /// free.
  [[nodiscard]] result<void> release(pool::lease_ptr lease) noexcept;
  /// Ends a hold on slots whose work could not be enqueued.
  [[nodiscard]] result<void> withdraw(pool::lease_ptr lease) noexcept;

  /// Enclose the library's own encode; `open` also precedes a user's kernel. They do nothing
  /// without TMAP_CHECK_HAZARDS.
  [[nodiscard]] result<void> open(const lent_slots& lent, cudaStream_t stream);
  [[nodiscard]] result<void> publish(const lent_slots& lent, cudaStream_t stream);

  /// Returns the totals, in device memory.
  kernels::batch_totals* totals() const { return totals_; }
  void count_batch(std::uint64_t encoded_maps);
  /// Returns all counts. If CUDA may not be called, those of the pool and the kernels are from the
  /// previous call. Waits for a copy of the totals, but for no work of a user.
  service_statistics statistics();

 private:
  void note_exhaustion(const error& e);
  void note_growth(const void* slab);
  void fetch_totals();
  service_statistics ask_device();
  service_statistics last_seen();
  bool may_free();

  const service_calls& calls_;
  context_guard guard_;
  host_block block_;
  private_stream stream_;
  std::shared_ptr<pool::map_pool> pool_;
  kernels::batch_totals* const totals_;
  std::atomic<const void*> last_slab_{};
  std::atomic<std::uint64_t> device_bytes_{};
  std::atomic<std::uint64_t> batches_{};
  std::atomic<std::uint64_t> encoded_maps_{};
  std::atomic<std::uint64_t> exhausted_calls_{};
  std::mutex seen_mutex_;
  service_statistics seen_;  // the counts of the pool and the kernels at the last query
};

}  // namespace tmap::service
