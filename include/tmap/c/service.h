// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/batch.h>

// Slots that are lent, encoded into and taken back in stream order: map_service.hpp and
// map_batch.hpp say how, and what each function fails with. The C interface adds
// `TMAP_INVALID_HANDLE` and `TMAP_BATCH_BUSY`.

#ifdef __cplusplus
extern "C" {
#endif

/// A `tmap::map_service`. Thread-safe.
typedef struct tmap_service {
  uint64_t value;
} tmap_service;

/// How a service is made. All 0 but the size: as by default.
typedef struct tmap_service_options {
  uint32_t struct_size;
  uint32_t skip_self_test;  ///< 0 or 1
  uint64_t capacity;        ///< slots at the beginning; 0: the default of `tmap::service_options`
  uint64_t max_capacity;    ///< slots it may grow to; 0: it never grows
  void* memory;             ///< device memory of the caller in place of an allocation, or null
  uint64_t memory_bytes;
} tmap_service_options;

/// A `tmap::map_batch`. Calls with one batch come one after another (`TMAP_BATCH_BUSY`); those with
/// others at any time.
typedef struct tmap_batch {
  uint64_t value;
} tmap_batch;

/// What a kernel needs of a batch: the bytes of `tmap::map_batch_ref`, a kernel parameter, so
/// without a size. Map i is in slot `indices[i]`, and in slot i where `indices` is null; its status
/// likewise.
typedef struct tmap_batch_ref {
  const tmap_tensor_map* slots;
  const uint64_t* statuses;  ///< as `tmap_call::statuses` of maps; null for a trusted batch
  const uint32_t* indices;
  uint32_t count;
  uint32_t generation;
  const void* records;
} tmap_batch_ref;

/// What a kernel that encodes for itself needs of a reserved batch: the bytes of
/// `tmap::map_batch_writer`.
typedef struct tmap_batch_writer {
  tmap_tensor_map* slots;
  uint64_t* statuses;
  uint32_t count;
  uint32_t generation;
  void* records;
} tmap_batch_writer;

/// All that a batch says of itself. Its pointers are device memory, good as long as the batch, on
/// its streams.
typedef struct tmap_batch_info {
  uint32_t struct_size;
  uint32_t reserved;
  tmap_batch_ref ref;
  tmap_batch_writer writer;  ///< all 0 unless reserved
} tmap_batch_info;

/// Device memory that a service of `capacity` slots needs.
TMAP_API uint64_t tmap_service_memory_bytes(uint64_t capacity);

/// For the current context of the calling thread; `options` may be null.
TMAP_API tmap_status tmap_service_create(const tmap_service_options* options, tmap_service* service);
TMAP_API tmap_status tmap_service_destroy(tmap_service service);

/// What the service did so far, as one JSON object (`tmap::to_json`). Numbers may have more digits
/// at the next call.
TMAP_API tmap_status tmap_service_statistics(tmap_service service, char* text, size_t capacity, size_t* length);

/// Encodes `count` maps into fresh slots and lends them.
TMAP_API tmap_status tmap_service_encode(tmap_service service, tmap_template base, const tmap_patch_source* source,
                                         uint64_t count, tmap_batch* batch, const tmap_call* call);

/// A batch in which the maps that `changed` names (device memory) are encoded again and all others
/// are those of `old`. Fails with `TMAP_UNSUPPORTED` for sources of ragged rows.
TMAP_API tmap_status tmap_service_update(tmap_service service, tmap_batch old, const uint32_t* changed,
                                         uint64_t changed_count, tmap_template base, const tmap_patch_source* source,
                                         tmap_batch* batch, const tmap_call* call);

/// Fresh slots for a kernel that encodes for itself.
TMAP_API tmap_status tmap_service_reserve(tmap_service service, uint64_t count, tmap_batch* batch, tmap_stream stream);

/// `info->struct_size` and `reserved` are read, the rest is written.
TMAP_API tmap_status tmap_batch_query(tmap_batch batch, tmap_batch_info* info);

/// Adds `stream` to the batch's streams.
TMAP_API tmap_status tmap_batch_use_on(tmap_batch batch, tmap_stream stream);

/// Ends the lease, and with it the handle, also where it fails, but for `TMAP_WRONG_CONTEXT` and
/// `TMAP_BATCH_BUSY`.
TMAP_API tmap_status tmap_batch_release(tmap_batch batch);

#ifdef __cplusplus
}
#endif
