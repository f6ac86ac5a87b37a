// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the host can check of an operation before anything is enqueued: arguments, never what device memory holds.

#include <tmap/error.hpp>
#include <tmap/ragged.hpp>
#include <tmap/tensor_batch.hpp>

#include <cstdint>

namespace tmap::ragged {

result<void> check_options(const options& with);
/// Count, rank, element bytes, arrays. Of an empty batch nothing but these numbers.
result<void> check_batch(const tensor_batch& batch);
/// Both sides, and that counts, ranks and (`same_elements`) element bytes agree.
result<void> check_pair(const tensor_batch& source, const tensor_batch& destination, bool same_elements = true);
result<void> check_packed(const packed_buffer& packed, std::uint32_t element_bytes);
result<void> check_workspace_of(const tensor_batch& batch, const workspace& scratch);

/// With all strides and the pitch given.
dense_batch with_strides(const dense_batch& dense, const tensor_batch& batch);
/// A dense side with strides, as large as `batch`. A destination's elements must not share bytes.
result<void> check_dense(const dense_batch& dense, const tensor_batch& batch, bool is_destination);

}  // namespace tmap::ragged
