// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/encode_batch.hpp>
#include <tmap/error.hpp>
#include <tmap/map_batch.hpp>
#include <tmap/map_patch.hpp>
#include <tmap/map_template.hpp>
#include <tmap/slot_record.hpp>
#include <tmap/tensor_map.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/launch.hpp"
#include "lib/pool/pool_calls.hpp"

namespace tmap::service {

/// All that a service asks of the world around it, as pointers, so that tests can play every failure.
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

  template <class Source>
  using encode_call = result<void> (*)(const map_template& base, const Source& source, tensor_map* slots,
                                       std::uint64_t count, cudaStream_t stream, const encode_options& options);
  encode_call<patch_array> encode_array;
  encode_call<patch_columns> encode_columns;
  encode_call<compact_columns> encode_compact;
  encode_call<ragged_rows<std::int32_t>> encode_rows_32;
  encode_call<ragged_rows<std::int64_t>> encode_rows_64;

  template <class Source>
  using update_call = result<void> (*)(const map_template& base, const Source& source,
                                       const kernels::update_target& target, cudaStream_t stream,
                                       const encode_options& options);
  update_call<patch_array> update_array;
  update_call<patch_columns> update_columns;
  update_call<compact_columns> update_compact;
  cudaError_t (*share)(const map_batch_ref& from, std::uint32_t offset, std::uint32_t* table, cudaStream_t stream);
  cudaError_t (*gather)(const map_batch_ref& from, tensor_map* slots, map_status* statuses, cudaStream_t stream);

  cudaError_t (*open_slots)(slot_record* records, std::uint64_t count, std::uint32_t generation, hazard_log* log,
                            cudaStream_t stream);
  cudaError_t (*publish_slots)(slot_record* records, std::uint64_t count, std::uint32_t generation,
                               cudaStream_t stream);

  encode_call<patch_array> encode_of(const patch_array&) const { return encode_array; }
  encode_call<patch_columns> encode_of(const patch_columns&) const { return encode_columns; }
  encode_call<compact_columns> encode_of(const compact_columns&) const { return encode_compact; }
  encode_call<ragged_rows<std::int32_t>> encode_of(const ragged_rows<std::int32_t>&) const { return encode_rows_32; }
  encode_call<ragged_rows<std::int64_t>> encode_of(const ragged_rows<std::int64_t>&) const { return encode_rows_64; }
  update_call<patch_array> update_of(const patch_array&) const { return update_array; }
  update_call<patch_columns> update_of(const patch_columns&) const { return update_columns; }
  update_call<compact_columns> update_of(const compact_columns&) const { return update_compact; }
};

const service_calls& real_service_calls();

}  // namespace tmap::service
