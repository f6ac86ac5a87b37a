// SPDX-License-Identifier: Apache-2.0
#include <tmap/ragged.hpp>

#include "lib/batch/ragged_arguments.hpp"
#include "lib/ragged/operation.hpp"
#include "lib/ragged/workspace.hpp"
#include "lib/support/trace.hpp"

// Operations that compute with the elements.

namespace tmap::ragged {
namespace {

template <class Launch>
result<void> enqueue_values(batch_call which, operation op, const workspace& scratch, cudaStream_t stream,
                            const options& with, const Launch& launch) {
  const tensor_batch& source = op.source.tensors;
  if (const auto checked = check_workspace_of(source, scratch); !checked || source.count == 0) return checked;
  op.source_map = map_of(op.rule, source.element_bytes, source.rank);
  const bool stores_values = op.relation == kernels::shape_relation::equal;
  if (stores_values) op.destination_map = map_of(op.rule, op.destination.tensors.element_bytes, source.rank);
  return enqueue(which, op, scratch, stream, with, launch);
}

}  // namespace

result<void> cast_async(const tensor_batch& source, const tensor_batch& destination, const cast_values& values,
                        workspace scratch, cuda::stream_ref stream, const options& with) {
  const support::trace_range range{"tmap ragged cast"};
  if (const auto checked = check_cast(source, destination, values, with); !checked) return checked;
  const operation op{tensors_of(source), tensors_of(destination), kernels::shape_relation::equal, 0,
                     kernels::cast_pieces(values, source.rank)};
  return enqueue_values(batch_call::ragged_cast, op, scratch, stream.get(), with, [&](const planned_operation& plan) {
    return kernels::launch_cast(plan.work, values, plan.device, stream.get());
  });
}

result<void> saxpy_async(float a, const tensor_batch& x, const tensor_batch& y, workspace scratch,
                         cuda::stream_ref stream, const options& with) {
  const support::trace_range range{"tmap ragged saxpy"};
  if (const auto checked = check_saxpy(x, y, with); !checked) return checked;
  const operation op{tensors_of(x), tensors_of(y), kernels::shape_relation::equal, 0, kernels::saxpy_pieces(x.rank)};
  return enqueue_values(batch_call::ragged_saxpy, op, scratch, stream.get(), with, [&](const planned_operation& plan) {
    return kernels::launch_saxpy(plan.work, a, plan.device, stream.get());
  });
}

result<void> max_pool_1d_async(const tensor_batch& source, const tensor_batch& destination, std::uint32_t radius,
                               workspace scratch, cuda::stream_ref stream, const options& with) {
  const support::trace_range range{"tmap ragged max pool"};
  if (const auto checked = check_max_pool_1d(source, destination, with); !checked) return checked;
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
  if (const auto checked = check_reduce_rows(source, type, reduction, destination, with); !checked) return checked;
  const operation op{tensors_of(source), tensors_of(destination), kernels::shape_relation::reduced, 1,
                     kernels::reduce_pieces(type, source.rank)};
  return enqueue_values(batch_call::ragged_reduce_rows, op, scratch, stream.get(), with,
                        [&](const planned_operation& plan) {
                          return kernels::launch_reduce_rows(plan.work, type, reduction, plan.device, stream.get());
                        });
}

}  // namespace tmap::ragged
