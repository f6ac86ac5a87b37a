// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operations of ragged.hpp as they run on the host: all memory is that of this process. Their arguments have been
// checked (lib/batch/ragged_arguments.hpp), and dense batches have strides and a pitch. Each fails with
// `invalid_argument` where the environment names no policy, with `bad_items` where it is checked, and with
// `out_of_memory`.

#include <tmap/error.hpp>
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
[[nodiscard]] result<void> scatter_rows(const row_matrix& source, const row_index& index, const row_matrix& destination,
                                        const run& with);
[[nodiscard]] result<void> transpose(const tensor_batch& source, const tensor_batch& destination, const run& with);
[[nodiscard]] result<void> cast(const tensor_batch& source, const tensor_batch& destination, const cast_values& values,
                                const run& with);
[[nodiscard]] result<void> saxpy(float a, const tensor_batch& x, const tensor_batch& y, const run& with);
[[nodiscard]] result<void> max_pool_1d(const tensor_batch& source, const tensor_batch& destination,
                                       std::uint32_t radius, const run& with);
[[nodiscard]] result<void> reduce_rows(const tensor_batch& source, value_type type, row_reduction reduction,
                                       const tensor_batch& destination, const run& with);

}  // namespace tmap::ragged::simulated
