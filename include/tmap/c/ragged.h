// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/batch.h>

/// @file
/// Routes, and operations on batches of tensors of different sizes. route.hpp, tensor_batch.hpp and
/// ragged.hpp describe them and the largest tensors. Operations on a stream use the call's
/// workspace. A captured operation with arrays in pageable memory of the host fails with
/// `TMAP_PAGEABLE_MEMORY_IN_CAPTURE`. With `TMAP_ON_HOST` every pointer and address is one of this
/// process, there is neither stream nor workspace, and the call returns when the work is done. If
/// it fails with `TMAP_OUT_OF_MEMORY`, it may have done a part of the work.

#ifdef __cplusplus
extern "C" {
#endif

/// Why a route was chosen (`tmap::route_reason`).
enum {
  TMAP_REASON_BEST = 0,
  TMAP_REASON_DISABLED_BY_POLICY = 1,
  TMAP_REASON_NOT_ALLOWED = 2,
  TMAP_REASON_MISALIGNED = 3,
  TMAP_REASON_TOO_SMALL = 4,
  TMAP_REASON_EXTENT_TOO_LARGE = 5
};

/// `tmap::tensor_layout`.
typedef struct tmap_tensor_layout {
  uint32_t struct_size;
  uint32_t element_bytes;
  uint64_t address;
  uint64_t dim[TMAP_MAX_RANK];
  uint64_t stride_bytes[TMAP_MAX_RANK - 1];
  uint32_t rank;
  uint32_t reserved;
} tmap_tensor_layout;

/// Returns the route for one tensor that is read, and the reason. The default policy is enable.
/// Pure.
TMAP_API tmap_status tmap_choose_route(const tmap_tensor_layout* tensor, uint32_t policy, uint32_t allowed,
                                       uint32_t* route, uint32_t* reason);

/// `tmap::tensor_batch`. `inner_*` are for sources of ragged rows.
typedef struct tmap_tensor_batch {
  uint32_t struct_size;
  uint32_t element_bytes;
  uint32_t rank;
  uint32_t arrays_on_host;    ///< 0 or 1: the source's arrays are memory of the host, in a capture pinned memory only
  uint64_t count;             ///< tensors
  tmap_patch_source tensors;  ///< with a size of its own
  uint64_t inner_dim[TMAP_MAX_RANK - 1];
  uint64_t inner_stride_bytes[TMAP_MAX_RANK - 2];
} tmap_tensor_batch;

/// `tmap::dense_batch`.
typedef struct tmap_dense_batch {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t address;
  uint64_t dim[TMAP_MAX_RANK];
  uint64_t stride_bytes[TMAP_MAX_RANK - 1];  ///< all 0: packed
  uint64_t tensor_pitch_bytes;               ///< 0: packed
} tmap_dense_batch;

/// `tmap::ragged::packed_buffer`.
typedef struct tmap_packed_buffer {
  uint32_t struct_size;
  uint32_t reserved;
  void* memory;
  uint64_t bytes;
  uint64_t alignment;  ///< 0 stands for 1
  int64_t* begins;     ///< null, or `count + 1` values that are written
} tmap_packed_buffer;

/// `tmap::ragged::row_matrix`.
typedef struct tmap_row_matrix {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t address;
  uint64_t rows;
  uint64_t row_bytes;
  uint64_t pitch_bytes;
} tmap_row_matrix;

/// `tmap::ragged::row_index`.
typedef struct tmap_row_index {
  uint32_t struct_size;
  uint32_t bytes;    ///< 4 or 8
  const void* rows;  ///< device memory
  uint64_t count;
} tmap_row_index;

/// `tmap::ragged::padded_rows`.
typedef struct tmap_padded_rows {
  uint32_t struct_size;
  uint32_t element_bytes;  ///< 1, 2, 4, 8 or 16
  uint64_t values;
  uint64_t rows;
  uint64_t dense;
  uint64_t count;
  uint64_t longest;
  uint64_t row_bytes;
  tmap_row_offsets offsets;  ///< TMAP_OFFSETS_ENDS or TMAP_OFFSETS_PREFIX
} tmap_padded_rows;

/// Types of values (`tmap::ragged::value_type`).
enum {
  TMAP_VALUE_U8 = 0,
  TMAP_VALUE_F16 = 1,
  TMAP_VALUE_BF16 = 2,
  TMAP_VALUE_F32 = 3,
  TMAP_VALUE_F8_E4M3 = 4,
  TMAP_VALUE_F8_E5M2 = 5
};

/// `tmap::ragged::cast_values`. A cast without arithmetic has the scale 1.
typedef struct tmap_cast_values {
  uint32_t struct_size;
  uint32_t from;  ///< TMAP_VALUE_*
  uint32_t to;    ///< TMAP_VALUE_*
  float scale;
  float shift;
  uint32_t reserved;
  const float* scales;
  const float* shifts;
} tmap_cast_values;

enum { TMAP_ROWS_SUM = 0, TMAP_ROWS_MAX = 1 };

/// The elements that share a scale (`tmap::ragged::scale_block`).
enum { TMAP_SCALE_ROW = 0, TMAP_SCALE_1X128 = 1, TMAP_SCALE_128X128 = 2, TMAP_SCALE_128X1 = 3 };

/// `tmap::ragged::quantize_values`.
typedef struct tmap_quantize_values {
  uint32_t struct_size;
  uint32_t from;               ///< TMAP_VALUE_*
  uint32_t to;                 ///< TMAP_VALUE_*
  uint32_t block;              ///< TMAP_SCALE_*
  uint32_t powers_of_two;      ///< 0 or 1
  uint32_t transposed_scales;  ///< 0 or 1
} tmap_quantize_values;

/// Returns the workspace that every operation on `count` tensors of this rank needs at most.
TMAP_API tmap_status tmap_ragged_workspace_bytes(uint64_t count, uint32_t rank, uint64_t* bytes);

TMAP_API tmap_status tmap_ragged_copy(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                                      const tmap_call* call);
TMAP_API tmap_status tmap_ragged_pack(const tmap_tensor_batch* source, const tmap_packed_buffer* destination,
                                      const tmap_call* call);
TMAP_API tmap_status tmap_ragged_unpack(const tmap_packed_buffer* source, const tmap_tensor_batch* destination,
                                        const tmap_call* call);
/// `fill` is one element of `source->element_bytes` in memory of the host; null stands for zeros.
TMAP_API tmap_status tmap_ragged_pad(const tmap_tensor_batch* source, const tmap_dense_batch* destination,
                                     const void* fill, const tmap_call* call);
TMAP_API tmap_status tmap_ragged_unpad(const tmap_dense_batch* source, const tmap_tensor_batch* destination,
                                       const tmap_call* call);
/// These two use neither workspace nor windows.
TMAP_API tmap_status tmap_ragged_gather_rows(const tmap_row_matrix* source, const tmap_row_index* index,
                                             const tmap_row_matrix* destination, const tmap_call* call);
TMAP_API tmap_status tmap_ragged_scatter_rows(const tmap_row_matrix* source, const tmap_row_index* index,
                                              const tmap_row_matrix* destination, const tmap_call* call);
/// These two (padded_rows.hpp) use neither workspace, windows nor routes, and have neither statuses
/// nor a header. `fill` is one element in memory of the host; null stands for zeros.
TMAP_API tmap_status tmap_ragged_pad_rows(const tmap_padded_rows* rows, const void* fill, const tmap_call* call);
TMAP_API tmap_status tmap_ragged_unpad_rows(const tmap_padded_rows* rows, const tmap_call* call);
TMAP_API tmap_status tmap_ragged_transpose(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                                           const tmap_call* call);
TMAP_API tmap_status tmap_ragged_cast(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                                      const tmap_cast_values* values, const tmap_call* call);
TMAP_API tmap_status tmap_ragged_saxpy(float a, const tmap_tensor_batch* x, const tmap_tensor_batch* y,
                                       const tmap_call* call);
TMAP_API tmap_status tmap_ragged_max_pool_1d(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                                             uint32_t radius, const tmap_call* call);
/// `type` is TMAP_VALUE_*, `reduction` TMAP_ROWS_*.
TMAP_API tmap_status tmap_ragged_reduce_rows(const tmap_tensor_batch* source, uint32_t type, uint32_t reduction,
                                             const tmap_tensor_batch* destination, const tmap_call* call);
/// `scales` are f32.
TMAP_API tmap_status tmap_ragged_quantize(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                                          const tmap_tensor_batch* scales, const tmap_quantize_values* values,
                                          const tmap_call* call);
/// `from` and `to` are TMAP_VALUE_*.
TMAP_API tmap_status tmap_ragged_column_sums(const tmap_tensor_batch* source, uint32_t from,
                                             const tmap_tensor_batch* destination, uint32_t to, const tmap_call* call);

#ifdef __cplusplus
}
#endif
