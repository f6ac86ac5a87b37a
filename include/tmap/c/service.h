// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/batch.h>

/// @file
/// Slots that are lent, encoded into and taken back in stream order. map_service.hpp and
/// map_batch.hpp describe how, and the failures of each function. The C interface adds
/// `TMAP_INVALID_HANDLE` and `TMAP_BATCH_BUSY`.

#ifdef __cplusplus
extern "C" {
#endif

/// A `tmap::map_service`. Thread-safe.
typedef struct tmap_service {
  uint64_t value;
} tmap_service;

/// How a service is made. A struct of zeros, but for its size, stands for the defaults.
typedef struct tmap_service_options {
  uint32_t struct_size;
  uint32_t skip_self_test;  ///< 0 or 1
  uint64_t capacity;        ///< slots at the beginning; 0: the default of `tmap::service_options`
  uint64_t max_capacity;    ///< slots it may grow to; 0: it never grows
  void* memory;             ///< device memory of the caller in place of an allocation, or null
  uint64_t memory_bytes;
} tmap_service_options;

/// A `tmap::map_batch`. Only one call at a time may use a batch (`TMAP_BATCH_BUSY`); calls with
/// different batches may run at once.
typedef struct tmap_batch {
  uint64_t value;
} tmap_batch;

/// The bytes of `tmap::map_batch_ref`, a kernel parameter, so without a size: all that a kernel
/// needs of a batch. Map i is in slot `indices[i]`, or in slot i if `indices` is null. The same
/// holds for its status.
typedef struct tmap_batch_ref {
  const tmap_tensor_map* slots;
  const uint64_t* statuses;  ///< as `tmap_call::statuses` of maps; null for a trusted batch
  const uint32_t* indices;
  uint32_t count;
  uint32_t generation;
  const void* records;
} tmap_batch_ref;

/// The bytes of `tmap::map_batch_writer`: all that a kernel that encodes for itself needs of a
/// reserved batch.
typedef struct tmap_batch_writer {
  tmap_tensor_map* slots;
  uint64_t* statuses;
  uint32_t count;
  uint32_t generation;
  void* records;
} tmap_batch_writer;

/// All that can be known of a batch. Its pointers are device memory, valid as long as the batch, on
/// its streams.
typedef struct tmap_batch_info {
  uint32_t struct_size;
  uint32_t reserved;
  tmap_batch_ref ref;
  tmap_batch_writer writer;  ///< all 0 unless reserved
} tmap_batch_info;

/// Returns the device memory that a service of `capacity` slots needs.
TMAP_API uint64_t tmap_service_memory_bytes(uint64_t capacity);

/// Makes a service for the current context of the calling thread; `options` may be null.
TMAP_API tmap_status tmap_service_create(const tmap_service_options* options, tmap_service* service);
TMAP_API tmap_status tmap_service_destroy(tmap_service service);

/// Returns what the service has done so far, as one JSON object (`tmap::to_json`). Numbers may have
/// more digits at the next call.
TMAP_API tmap_status tmap_service_statistics(tmap_service service, char* text, size_t capacity, size_t* length);

/// Encodes `count` maps into fresh slots and lends them.
TMAP_API tmap_status tmap_service_encode(tmap_service service, tmap_template base, const tmap_patch_source* source,
                                         uint64_t count, tmap_batch* batch, const tmap_call* call);

/// Makes a batch in which the maps that `changed` names (device memory) are encoded again and all
/// others are those of `old`.
/// @fails `TMAP_UNSUPPORTED` for sources of ragged rows.
TMAP_API tmap_status tmap_service_update(tmap_service service, tmap_batch old, const uint32_t* changed,
                                         uint64_t changed_count, tmap_template base, const tmap_patch_source* source,
                                         tmap_batch* batch, const tmap_call* call);

/// Lends fresh slots to a kernel that encodes for itself.
TMAP_API tmap_status tmap_service_reserve(tmap_service service, uint64_t count, tmap_batch* batch, tmap_stream stream);

/// `info->struct_size` and `reserved` are read, the rest is written.
TMAP_API tmap_status tmap_batch_query(tmap_batch batch, tmap_batch_info* info);

/// Adds `stream` to the batch's streams.
TMAP_API tmap_status tmap_batch_use_on(tmap_batch batch, tmap_stream stream);

/// Ends the lease and the handle, also if it fails, except with `TMAP_WRONG_CONTEXT` and
/// `TMAP_BATCH_BUSY`.
TMAP_API tmap_status tmap_batch_release(tmap_batch batch);

#ifdef __cplusplus
}
#endif
