// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operations of ragged.hpp that move bytes, on the host: all memory belongs to this process.
// Arguments have been checked, and dense batches have strides and a pitch. Each fails with
// `invalid_argument` if the environment names no policy, with `bad_items` if it is checked, and
// with `out_of_memory`.

#include <tmap/error.hpp>
#include <tmap/padded_rows.hpp>
#include <tmap/ragged.hpp>
#include <tmap/tensor_batch.hpp>

#include <cstdint>

namespace tmap::ragged::simulated {

[[nodiscard]] result<void> copy(const tensor_batch& source, const tensor_batch& destination, const run& with);
[[nodiscard]] result<void> pack(const tensor_batch& source, const packed_buffer& destination, const run& with);
[[nodiscard]] result<void> unpack(const packed_buffer& source, const tensor_batch& destination, const run& with);
[[nodiscard]] result<void> pad(const tensor_batch& source, const dense_batch& destination, const fill_value& fill,
                               const run& with);
[[nodiscard]] result<void> unpad(const dense_batch& source, const tensor_batch& destination, const run& with);
[[nodiscard]] result<void> gather_rows(const row_matrix& source, const row_index& index, const row_matrix& destination,
                                       const run& with);
void pad_rows(const padded_rows& rows, const fill_value& fill);
void unpad_rows(const padded_rows& rows);
[[nodiscard]] result<void> scatter_rows(const row_matrix& source, const row_index& index, const row_matrix& destination,
                                        const run& with);

}  // namespace tmap::ragged::simulated
