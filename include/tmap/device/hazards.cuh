// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// The checks of acquire.cuh and batch_writer.cuh in a build with TMAP_CHECK_HAZARDS
/// (docs/hazards.md). In any other build all of this is empty.

#include <tmap/detail/standard.hpp>
#include <tmap/map_batch_ref.hpp>
#include <tmap/slot_record.hpp>
#include <tmap/tensor_map.hpp>

#include <cuda/atomic>

namespace tmap::device::detail {

#if defined(TMAP_CHECK_HAZARDS)

template <class Word>
using gpu_word = cuda::atomic_ref<Word, cuda::thread_scope_device>;
template <class Word>
using sys_word = cuda::atomic_ref<Word, cuda::thread_scope_system>;

__device__ inline std::uint64_t block_in_grid() {
  return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * static_cast<std::uint64_t>(blockIdx.z));
}

__device__ inline std::uint32_t thread_in_block() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

// Not inlined, so that the code that checks stays small.
__noinline__ __device__ inline void report(hazard kind, std::uint32_t map, std::uint32_t expected, std::uint32_t found,
                                           hazard_log* log) {
  if (log == nullptr) {
    ::printf("tmap: hazard %s: map %u, generation %u, found %u\n", name(kind), map, expected, found);
    return;
  }
  // The log may lie in host memory, where few machines support read-modify-writes of system scope.
  // Only one GPU writes it.
  gpu_word<std::uint64_t>(log->counts[static_cast<std::uint32_t>(kind)]).fetch_add(1, cuda::memory_order_relaxed);
  std::uint32_t nobody = 0;
  if (gpu_word<std::uint32_t>(log->first_claimed).compare_exchange_strong(nobody, 1, cuda::memory_order_relaxed)) {
    log->first = {kind, map, expected, found, block_in_grid(), thread_in_block(), 0};
    sys_word<std::uint32_t>(log->first_complete).store(1, cuda::memory_order_release);
  }
  __threadfence_system();  // what comes next may end the context
}

/// Holds what a record contained at one moment. The edition is read last, as an opening writes it
/// first.
struct slot_reading {
  explicit __device__ slot_reading(slot_record& record)
      : generation(gpu_word<std::uint32_t>(record.generation).load(cuda::memory_order_acquire)),
        edition(gpu_word<std::uint32_t>(record.edition).load(cuda::memory_order_relaxed)) {}

  __device__ bool is_published() const { return (edition & edition_published) != 0; }
  /// Returns whether the slot was lent again after the lease `expected`. Generations count up and
  /// wrap around.
  __device__ bool is_later_than(std::uint32_t expected) const {
    return generation != 0 && static_cast<std::int32_t>(generation - expected) > 0;
  }

  std::uint32_t generation;
  std::uint32_t edition;
};

/// Holds the record of an acquired slot, and its edition at the acquire. A map without a record has
/// none.
class slot_watch {
 public:
  slot_watch() = default;

  /// Checks map `i` of `ref` before it is acquired.
  __device__ slot_watch(const map_batch_ref& ref, std::uint32_t i) : generation_(ref.generation), map_(i) {
    if (ref.records == nullptr) return;
    slot_record* const records = const_cast<slot_record*>(ref.records);
    if (i >= ref.count) {
      report(hazard::index_out_of_batch, i, ref.generation, ref.generation, records->log);
    } else if (ref.indices == nullptr) {
      watch(records[i], true);
    } else if (is_current(records[table_slot(ref, i)], true)) {
      watch(records[ref.indices[i]], false);  // which an earlier lease may have published
    }
  }

  /// Checks the map before each use.
  __device__ void check() const {
    if (record_ == nullptr) return;
    const slot_reading now(*record_);
    if (now.edition == edition_) return;
    report(hazard::acquire_missing, map_, generation_, now.generation, record_->log);
  }

 private:
  /// An updated batch keeps its index table in slots of its own lease.
  static __device__ std::int64_t table_slot(const map_batch_ref& ref, std::uint32_t i) {
    return (reinterpret_cast<std::int64_t>(ref.indices + i) - reinterpret_cast<std::int64_t>(ref.slots)) /
           std::int64_t{tensor_map_bytes};
  }

  __device__ void watch(slot_record& record, bool own) {
    if (!is_current(record, own)) return;
    record_ = &record;
  }

  __device__ bool is_current(slot_record& record, bool own) {
    const slot_reading now(record);
    edition_ = now.edition;
    const bool stale = now.is_later_than(generation_);
    if (!stale && now.is_published() && (!own || now.generation == generation_)) return true;
    report(stale ? hazard::stale_generation : hazard::unpublished_slot, map_, generation_, now.generation, record.log);
    return false;
  }

  slot_record* record_{};
  std::uint32_t generation_{};
  std::uint32_t edition_{};
  std::uint32_t map_{};
};

/// Call it before map `i` of a reserved batch is written, one thread a map.
__device__ inline void begin_write(const map_batch_writer& writer, std::uint64_t i) {
  if (writer.records == nullptr) return;
  slot_record& record = writer.records[i];
  const slot_reading now(record);
  const auto map = static_cast<std::uint32_t>(i);
  if (now.generation != writer.generation) {
    const bool stale = now.is_later_than(writer.generation);
    report(stale ? hazard::stale_generation : hazard::slot_not_open, map, writer.generation, now.generation,
           record.log);
    return;
  }
  const gpu_word<std::uint32_t> edition(record.edition);
  const std::uint32_t before = edition.fetch_or(edition_written, cuda::memory_order_relaxed);
  if ((before & edition_written) == 0) return;
  if ((before & edition_published) != 0) edition.fetch_add(edition_step - edition_published);
  report(hazard::rewritten_while_leased, map, writer.generation, now.generation, record.log);
}

/// Call it after the map was published, in the thread that called `begin_write`.
__device__ inline void end_write(const map_batch_writer& writer, std::uint64_t i) {
  if (writer.records == nullptr || slot_reading(writer.records[i]).generation != writer.generation) return;
  gpu_word<std::uint32_t>(writer.records[i].edition).fetch_or(edition_published, cuda::memory_order_release);
}

#else

class slot_watch {
 public:
  slot_watch() = default;
  __device__ slot_watch(const map_batch_ref&, std::uint32_t) {}
  __device__ void check() const {}
};
static_assert(std::is_empty_v<slot_watch>);

__device__ inline void begin_write(const map_batch_writer&, std::uint64_t) {}
__device__ inline void end_write(const map_batch_writer&, std::uint64_t) {}

#endif

}  // namespace tmap::device::detail
