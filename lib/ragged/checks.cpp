// SPDX-License-Identifier: Apache-2.0
#include "lib/ragged/checks.hpp"

#include <tmap/detail/judge_tensors.hpp>
#include <tmap/detail/spec_arithmetic.hpp>
#include <tmap/encode_batch.hpp>
#include <tmap/map_template.hpp>

#include <algorithm>
#include <variant>

#include "lib/encode/batch_checks.hpp"
#include "lib/encode/device.hpp"
#include "lib/support/checking.hpp"

namespace tmap::ragged {
namespace {

using tmap::detail::element_alignment;
using tmap::detail::max_packed_alignment;
using tmap::detail::max_stride_reach;

constexpr std::uint32_t most_element_bytes = 16;

result<void> check_range(std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (value < least) return invalid_argument(value, least);
  if (value > most) return invalid_argument(value, most);
  return {};
}

result<void> check_multiple(std::uint64_t value, std::uint64_t divisor) {
  if (value % divisor != 0) return invalid_argument(value, divisor);
  return {};
}

result<void> check_arrays(const tensor_batch&, const patch_array& source) {
  return check_device_array(source.patches, alignof(map_patch));
}

/// Strides may be null: packed.
template <class Columns>
result<void> check_columns(const tensor_batch& batch, const Columns& source) {
  result<void> checked = check_device_array(address_column(source), alignof(decltype(*source.global_dim[0])));
  for (std::uint32_t axis = 0; checked && axis < batch.rank; ++axis) {
    checked = check_device_array(source.global_dim[axis], alignof(decltype(*source.global_dim[0])));
    if (!checked || axis == 0) continue;
    checked = check_optional_array(stride_column(source, axis - 1), alignof(decltype(*source.global_dim[0])));
  }
  return checked;
}

result<void> check_arrays(const tensor_batch& batch, const patch_columns& source) {
  return check_columns(batch, source);
}
result<void> check_arrays(const tensor_batch& batch, const compact_columns& source) {
  return check_columns(batch, source);
}

/// Elements of rank 1 follow each other: their pitch is no choice.
template <class Offset>
result<void> check_arrays(const tensor_batch& batch, const ragged_rows<Offset>& source) {
  const auto format = static_cast<std::uint64_t>(source.format);
  if (const auto checked = check_range(format, 0, static_cast<std::uint64_t>(offset_format::sizes)); !checked) {
    return checked;
  }
  if (batch.rank == 1 && source.row_pitch_bytes != batch.element_bytes) {
    return invalid_argument(source.row_pitch_bytes, batch.element_bytes);
  }
  return check_device_array(source.offsets, alignof(Offset));
}

}  // namespace

result<void> check_options(const options& with) {
  if (const auto checked = support::is_checked(with.check); !checked) return failure(checked.error());
  if (with.policy) {
    const auto policy = static_cast<std::uint64_t>(*with.policy);
    if (const auto checked = check_range(policy, 0, static_cast<std::uint64_t>(route_policy::force)); !checked) {
      return checked;
    }
  }
  if (with.window_count != 0) {
    if (const auto checked = check_device_array(with.windows, alignof(address_window)); !checked) return checked;
  }
  if (const auto checked = check_optional_array(with.statuses, alignof(tensor_status)); !checked) return checked;
  return check_optional_array(with.header, alignof(batch_header));
}

result<void> check_batch(const tensor_batch& batch) {
  if (const auto checked = check_range(batch.count, 0, max_batch); !checked) return checked;
  if (const auto checked = check_range(batch.rank, 1, max_rank); !checked) return checked;
  if (const auto checked = check_range(batch.element_bytes, 1, most_element_bytes); !checked) return checked;
  const auto side = static_cast<std::uint64_t>(batch.side);
  if (const auto checked = check_range(side, 0, static_cast<std::uint64_t>(array_side::host)); !checked) return checked;
  if (batch.count == 0) return {};
  return std::visit([&](const auto& source) { return check_arrays(batch, source); }, batch.tensors);
}

result<void> check_pair(const tensor_batch& source, const tensor_batch& destination, bool same_elements) {
  if (const auto checked = check_batch(source); !checked) return checked;
  if (const auto checked = check_batch(destination); !checked) return checked;
  if (destination.count != source.count) return invalid_argument(destination.count, source.count);
  if (destination.rank != source.rank) return invalid_argument(destination.rank, source.rank);
  if (same_elements && destination.element_bytes != source.element_bytes) {
    return invalid_argument(destination.element_bytes, source.element_bytes);
  }
  return {};
}

result<void> check_packed(const packed_buffer& packed, std::uint32_t element_bytes) {
  if (const auto checked = check_range(packed.alignment, 1, max_packed_alignment); !checked) return checked;
  if ((packed.alignment & (packed.alignment - 1)) != 0) return invalid_argument(packed.alignment, max_packed_alignment);
  if (const auto checked = check_range(packed.bytes, 0, max_stride_reach); !checked) return checked;
  if (const auto checked = check_optional_array(packed.begins, alignof(std::int64_t)); !checked) return checked;
  return check_device_array(packed.memory, element_alignment(element_bytes));
}

result<void> check_workspace_of(const tensor_batch& batch, const workspace& scratch) {
  const result<std::uint64_t> needed = workspace_bytes(batch.count, batch.rank);
  if (!needed) return failure(needed.error());
  return check_workspace(scratch.memory, scratch.bytes, *needed);
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

result<void> check_dense(const dense_batch& dense, const tensor_batch& batch, bool is_destination) {
  using tmap::detail::uint128;
  const std::uint64_t alignment = element_alignment(batch.element_bytes);
  if (dense.address == 0) return invalid_argument(0, alignment);
  if (const auto checked = check_multiple(dense.address, alignment); !checked) return checked;
  if (const auto checked = check_multiple(dense.tensor_pitch_bytes, alignment); !checked) return checked;
  uint128 reach = batch.element_bytes;
  for (std::uint32_t axis = 0; axis < batch.rank; ++axis) {
    const std::uint64_t step = axis == 0 ? batch.element_bytes : dense.stride_bytes[axis - 1];
    if (const auto checked = check_range(dense.dim[axis], 0, tmap::detail::max_tensor_dim); !checked) return checked;
    if (dense.dim[axis] <= 1) continue;
    if (const auto checked = check_multiple(step, alignment); !checked) return checked;
    if (is_destination && step < reach) return invalid_argument(step, static_cast<std::uint64_t>(reach));
    reach += uint128{dense.dim[axis] - 1} * step;
    if (reach > max_stride_reach) return invalid_argument(tmap::detail::saturate(reach), max_stride_reach);
  }
  if (is_destination && batch.count > 1 && dense.tensor_pitch_bytes < reach) {
    return invalid_argument(dense.tensor_pitch_bytes, static_cast<std::uint64_t>(reach));
  }
  reach += uint128{dense.tensor_pitch_bytes} * (batch.count - 1);
  if (reach > max_stride_reach) return invalid_argument(tmap::detail::saturate(reach), max_stride_reach);
  return {};
}

}  // namespace tmap::ragged
