// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the host can check of a ragged operation before it does anything: arguments, never what the
// tensors' arrays hold. Each operation asks these of its own arguments, before either engine is
// asked. Of an empty batch the arrays are not looked at.

#include <tmap/error.hpp>
#include <tmap/ragged.hpp>
#include <tmap/tensor_batch.hpp>

#include <cstdint>

#include "lib/support/arguments.hpp"

namespace tmap::ragged {

inline constexpr const char* unlike_other_side = "is {found}; it must be {allowed}, as on the other side";

void check_call(support::arguments& given, const run& call);

/// Count, rank, element bytes, arrays.
void check_tensors(support::arguments& given, const tensor_batch& batch, const support::argument& name);

/// One side of an operation, and what the operation calls it.
struct named_batch {
  const tensor_batch& tensors;
  const support::argument& name;
};

/// Both sides, and that their counts and ranks agree.
void check_sides(support::arguments& given, const named_batch& from, const named_batch& to);
/// The same of an operation that moves elements as they are.
void check_equal_sides(support::arguments& given, const named_batch& from, const named_batch& to);
/// The same of an operation on values of these bytes.
void check_values(support::arguments& given, const named_batch& from, std::uint32_t from_bytes, const named_batch& to,
                  std::uint32_t to_bytes);

/// A dense side with strides, as large as `batch`. A destination's elements must not share bytes.
void check_dense(support::arguments& given, const dense_batch& dense, const tensor_batch& batch, bool is_destination,
                 const support::argument& name);
void check_packed(support::arguments& given, const packed_buffer& packed, const tensor_batch& batch,
                  const support::argument& name);
void check_matrix(support::arguments& given, const row_matrix& matrix, bool is_destination,
                  const support::argument& name);

/// With all strides and the pitch given; of a batch whose rank is legal.
dense_batch with_strides(const dense_batch& dense, const tensor_batch& batch);

}  // namespace tmap::ragged
