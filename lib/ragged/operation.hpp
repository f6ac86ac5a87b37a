// SPDX-License-Identifier: Apache-2.0
#pragma once

// All batched operations have this in common: one launch or two judge and plan both sides, then a
// kernel works.

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

/// One operation on at least one tensor. Its arguments are checked.
struct operation {
  kernels::side source;
  kernels::side destination;
  kernels::shape_relation relation{kernels::shape_relation::equal};
  std::uint32_t kept_axes{};
  kernels::piece_rule rule{};
  /// The common part of the maps of each side. A side that has no use for maps has none.
  std::optional<tensor_spec> source_map{};
  std::optional<tensor_spec> destination_map{};
  std::optional<kernels::scale_side> scales{};  ///< only `quantize` has some
};

struct planned_operation {
  kernels::planned_work work;
  kernels::device_shape device;
};

/// Returns the stream on which the call runs, or null for the host.
inline const on_stream* stream_of(const run& with) {
  return std::get_if<on_stream>(&with.where);
}

/// Returns the policy in force. Fails with `invalid_argument` when the environment names none, and
/// with `compute_capability_too_low` when it is `force` and the current device has no copy engine.
[[nodiscard]] result<route_policy> policy_of(const choices& made);

[[nodiscard]] result<kernels::device_shape> current_device_shape();

kernels::side tensors_of(const tensor_batch& batch);
/// Returns dims and strides in the order of `batch`, which has the same elements and rank.
kernels::side dense_of(const dense_batch& dense, const tensor_batch& batch);
kernels::side packed_of(const packed_buffer& packed, const tensor_batch& batch);

/// Returns a map with the rule's boxes, if it has one and maps have elements of this size.
std::optional<tensor_spec> map_of(const kernels::piece_rule& rule, std::uint32_t element_bytes, std::uint32_t rank);

/// Enqueues all but the kernel that works.
[[nodiscard]] result<planned_operation> enqueue_plan(const operation& op, const on_stream& where, const run& with,
                                                     const fault_sink& faults);

/// Enqueues all of the operation. `launch(plan)` enqueues the kernel that works.
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
