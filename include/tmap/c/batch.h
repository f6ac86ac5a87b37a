// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/call.h>
#include <tmap/c/spec.h>

/// @file
/// Templates, patch sources, and encoding into slots of the caller: map_template.hpp, map_patch.hpp
/// and encode_batch.hpp.

#ifdef __cplusplus
extern "C" {
#endif

/// The fields a batch may change, as a bit set. An axis that no tensor has names a field that no
/// template takes.
#define TMAP_PATCH_ADDRESS 1u
#define TMAP_PATCH_FIELD(first, count, axis) ((axis) < (count) ? 1u << ((first) + (axis)) : 1u << 31)
#define TMAP_PATCH_DIM(axis) TMAP_PATCH_FIELD(1, 5, (unsigned)(axis))
#define TMAP_PATCH_STRIDE(index) TMAP_PATCH_FIELD(6, 4, (unsigned)(index))
#define TMAP_PATCH_BOX(axis) TMAP_PATCH_FIELD(10, 5, (unsigned)(axis))
#define TMAP_PATCH_ELEMENT_STRIDE(axis) TMAP_PATCH_FIELD(15, 5, (unsigned)(axis))

/// A `tmap::map_template`: never changes, for any number of threads at once.
typedef struct tmap_template {
  uint64_t value;
} tmap_template;

/// Through the driver, and without one (`make_template`, `make_zeroed_template`).
TMAP_API tmap_status tmap_template_create(const tmap_tensor_spec* spec, uint32_t fields, tmap_template* made);
TMAP_API tmap_status tmap_template_create_zeroed(const tmap_tensor_spec* spec, uint32_t fields, tmap_template* made);
TMAP_API tmap_status tmap_template_destroy(tmap_template base);

/// One patch in device memory, at addresses that are multiples of 16. Its layout never changes, nor
/// that of the sources' members below.
typedef struct tmap_map_patch {
  uint64_t global_address;
  uint64_t global_stride_bytes[TMAP_MAX_RANK - 1];
  uint64_t global_dim[TMAP_MAX_RANK];
  uint32_t box_dim[TMAP_MAX_RANK];
  uint16_t element_stride[TMAP_MAX_RANK];
  uint16_t padding;
} tmap_map_patch;

typedef struct tmap_patch_columns {
  const uint64_t* global_address;
  const uint64_t* global_dim[TMAP_MAX_RANK];
  const uint64_t* global_stride_bytes[TMAP_MAX_RANK - 1];
} tmap_patch_columns;

typedef struct tmap_compact_columns {
  uint64_t base_address;
  const uint32_t* address_units;  ///< of 16 bytes
  const uint32_t* global_dim[TMAP_MAX_RANK];
  const uint32_t* global_stride_units[TMAP_MAX_RANK - 1];  ///< of 16 bytes
} tmap_compact_columns;

/// Values of `tmap_row_offsets::format`.
enum {
  TMAP_OFFSETS_ENDS = 0,
  TMAP_OFFSETS_PREFIX = 1,
  TMAP_OFFSETS_SIZES = 2,
  TMAP_OFFSETS_BEGINS_AND_COUNTS = 3,
  TMAP_OFFSETS_SLOTS = 4,
  TMAP_OFFSETS_LABELS = 5  ///< grouped products alone take it
};

/// `tmap::row_offsets`: the rows at which each tensor or group begins and ends.
typedef struct tmap_row_offsets {
  const void* values;  ///< device memory: `int32_t` or `int64_t`, by `bytes`
  uint32_t format;     ///< TMAP_OFFSETS_*
  uint32_t bytes;      ///< 4 or 8
  const void* counts;  ///< TMAP_OFFSETS_BEGINS_AND_COUNTS: as `values`
  uint64_t slot_rows;  ///< TMAP_OFFSETS_SLOTS
} tmap_row_offsets;

/// With TMAP_OFFSETS_SIZES an encode needs a workspace (`tmap_rows_workspace_bytes`).
typedef struct tmap_ragged_rows {
  uint64_t base_address;
  uint64_t row_pitch_bytes;
  tmap_row_offsets offsets;
  uint64_t rows;        ///< rows that exist, looked at where `is_bounded` is 1: as `tmap::ragged_rows::rows`
  uint32_t is_bounded;  ///< 0: the number of rows is not known, and offsets are trusted
  uint32_t reserved;    ///< 0
} tmap_ragged_rows;

/// Values of `tmap_patch_source::kind`.
enum { TMAP_SOURCE_PATCHES = 0, TMAP_SOURCE_COLUMNS = 1, TMAP_SOURCE_COMPACT = 2, TMAP_SOURCE_ROWS = 3 };

/// Names the place of patches. All pointers are device memory of the caller. The library reads only
/// the member that `kind` names.
typedef struct tmap_patch_source {
  uint32_t struct_size;
  uint32_t kind;  ///< TMAP_SOURCE_*
  union {
    const tmap_map_patch* patches;
    tmap_patch_columns columns;
    tmap_compact_columns compact;
    tmap_ragged_rows rows;
  } of;  ///< holds the four members above: `of.patches`, and so on
} tmap_patch_source;

/// The status of a map with a dim of 0. The status of a bad map has bit i for each broken rule i.
#define TMAP_EMPTY_MAP (UINT64_C(1) << 63)

/// Encodes `count` maps into `slots`: device memory of the caller, aligned to 128 bytes. Fails as
/// `encode_batch` and with `TMAP_INVALID_HANDLE`.
TMAP_API tmap_status tmap_encode_batch(tmap_template base, const tmap_patch_source* source, tmap_tensor_map* slots,
                                       uint64_t count, const tmap_call* call);

/// Workspace that ragged rows with TMAP_OFFSETS_SIZES need.
TMAP_API tmap_status tmap_rows_workspace_bytes(uint64_t count, uint32_t offset_bytes, uint64_t* bytes);

#ifdef __cplusplus
}
#endif
