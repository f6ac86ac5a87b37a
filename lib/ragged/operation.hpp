// SPDX-License-Identifier: Apache-2.0
#pragma once

// What all batched operations have in common: two sides, judged and planned by one launch or two,
// then a kernel that works.

#include <tmap/error.hpp>
#include <tmap/ragged.hpp>
#include <tmap/tensor_spec.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>
#include <variant>

#include "kernels/ragged_launch.hpp"
#include "lib/encode/reported_call.hpp"
#include "lib/support/check.hpp"

namespace tmap::ragged {

/// One operation, its arguments checked, of at least one tensor.
struct operation {
  kernels::side source;
  kernels::side destination;
  kernels::shape_relation relation{kernels::shape_relation::equal};
  std::uint32_t kept_axes{};
  kernels::piece_rule rule{};
  /// What the maps of each side have in common; none: the operation, or this side of it, has no use
  /// for maps.
  std::optional<tensor_spec> source_map{};
  std::optional<tensor_spec> destination_map{};
};

struct planned_operation {
  kernels::planned_work work;
  kernels::device_shape device;
};

/// Where the call is to run; null: on the host.
inline const on_stream* stream_of(const run& with) {
  return std::get_if<on_stream>(&with.where);
}

/// The policy in force. Fails with `invalid_argument` when the environment names none, and with
/// `compute_capability_too_low` when it is `force` and the current device has no copy engine.
[[nodiscard]] result<route_policy> policy_of(const choices& made);

[[nodiscard]] result<kernels::device_shape> current_device_shape();

kernels::side tensors_of(const tensor_batch& batch);
/// Dims and strides in the order of `batch`, which has the same elements and rank.
kernels::side dense_of(const dense_batch& dense, const tensor_batch& batch);
kernels::side packed_of(const packed_buffer& packed, const tensor_batch& batch);

/// Boxes of the rule, where it has one and where maps have elements of this size.
std::optional<tensor_spec> map_of(const kernels::piece_rule& rule, std::uint32_t element_bytes, std::uint32_t rank);

/// Enqueues all but the kernel that works.
[[nodiscard]] result<planned_operation> enqueue_plan(const operation& op, const on_stream& where, const run& with,
                                                     const fault_sink& faults);

/// Enqueues all of the operation; `launch(plan)` the kernel that works.
template <class Launch>
[[nodiscard]] result<void> enqueue(batch_call which, const operation& op, const on_stream& where, const run& with,
                                   const Launch& launch) {
  const reported_call call{which, op.source.tensors.count, with.check, where.stream.get()};
  return report_call(call, [&](const fault_sink& faults) -> result<void> {
    const result<planned_operation> plan = enqueue_plan(op, where, with, faults);
    if (!plan) return failure(plan.error());
    TMAP_TRY_CUDA(launch(*plan));
    return {};
  });
}

}  // namespace tmap::ragged
