// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks the arguments of a ragged operation on the host, for both engines, but never the contents
// of the tensors' arrays. The arrays of an empty batch are not checked.

#include <tmap/error.hpp>
#include <tmap/ragged.hpp>
#include <tmap/tensor_batch.hpp>

#include <cstdint>

#include "lib/support/arguments.hpp"

namespace tmap::ragged {

inline constexpr const char* unlike_other_side = "is {found}; it must be {allowed}, as on the other side";

void check_call(support::arguments& given, const run& call);

/// Checks count, rank, element bytes and arrays.
void check_tensors(support::arguments& given, const tensor_batch& batch, const support::argument& name);

/// One side of an operation, and its name in that operation.
struct named_batch {
  const tensor_batch& tensors;
  const support::argument& name;
};

/// Checks both sides, and that their counts and ranks are equal.
void check_sides(support::arguments& given, const named_batch& from, const named_batch& to);
/// Checks the sides of an operation that moves elements unchanged.
void check_equal_sides(support::arguments& given, const named_batch& from, const named_batch& to);
/// Checks the sides of an operation on values of these bytes.
void check_values(support::arguments& given, const named_batch& from, std::uint32_t from_bytes, const named_batch& to,
                  std::uint32_t to_bytes);

/// Checks a dense side with all strides given, for the tensors of `batch`. A destination's elements
/// must not share bytes.
void check_dense(support::arguments& given, const dense_batch& dense, const tensor_batch& batch, bool is_destination,
                 const support::argument& name);
void check_packed(support::arguments& given, const packed_buffer& packed, const tensor_batch& batch,
                  const support::argument& name);
void check_matrix(support::arguments& given, const row_matrix& matrix, bool is_destination,
                  const support::argument& name);

/// Returns the batch with all strides and the pitch filled in. The rank must be legal.
dense_batch with_strides(const dense_batch& dense, const tensor_batch& batch);

}  // namespace tmap::ragged
