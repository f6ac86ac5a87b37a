// SPDX-License-Identifier: Apache-2.0
#include <tmap/ragged.hpp>

#include "lib/batch/ragged_arguments.hpp"
#include "lib/ragged/operation.hpp"
#include "lib/ragged/workspace.hpp"
#include "lib/simulator/ragged_operations.hpp"
#include "lib/support/trace.hpp"

namespace tmap::ragged {
namespace {

result<void> check_copy(const tensor_batch& source, const tensor_batch& destination, const run& with) {
  support::arguments given;
  check_equal_sides(given, {source, "source"}, {destination, "destination"});
  check_call(given, with);
  return given.outcome();
}

result<void> check_pack(const tensor_batch& source, const packed_buffer& destination, const run& with) {
  support::arguments given;
  check_tensors(given, source, "source");
  check_packed(given, destination, source, "destination");
  check_call(given, with);
  return given.outcome();
}

result<void> check_unpack(const packed_buffer& source, const tensor_batch& destination, const run& with) {
  support::arguments given;
  check_tensors(given, destination, "destination");
  check_packed(given, source, destination, "source");
  check_call(given, with);
  return given.outcome();
}

result<void> check_pad(const tensor_batch& source, const dense_batch& destination, const run& with) {
  support::arguments given;
  check_tensors(given, source, "source");
  if (given) check_dense(given, with_strides(destination, source), source, true, "destination");
  check_call(given, with);
  return given.outcome();
}

result<void> check_unpad(const dense_batch& source, const tensor_batch& destination, const run& with) {
  support::arguments given;
  check_tensors(given, destination, "destination");
  if (given) check_dense(given, with_strides(source, destination), destination, false, "source");
  check_call(given, with);
  return given.outcome();
}

/// A call that moves bytes as they are from one side to the other.
struct move_call {
  batch_call which;
  kernels::side source;
  kernels::side destination;
  kernels::shape_relation relation{kernels::shape_relation::equal};
  fill_value fill{};
};

result<void> enqueue_move(const move_call& call, const on_stream& where, const run& with) {
  const tensor_batch& batch = call.source.tensors;
  if (const auto checked = check_workspace_of(batch, where.scratch); !checked || batch.count == 0) return checked;
  operation op{call.source, call.destination, call.relation, 0, kernels::move_pieces(batch.element_bytes, batch.rank)};
  op.source_map = op.destination_map = map_of(op.rule, batch.element_bytes, batch.rank);
  return enqueue(call.which, op, where, with, [&](const planned_operation& plan) {
    return kernels::launch_move(plan.work, batch.element_bytes, call.fill, plan.device, where.stream.get());
  });
}

}  // namespace

result<void> copy(const tensor_batch& source, const tensor_batch& destination, const run& with) {
  const support::trace_range range{"tmap ragged copy"};
  if (const auto checked = check_copy(source, destination, with); !checked) return checked;
  const on_stream* const where = stream_of(with);
  if (where == nullptr) return simulated::copy(source, destination, with);
  return enqueue_move({batch_call::ragged_copy, tensors_of(source), tensors_of(destination)}, *where, with);
}

result<void> pack(const tensor_batch& source, const packed_buffer& destination, const run& with) {
  const support::trace_range range{"tmap ragged pack"};
  if (const auto checked = check_pack(source, destination, with); !checked) return checked;
  const on_stream* const where = stream_of(with);
  if (where == nullptr) return simulated::pack(source, destination, with);
  return enqueue_move({batch_call::ragged_pack, tensors_of(source), packed_of(destination, source)}, *where, with);
}

result<void> unpack(const packed_buffer& source, const tensor_batch& destination, const run& with) {
  const support::trace_range range{"tmap ragged unpack"};
  if (const auto checked = check_unpack(source, destination, with); !checked) return checked;
  const on_stream* const where = stream_of(with);
  if (where == nullptr) return simulated::unpack(source, destination, with);
  return enqueue_move({batch_call::ragged_unpack, packed_of(source, destination), tensors_of(destination)}, *where,
                      with);
}

result<void> pad(const tensor_batch& source, const dense_batch& destination, const fill_value& fill, const run& with) {
  const support::trace_range range{"tmap ragged pad"};
  if (const auto checked = check_pad(source, destination, with); !checked) return checked;
  const dense_batch dense = with_strides(destination, source);
  const on_stream* const where = stream_of(with);
  if (where == nullptr) return simulated::pad(source, dense, fill, with);
  return enqueue_move(
      {batch_call::ragged_pad, tensors_of(source), dense_of(dense, source), kernels::shape_relation::clipped, fill},
      *where, with);
}

result<void> unpad(const dense_batch& source, const tensor_batch& destination, const run& with) {
  const support::trace_range range{"tmap ragged unpad"};
  if (const auto checked = check_unpad(source, destination, with); !checked) return checked;
  const dense_batch dense = with_strides(source, destination);
  const on_stream* const where = stream_of(with);
  if (where == nullptr) return simulated::unpad(dense, destination, with);
  return enqueue_move({batch_call::ragged_unpad, dense_of(dense, destination), tensors_of(destination),
                       kernels::shape_relation::corner},
                      *where, with);
}

}  // namespace tmap::ragged
