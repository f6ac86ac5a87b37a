// SPDX-License-Identifier: Apache-2.0
#include <tmap/ragged.hpp>

#include "lib/encode/batch_checks.hpp"
#include "lib/encode/device.hpp"
#include "lib/ragged/checks.hpp"
#include "lib/ragged/operation.hpp"
#include "lib/support/trace.hpp"

// Operations that compute with the elements.

namespace tmap::ragged {
namespace {

constexpr std::uint32_t f32_bytes = 4;

result<void> check_value_type(value_type type, value_type most) {
  if (type > most) return invalid_argument(static_cast<std::uint64_t>(type), static_cast<std::uint64_t>(most));
  return {};
}

/// Both sides of an operation on values of these sizes, and what all of them check.
struct value_call {
  const tensor_batch& source;
  const tensor_batch& destination;
  std::uint32_t source_bytes;
  std::uint32_t destination_bytes;
};

result<void> check_call(const value_call& call, const workspace& scratch, const options& with) {
  if (const auto checked = check_options(with); !checked) return checked;
  if (const auto checked = check_pair(call.source, call.destination, false); !checked) return checked;
  if (call.source.element_bytes != call.source_bytes) {
    return invalid_argument(call.source.element_bytes, call.source_bytes);
  }
  if (call.destination.element_bytes != call.destination_bytes) {
    return invalid_argument(call.destination.element_bytes, call.destination_bytes);
  }
  return call.source.count == 0 ? result<void>{} : check_workspace_of(call.source, scratch);
}

template <class Launch>
result<void> enqueue_values(batch_call which, operation op, const workspace& scratch, cudaStream_t stream,
                            const options& with, const Launch& launch) {
  const tensor_batch& source = op.source.tensors;
  op.source_map = map_of(op.rule, source.element_bytes, source.rank);
  const bool stores_values = op.relation == kernels::shape_relation::equal;
  if (stores_values) op.destination_map = map_of(op.rule, op.destination.tensors.element_bytes, source.rank);
  return enqueue(which, op, scratch, stream, with, launch);
}

}  // namespace

result<void> cast_async(const tensor_batch& source, const tensor_batch& destination, const cast_values& values,
                        workspace scratch, cuda::stream_ref stream, const options& with) {
  const support::trace_range range{"tmap ragged cast"};
  for (const value_type type : {values.from, values.to}) {
    if (const auto checked = check_value_type(type, value_type::f8_e5m2); !checked) return checked;
  }
  for (const float* const factors : {values.scales, values.shifts}) {
    if (const auto checked = check_optional_array(factors, alignof(float)); !checked) return checked;
  }
  const value_call call{source, destination, value_bytes(values.from), value_bytes(values.to)};
  if (const auto checked = check_call(call, scratch, with); !checked || source.count == 0) return checked;
  const operation op{tensors_of(source), tensors_of(destination), kernels::shape_relation::equal, 0,
                     kernels::cast_pieces(values, source.rank)};
  return enqueue_values(batch_call::ragged_cast, op, scratch, stream.get(), with, [&](const planned_operation& plan) {
    return kernels::launch_cast(plan.work, values, plan.device, stream.get());
  });
}

result<void> saxpy_async(float a, const tensor_batch& x, const tensor_batch& y, workspace scratch,
                         cuda::stream_ref stream, const options& with) {
  const support::trace_range range{"tmap ragged saxpy"};
  const value_call call{x, y, f32_bytes, f32_bytes};
  if (const auto checked = check_call(call, scratch, with); !checked || x.count == 0) return checked;
  const operation op{tensors_of(x), tensors_of(y), kernels::shape_relation::equal, 0, kernels::saxpy_pieces(x.rank)};
  return enqueue_values(batch_call::ragged_saxpy, op, scratch, stream.get(), with, [&](const planned_operation& plan) {
    return kernels::launch_saxpy(plan.work, a, plan.device, stream.get());
  });
}

result<void> max_pool_1d_async(const tensor_batch& source, const tensor_batch& destination, std::uint32_t radius,
                               workspace scratch, cuda::stream_ref stream, const options& with) {
  const support::trace_range range{"tmap ragged max pool"};
  const value_call call{source, destination, f32_bytes, f32_bytes};
  if (const auto checked = check_call(call, scratch, with); !checked || source.count == 0) return checked;
  const operation op{tensors_of(source), tensors_of(destination), kernels::shape_relation::equal, 1,
                     kernels::max_pool_pieces(radius, source.rank)};
  return enqueue_values(batch_call::ragged_max_pool_1d, op, scratch, stream.get(), with,
                        [&](const planned_operation& plan) {
                          return kernels::launch_max_pool_1d(plan.work, radius, plan.device, stream.get());
                        });
}

result<void> reduce_rows_async(const tensor_batch& source, value_type type, row_reduction reduction,
                               const tensor_batch& destination, workspace scratch, cuda::stream_ref stream,
                               const options& with) {
  const support::trace_range range{"tmap ragged reduce rows"};
  if (type == value_type::u8) return invalid_argument(0, static_cast<std::uint64_t>(value_type::f32));
  if (const auto checked = check_value_type(type, value_type::f32); !checked) return checked;
  if (reduction > row_reduction::max) {
    return invalid_argument(static_cast<std::uint64_t>(reduction), static_cast<std::uint64_t>(row_reduction::max));
  }
  const value_call call{source, destination, value_bytes(type), f32_bytes};
  if (const auto checked = check_call(call, scratch, with); !checked || source.count == 0) return checked;
  const operation op{tensors_of(source), tensors_of(destination), kernels::shape_relation::reduced, 1,
                     kernels::reduce_pieces(type, source.rank)};
  return enqueue_values(batch_call::ragged_reduce_rows, op, scratch, stream.get(), with,
                        [&](const planned_operation& plan) {
                          return kernels::launch_reduce_rows(plan.work, type, reduction, plan.device, stream.get());
                        });
}

}  // namespace tmap::ragged
