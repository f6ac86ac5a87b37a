// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the host can check of a ragged operation before it does anything: arguments, never what the tensors' arrays
// hold. One function for each operation, asked before either engine is: what one refuses, so does the other, with the
// same words. Of an empty batch the arrays are not looked at.

#include <tmap/error.hpp>
#include <tmap/ragged.hpp>
#include <tmap/tensor_batch.hpp>

#include <cstdint>

#include "lib/support/arguments.hpp"

namespace tmap::ragged {

[[nodiscard]] result<void> check_copy(const tensor_batch& source, const tensor_batch& destination, const run& with);
[[nodiscard]] result<void> check_pack(const tensor_batch& source, const packed_buffer& destination, const run& with);
[[nodiscard]] result<void> check_unpack(const packed_buffer& source, const tensor_batch& destination, const run& with);
[[nodiscard]] result<void> check_pad(const tensor_batch& source, const dense_batch& destination, const run& with);
[[nodiscard]] result<void> check_unpad(const dense_batch& source, const tensor_batch& destination, const run& with);
[[nodiscard]] result<void> check_gather_rows(const row_matrix& source, const row_index& index,
                                             const row_matrix& destination, const run& with);
[[nodiscard]] result<void> check_scatter_rows(const row_matrix& source, const row_index& index,
                                              const row_matrix& destination, const run& with);
[[nodiscard]] result<void> check_transpose(const tensor_batch& source, const tensor_batch& destination,
                                           const run& with);
[[nodiscard]] result<void> check_cast(const tensor_batch& source, const tensor_batch& destination,
                                      const cast_values& values, const run& with);
[[nodiscard]] result<void> check_saxpy(const tensor_batch& x, const tensor_batch& y, const run& with);
[[nodiscard]] result<void> check_max_pool_1d(const tensor_batch& source, const tensor_batch& destination,
                                             const run& with);
[[nodiscard]] result<void> check_reduce_rows(const tensor_batch& source, value_type type, row_reduction reduction,
                                             const tensor_batch& destination, const run& with);

/// With all strides and the pitch given; of a batch whose rank is legal.
dense_batch with_strides(const dense_batch& dense, const tensor_batch& batch);

// Parts of the above.

/// Count, rank, element bytes, arrays.
void check_tensors(support::arguments& given, const tensor_batch& batch, const support::argument& name);
/// A dense side with strides, as large as `batch`. A destination's elements must not share bytes.
void check_dense(support::arguments& given, const dense_batch& dense, const tensor_batch& batch, bool is_destination,
                 const support::argument& name);

}  // namespace tmap::ragged
