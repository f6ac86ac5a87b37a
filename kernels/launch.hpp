// SPDX-License-Identifier: Apache-2.0
#pragma once

// The way from lib to the kernels that encode; ragged_launch.hpp and gemm_launch.hpp lead to the
// others. Plain functions enqueue work and return the code of the CUDA runtime. The caller has
// checked the arguments. `count` is at least 1.

#include <tmap/bad_items.hpp>
#include <tmap/item_status.hpp>
#include <tmap/map_batch_ref.hpp>
#include <tmap/map_status.hpp>
#include <tmap/map_template.hpp>
#include <tmap/peer_memory_ref.hpp>
#include <tmap/publish.hpp>
#include <tmap/slot_record.hpp>
#include <tmap/tensor_map.hpp>
#include <tmap/tensor_source.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace tmap::kernels {

/// Chooses how a kernel encodes.
struct encode_plan {
  std::uint32_t maps_per_warp;  ///< a warp composes so many at once, 1 to 32
  publish published_by{publish::stores};
};

/// Sums over many batches, to which kernels only add. They are in device memory; copy them to read
/// them.
struct alignas(16) batch_totals {
  std::uint64_t bad_maps{};
  std::uint64_t empty_maps{};
};

/// Names what a kernel judges maps by, and where it reports. As in `encode_run`, all of it is
/// device memory, and each pointer may be null.
struct encode_terms {
  map_status* statuses{};
  batch_header* header{};
  batch_totals* totals{};  ///< what this batch adds to
  const address_window* windows{};
  std::uint32_t window_count{};
  bool trusted{};
};

/// The number of records for the kernels of a single call each. One more record, the first, is for
/// all calls of a context.
inline constexpr std::uint32_t call_record_count = 64;

/// Finds the `1 + call_record_count` records of the current context. They are in device memory that
/// lives as long as the context, and are zero at first. It makes a context if there is none, and
/// loads a module at the first call in each.
cudaError_t find_fault_records(fault_record** records);

/// Returns the plan that measured fastest at this size (docs/measurements/encode_batch.md).
encode_plan plan_encode(std::uint64_t count, std::uint32_t multiprocessors);

/// `begins` is the running sum of the sizes of `ragged_rows`. It is null for other offset formats
/// and sources.
cudaError_t launch_encode(const encode_plan& plan, const map_template& base, const tensor_source& source,
                          const std::int64_t* begins, tensor_map* slots, std::uint64_t count, cudaStream_t stream,
                          const encode_terms& terms, const fault_sink& faults, const map_owners& owners = {});

/// Names the maps of a batch that are encoded again, and their slots. Change j is of map
/// `changes[j]`. It goes into slot j, whose index goes to `table[changes[j]]`; without a table it
/// goes into slot `changes[j]`. Changes that name no map are skipped.
struct update_target {
  const std::uint32_t* changes;
  std::uint64_t change_count;
  std::uint32_t map_count;
  tensor_map* slots;
  map_status* statuses;      ///< one for each of `slots`; null for none
  std::uint32_t* table;      ///< the slot index of each map, which begins with those of the old batch
  std::uint32_t first_slot;  ///< the index of slot 0 in the table's count
};

/// The source must describe each map by itself, so it cannot be `ragged_rows`. `terms.statuses` is
/// not used: an update has its own. `owners` has a rank for each map, not for each change.
cudaError_t launch_update(const encode_plan& plan, const map_template& base, const tensor_source& source,
                          const update_target& target, cudaStream_t stream, const encode_terms& terms,
                          const fault_sink& faults, const map_owners& owners);

/// Sets table[i] = offset + from.slot_index(i).
cudaError_t launch_share(const map_batch_ref& from, std::uint32_t offset, std::uint32_t* table, cudaStream_t stream);

/// Copies all maps of `from`, with their statuses (unless null), and publishes the copies.
cudaError_t launch_gather(const map_batch_ref& from, tensor_map* slots, map_status* statuses, cudaStream_t stream);

/// Makes the header that of a batch without bad or empty maps. The encode after it counts it up.
cudaError_t launch_header_reset(batch_header* header, cudaStream_t stream);

/// Marks the slots of these records, all that a lease has, as lent and not yet published, before
/// anything is encoded into them. With generation 0 it marks them as not lent. That happens once
/// for the zeroed records of each new slab, so that a use of a slot that was never lent has a log.
cudaError_t launch_open_slots(slot_record* records, std::uint64_t count, std::uint32_t generation, hazard_log* log,
                              cudaStream_t stream);

/// Marks the slots as published, after the kernel that encoded them. Records of another generation
/// stay as they are.
cudaError_t launch_publish_slots(slot_record* records, std::uint64_t count, std::uint32_t generation,
                                 cudaStream_t stream);

/// The most counts that one block adds up alone, and the share of each block if there are more.
inline constexpr std::uint32_t sum_block = 8192;
inline constexpr std::uint32_t sum_tile = 2048;

/// Returns the bytes of device memory that a running sum of `count` values needs as `scratch`.
constexpr std::size_t inclusive_sum_scratch(std::uint64_t count) {
  return count <= sum_block ? 0 : (count + sum_tile - 1) / sum_tile * sizeof(std::uint64_t);
}

/// Sets begins[i] = sizes[0] + ... + sizes[i - 1], in 64 bits.
cudaError_t launch_running_sum(const row_offsets& sizes, std::int64_t* begins, std::uint64_t count, void* scratch,
                               std::size_t scratch_bytes, cudaStream_t stream);

/// Load these kernels without launching them, or return `cudaErrorNoKernelImageForDevice` if they
/// were built for other GPUs. Without this call, CUDA loads a kernel at its first launch, and may
/// wait for the device when it does.
cudaError_t load_encode_kernels();
cudaError_t load_running_sum_kernels();
cudaError_t load_update_kernels();
cudaError_t load_move_kernel();

}  // namespace tmap::kernels
