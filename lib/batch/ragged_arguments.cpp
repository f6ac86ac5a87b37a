// SPDX-License-Identifier: Apache-2.0
#include "lib/batch/ragged_arguments.hpp"

#include <tmap/detail/judge_tensors.hpp>
#include <tmap/detail/spec_arithmetic.hpp>
#include <tmap/encode_batch.hpp>

#include <algorithm>
#include <variant>

#include "lib/batch/run_arguments.hpp"
#include "lib/batch/source_arguments.hpp"

namespace tmap::ragged {
namespace {

using support::argument;
using support::arguments;
using tmap::detail::element_alignment;
using tmap::detail::max_packed_alignment;
using tmap::detail::max_stride_reach;

constexpr std::uint32_t most_element_bytes = 16;

constexpr const char* unlike_type = "is {found}; it must be {allowed}, as the elements of the operation have";
constexpr const char* overlapping = "is {found}; it must be at least {allowed}, or elements would share bytes";
constexpr const char* far_apart = "reaches over {found} bytes; dims and strides must keep it within {allowed}";

void check_arrays(arguments& given, const tensor_batch&, const patch_array& source, const argument& name) {
  given.pointer(source.patches, name.member("patches"));
}

/// Checks columns, whose strides may be null: packed.
template <class Columns>
void check_columns(arguments& given, const tensor_batch& batch, const Columns& source, const argument& name) {
  const argument dims = name.member("global_dim");
  const argument strides = stride_columns(source, name);
  given.pointer(address_column(source), address_column(source, name));
  for (std::uint32_t axis = 0; axis < batch.rank; ++axis) {
    given.pointer(source.global_dim[axis], dims[axis]);
    if (axis > 0) given.optional_pointer(stride_column(source, axis - 1), strides[axis - 1]);
  }
}

void check_arrays(arguments& given, const tensor_batch& batch, const patch_columns& source, const argument& name) {
  check_columns(given, batch, source, name);
}
void check_arrays(arguments& given, const tensor_batch& batch, const compact_columns& source, const argument& name) {
  check_columns(given, batch, source, name);
}

void check_arrays(arguments& given, const tensor_batch& batch, const ragged_rows& source, const argument& name) {
  if (batch.rank == 1) {
    given.equal(source.row_pitch_bytes, batch.element_bytes, name.member("row_pitch_bytes"),
                "is {found}; it must be {allowed}, an element's bytes, since tensors of rank 1 have no gaps");
  }
  check_offsets(given, source.offsets, name.member("offsets"));
}

}  // namespace

void check_call(arguments& given, const run& call) {
  check_run(given, call);
  const auto& policy = call.choices.policy;
  if (policy) given.enumerator(*policy, route_policy::force, argument{"choices"}.member("policy"));
}

void check_tensors(arguments& given, const tensor_batch& batch, const argument& name) {
  given.at_most(batch.count, max_batch, name.member("count"));
  given.range(batch.rank, 1, max_rank, name.member("rank"));
  given.range(batch.element_bytes, 1, most_element_bytes, name.member("element_bytes"));
  given.enumerator(batch.side, array_side::host, name.member("side"));
  if (!given || batch.count == 0) return;
  const argument tensors = name.member("tensors");
  std::visit([&](const auto& source) { check_arrays(given, batch, source, tensors); }, batch.tensors);
}

void check_dense(arguments& given, const dense_batch& dense, const tensor_batch& batch, bool is_destination,
                 const argument& name) {
  using tmap::detail::uint128;
  if (!given || batch.count == 0) return;
  const argument dims = name.member("dim");
  const argument strides = name.member("stride_bytes");
  const argument pitch = name.member("tensor_pitch_bytes");
  const std::uint64_t alignment = element_alignment(batch.element_bytes);
  given.address(dense.address, alignment, name.member("address"));
  uint128 reach = batch.element_bytes;
  const auto check_step = [&](std::uint64_t step, std::uint64_t count, const argument& of) {
    const auto extent = static_cast<std::uint64_t>(reach);
    if (is_destination && step < extent) given.refuse(of, overlapping, step, extent);
    reach += uint128{count - 1} * step;
    if (reach > max_stride_reach) given.refuse(name, far_apart, tmap::detail::saturate(reach), max_stride_reach);
  };
  for (std::uint32_t axis = 0; given && axis < batch.rank; ++axis) {
    const std::uint64_t step = axis == 0 ? batch.element_bytes : dense.stride_bytes[axis - 1];
    given.at_most(dense.dim[axis], tmap::detail::max_tensor_dim, dims[axis]);
    if (dense.dim[axis] <= 1) continue;
    if (axis > 0) given.multiple(step, alignment, strides[axis - 1]);
    check_step(step, dense.dim[axis], axis == 0 ? dims[0] : strides[axis - 1]);
  }
  given.multiple(dense.tensor_pitch_bytes, alignment, pitch);
  if (given && batch.count > 1) check_step(dense.tensor_pitch_bytes, batch.count, pitch);
}

void check_sides(arguments& given, const named_batch& from, const named_batch& to) {
  check_tensors(given, from.tensors, from.name);
  check_tensors(given, to.tensors, to.name);
  given.equal(to.tensors.count, from.tensors.count, to.name.member("count"), unlike_other_side);
  given.equal(to.tensors.rank, from.tensors.rank, to.name.member("rank"), unlike_other_side);
}

void check_equal_sides(arguments& given, const named_batch& from, const named_batch& to) {
  check_sides(given, from, to);
  given.equal(to.tensors.element_bytes, from.tensors.element_bytes, to.name.member("element_bytes"), unlike_other_side);
}

void check_values(arguments& given, const named_batch& from, std::uint32_t from_bytes, const named_batch& to,
                  std::uint32_t to_bytes) {
  check_sides(given, from, to);
  given.equal(from.tensors.element_bytes, from_bytes, from.name.member("element_bytes"), unlike_type);
  given.equal(to.tensors.element_bytes, to_bytes, to.name.member("element_bytes"), unlike_type);
}

void check_packed(arguments& given, const packed_buffer& packed, const tensor_batch& batch, const argument& name) {
  if (!given) return;
  given.power_of_two(packed.alignment, max_packed_alignment, name.member("alignment"));
  given.at_most(packed.bytes, max_stride_reach, name.member("bytes"));
  given.optional_pointer(packed.begins, name.member("begins"));
  given.pointer(packed.memory, element_alignment(batch.element_bytes), name.member("memory"));
}

void check_matrix(arguments& given, const row_matrix& matrix, bool is_destination, const argument& name) {
  if (matrix.rows == 0 || matrix.row_bytes == 0) return;
  const std::uint64_t pitches = matrix.rows - 1;
  given.address(matrix.address, 1, name.member("address"));
  given.at_most(matrix.row_bytes, max_stride_reach, name.member("row_bytes"));
  if (pitches == 0) return;
  given.at_most(matrix.pitch_bytes, max_stride_reach / pitches, name.member("pitch_bytes"));
  if (is_destination && matrix.pitch_bytes < matrix.row_bytes) {
    given.refuse(name.member("pitch_bytes"), overlapping, matrix.pitch_bytes, matrix.row_bytes);
  }
}

dense_batch with_strides(const dense_batch& dense, const tensor_batch& batch) {
  dense_batch full = dense;
  const std::uint32_t strides = batch.rank - 1;
  const bool is_packed =
      std::all_of(dense.stride_bytes, dense.stride_bytes + strides, [](std::uint64_t stride) { return stride == 0; });
  std::uint64_t extent = batch.element_bytes;
  for (std::uint32_t axis = 0; axis < batch.rank; ++axis) {
    if (axis > 0 && !is_packed) extent = full.stride_bytes[axis - 1];
    extent = tmap::detail::saturate(tmap::detail::uint128{extent} * dense.dim[axis]);
    if (axis < strides && is_packed) full.stride_bytes[axis] = extent;
  }
  if (full.tensor_pitch_bytes == 0) full.tensor_pitch_bytes = extent;
  return full;
}

}  // namespace tmap::ragged
