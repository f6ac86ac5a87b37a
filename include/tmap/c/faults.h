// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/status.h>

/// @file
/// Counts of bad maps, tensors, rows and groups, which kernels pass over (faults.hpp).

#ifdef __cplusplus
extern "C" {
#endif

/// `tmap::fault_report`.
typedef struct tmap_fault_report {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t maps;
  uint64_t tensors;
  uint64_t rows;
  uint64_t groups;
  tmap_bad_item first;
} tmap_fault_report;

/// `report->struct_size` and `reserved` are read, the rest is written. The second sets all counts
/// to zero.
TMAP_API tmap_status tmap_faults(tmap_fault_report* report);
TMAP_API tmap_status tmap_reset_faults(tmap_fault_report* report);

/// Returns a report in one line of words.
/// @fails `TMAP_INVALID_ARGUMENT`, `TMAP_BUFFER_TOO_SMALL`, `TMAP_OUT_OF_MEMORY`.
TMAP_API tmap_status tmap_fault_report_text(const tmap_fault_report* report, char* text, size_t capacity,
                                            size_t* length);

/// Returns "ragged::copy", ...; "none" for 0, "unknown call" for any other number.
TMAP_API const char* tmap_call_name(uint32_t call);

enum { TMAP_ITEM_MAP = 0, TMAP_ITEM_TENSOR = 1, TMAP_ITEM_ROW = 2, TMAP_ITEM_GROUP = 3 };

/// Returns a status in words: "good", "empty", or each fault with its meaning. `kind` is
/// TMAP_ITEM_*, `bits` the status as a call wrote it: 64 bits for a map, 32 for all others.
/// @fails `TMAP_INVALID_ARGUMENT`, `TMAP_BUFFER_TOO_SMALL`, `TMAP_OUT_OF_MEMORY`.
TMAP_API tmap_status tmap_item_text(uint32_t kind, uint64_t bits, char* text, size_t capacity, size_t* length);

#ifdef __cplusplus
}
#endif
