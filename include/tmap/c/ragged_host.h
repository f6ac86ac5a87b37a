// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/ragged.h>

// The ragged operations on memory of the host: `on_host` in ragged.hpp says how each runs. The arguments are those of
// c/ragged.h without workspace and stream, and every pointer is one of this process. A call returns when the work is
// done; one that fails with `TMAP_OUT_OF_MEMORY` may have done a part of it.

#ifdef __cplusplus
extern "C" {
#endif

TMAP_API tmap_status tmap_ragged_on_host_copy(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                                              const tmap_ragged_options* options);
TMAP_API tmap_status tmap_ragged_on_host_pack(const tmap_tensor_batch* source, const tmap_packed_buffer* destination,
                                              const tmap_ragged_options* options);
TMAP_API tmap_status tmap_ragged_on_host_unpack(const tmap_packed_buffer* source, const tmap_tensor_batch* destination,
                                                const tmap_ragged_options* options);
/// `fill` as in `tmap_ragged_pad`.
TMAP_API tmap_status tmap_ragged_on_host_pad(const tmap_tensor_batch* source, const tmap_dense_batch* destination,
                                             const void* fill, const tmap_ragged_options* options);
TMAP_API tmap_status tmap_ragged_on_host_unpad(const tmap_dense_batch* source, const tmap_tensor_batch* destination,
                                               const tmap_ragged_options* options);
TMAP_API tmap_status tmap_ragged_on_host_gather_rows(const tmap_row_matrix* source, const tmap_row_index* index,
                                                     const tmap_row_matrix* destination,
                                                     const tmap_ragged_options* options);
TMAP_API tmap_status tmap_ragged_on_host_scatter_rows(const tmap_row_matrix* source, const tmap_row_index* index,
                                                      const tmap_row_matrix* destination,
                                                      const tmap_ragged_options* options);
TMAP_API tmap_status tmap_ragged_on_host_transpose(const tmap_tensor_batch* source,
                                                   const tmap_tensor_batch* destination,
                                                   const tmap_ragged_options* options);
TMAP_API tmap_status tmap_ragged_on_host_cast(const tmap_tensor_batch* source, const tmap_tensor_batch* destination,
                                              const tmap_cast_values* values, const tmap_ragged_options* options);
TMAP_API tmap_status tmap_ragged_on_host_saxpy(float a, const tmap_tensor_batch* x, const tmap_tensor_batch* y,
                                               const tmap_ragged_options* options);
TMAP_API tmap_status tmap_ragged_on_host_max_pool_1d(const tmap_tensor_batch* source,
                                                     const tmap_tensor_batch* destination, uint32_t radius,
                                                     const tmap_ragged_options* options);
TMAP_API tmap_status tmap_ragged_on_host_reduce_rows(const tmap_tensor_batch* source, uint32_t type, uint32_t reduction,
                                                     const tmap_tensor_batch* destination,
                                                     const tmap_ragged_options* options);

#ifdef __cplusplus
}
#endif
