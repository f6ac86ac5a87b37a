// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/encode_batch.hpp>
#include <tmap/error.hpp>
#include <tmap/map_batch_ref.hpp>
#include <tmap/map_template.hpp>
#include <tmap/slot_record.hpp>
#include <tmap/tensor_map.hpp>
#include <tmap/tensor_source.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/launch.hpp"
#include "lib/pool/pool_calls.hpp"

namespace tmap::service {

/// The calls of a service to CUDA, the system and the encoder, as pointers, so that tests can
/// simulate every failure.
struct service_calls {
  const pool::pool_calls* pool;

  bool (*is_exiting)();  ///< whether the process began to exit; watches for it from the first call on
  int (*process_id)();
  result<void> (*check_machine)();  ///< whether driver, GPU and kernels are there

  cudaError_t (*current_context)(std::uint64_t* id);              ///< 0 when the calling thread has none
  cudaError_t (*primary_context)(int device, std::uint64_t* id);  ///< 0 when it does not exist now
  cudaError_t (*current_device)(int* device);
  cudaError_t (*bind_primary_context)(int device);

  cudaError_t (*allocate_host)(void** data, std::size_t bytes);  ///< zeroed, pinned, at one address for host and device
  cudaError_t (*free_host)(void* data);
  cudaError_t (*open_stream)(cudaStream_t* stream);  ///< one that does not wait for the legacy stream
  cudaError_t (*close_stream)(cudaStream_t stream);
  cudaError_t (*clear)(void* device_data, std::size_t bytes, cudaStream_t stream);
  cudaError_t (*copy)(void* to, const void* from, std::size_t bytes, cudaStream_t stream);
  cudaError_t (*wait)(cudaStream_t stream);

  result<tensor_map> (*driver_map)(const tensor_spec& spec);
  result<map_template> (*driver_template)(const tensor_spec& spec, patch_fields fields);

  result<void> (*encode)(const map_template& base, const tensor_source& source, tensor_map* slots, std::uint64_t count,
                         const encode_run& run, kernels::batch_totals* totals);
  result<void> (*update)(const map_template& base, const tensor_source& source, const kernels::update_target& target,
                         const encode_run& run, kernels::batch_totals* totals);
  cudaError_t (*share)(const map_batch_ref& from, std::uint32_t offset, std::uint32_t* table, cudaStream_t stream);
  cudaError_t (*gather)(const map_batch_ref& from, tensor_map* slots, map_status* statuses, cudaStream_t stream);

  cudaError_t (*open_slots)(slot_record* records, std::uint64_t count, std::uint32_t generation, hazard_log* log,
                            cudaStream_t stream);
  cudaError_t (*publish_slots)(slot_record* records, std::uint64_t count, std::uint32_t generation,
                               cudaStream_t stream);
};

const service_calls& real_service_calls();

}  // namespace tmap::service
