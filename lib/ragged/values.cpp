// SPDX-License-Identifier: Apache-2.0
#include <tmap/ragged.hpp>

#include "lib/batch/ragged_arguments.hpp"
#include "lib/ragged/operation.hpp"
#include "lib/ragged/workspace.hpp"
#include "lib/simulator/ragged_operations.hpp"
#include "lib/support/trace.hpp"

// Operations that compute with the elements.

namespace tmap::ragged {
namespace {

template <class Launch>
result<void> enqueue_values(batch_call which, operation op, const on_stream& where, const run& with,
                            const Launch& launch) {
  const tensor_batch& source = op.source.tensors;
  if (const auto checked = check_workspace_of(source, where.scratch); !checked || source.count == 0) return checked;
  op.source_map = map_of(op.rule, source.element_bytes, source.rank);
  const bool stores_values = op.relation == kernels::shape_relation::equal;
  if (stores_values) op.destination_map = map_of(op.rule, op.destination.tensors.element_bytes, source.rank);
  return enqueue(which, op, where, with, launch);
}

}  // namespace

result<void> cast(const tensor_batch& source, const tensor_batch& destination, const cast_values& values,
                  const run& with) {
  const support::trace_range range{"tmap ragged cast"};
  if (const auto checked = check_cast(source, destination, values, with); !checked) return checked;
  const on_stream* const where = stream_of(with);
  if (where == nullptr) return simulated::cast(source, destination, values, with);
  const operation op{tensors_of(source), tensors_of(destination), kernels::shape_relation::equal, 0,
                     kernels::cast_pieces(values, source.rank)};
  return enqueue_values(batch_call::ragged_cast, op, *where, with, [&](const planned_operation& plan) {
    return kernels::launch_cast(plan.work, values, plan.device, where->stream.get());
  });
}

result<void> saxpy(float a, const tensor_batch& x, const tensor_batch& y, const run& with) {
  const support::trace_range range{"tmap ragged saxpy"};
  if (const auto checked = check_saxpy(x, y, with); !checked) return checked;
  const on_stream* const where = stream_of(with);
  if (where == nullptr) return simulated::saxpy(a, x, y, with);
  const operation op{tensors_of(x), tensors_of(y), kernels::shape_relation::equal, 0, kernels::saxpy_pieces(x.rank)};
  return enqueue_values(batch_call::ragged_saxpy, op, *where, with, [&](const planned_operation& plan) {
    return kernels::launch_saxpy(plan.work, a, plan.device, where->stream.get());
  });
}

result<void> max_pool_1d(const tensor_batch& source, const tensor_batch& destination, std::uint32_t radius,
                         const run& with) {
  const support::trace_range range{"tmap ragged max pool"};
  if (const auto checked = check_max_pool_1d(source, destination, with); !checked) return checked;
  const on_stream* const where = stream_of(with);
  if (where == nullptr) return simulated::max_pool_1d(source, destination, radius, with);
  const operation op{tensors_of(source), tensors_of(destination), kernels::shape_relation::equal, 1,
                     kernels::max_pool_pieces(radius, source.rank)};
  return enqueue_values(batch_call::ragged_max_pool_1d, op, *where, with, [&](const planned_operation& plan) {
    return kernels::launch_max_pool_1d(plan.work, radius, plan.device, where->stream.get());
  });
}

result<void> reduce_rows(const tensor_batch& source, value_type type, row_reduction reduction,
                         const tensor_batch& destination, const run& with) {
  const support::trace_range range{"tmap ragged reduce rows"};
  if (const auto checked = check_reduce_rows(source, type, reduction, destination, with); !checked) return checked;
  const on_stream* const where = stream_of(with);
  if (where == nullptr) return simulated::reduce_rows(source, type, reduction, destination, with);
  const operation op{tensors_of(source), tensors_of(destination), kernels::shape_relation::reduced, 1,
                     kernels::reduce_pieces(type, source.rank)};
  return enqueue_values(batch_call::ragged_reduce_rows, op, *where, with, [&](const planned_operation& plan) {
    return kernels::launch_reduce_rows(plan.work, type, reduction, plan.device, where->stream.get());
  });
}

}  // namespace tmap::ragged
