// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/error.hpp>
#include <tmap/ragged.hpp>
#include <tmap/tensor_batch.hpp>

#include <cstdint>

// The operations of ragged.hpp on the memory of the host, for machines without a GPU and to compare a GPU with. The
// same arguments, statuses, headers and bytes, but every address is one of this process: tensors, arrays (whatever
// `tensor_batch::side` says), statuses, header, windows, begins, scales, index. There is no stream and no workspace: a
// call returns when the work is done.
//
// A side of a tensor whose route (`choose_route`) is `tensor_map` is read and written tile by tile by the simulated
// copy engine (simulator.hpp), all others by plain loops. Policy `force` needs no GPU here.
//
// Thread-safe as far as the memory is. Each call fails with `invalid_argument` as its namesake does, and with
// `out_of_memory`; it may then have done a part of its work.

namespace tmap::ragged::on_host {

[[nodiscard]] TMAP_API result<void> copy(const tensor_batch& source, const tensor_batch& destination,
                                         const options& options = {});

[[nodiscard]] TMAP_API result<void> pack(const tensor_batch& source, const packed_buffer& destination,
                                         const options& options = {});
[[nodiscard]] TMAP_API result<void> unpack(const packed_buffer& source, const tensor_batch& destination,
                                           const options& options = {});

[[nodiscard]] TMAP_API result<void> pad(const tensor_batch& source, const dense_batch& destination,
                                        const fill_value& fill, const options& options = {});
[[nodiscard]] TMAP_API result<void> unpad(const dense_batch& source, const tensor_batch& destination,
                                          const options& options = {});

[[nodiscard]] TMAP_API result<void> gather_rows(const row_matrix& source, const row_index& index,
                                                const row_matrix& destination, const options& options = {});
/// Of equal numbers the last one wins.
[[nodiscard]] TMAP_API result<void> scatter_rows(const row_matrix& source, const row_index& index,
                                                 const row_matrix& destination, const options& options = {});

[[nodiscard]] TMAP_API result<void> transpose(const tensor_batch& source, const tensor_batch& destination,
                                              const options& options = {});

[[nodiscard]] TMAP_API result<void> cast(const tensor_batch& source, const tensor_batch& destination,
                                         const cast_values& values, const options& options = {});

[[nodiscard]] TMAP_API result<void> saxpy(float a, const tensor_batch& x, const tensor_batch& y,
                                          const options& options = {});

[[nodiscard]] TMAP_API result<void> max_pool_1d(const tensor_batch& source, const tensor_batch& destination,
                                                std::uint32_t radius, const options& options = {});

[[nodiscard]] TMAP_API result<void> reduce_rows(const tensor_batch& source, value_type type, row_reduction reduction,
                                                const tensor_batch& destination, const options& options = {});

}  // namespace tmap::ragged::on_host
