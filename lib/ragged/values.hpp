// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared by the operations that compute with elements. Each of them has a file of its own with the
// checks of its arguments, its work on the host and its launch on a device.

#include "lib/ragged/operation.hpp"
#include "lib/ragged/workspace.hpp"
#include "lib/simulator/ragged_run.hpp"
#include "lib/simulator/ragged_values.hpp"
#include "lib/support/arguments.hpp"

namespace tmap::ragged {

inline constexpr std::uint32_t f32_bytes = sizeof(float);

inline float f32_at(const simulator::element_bytes_t& elements, std::uint64_t i) {
  return simulator::load_value(value_type::f32, elements.data() + i * f32_bytes);
}

inline void set_f32(simulator::element_bytes_t& elements, std::uint64_t i, float value) {
  simulator::store_value(value_type::f32, value, elements.data() + i * f32_bytes);
}

/// Checks for one of the types of 16 and 32 bits.
inline void check_float_type(support::arguments& given, value_type type, const support::argument& name) {
  if (type == value_type::f32 || type == value_type::f16 || type == value_type::bf16) return;
  given.refuse(name, "is {found}; it must be f16 (1), bf16 (2) or f32 ({allowed})", static_cast<std::uint64_t>(type),
               static_cast<std::uint64_t>(value_type::f32));
}

template <class Launch>
[[nodiscard]] result<void> enqueue_values(batch_call which, operation op, const on_stream& where, const run& with,
                                          const Launch& launch) {
  const tensor_batch& source = op.source.tensors;
  if (const auto checked = check_workspace_of(source, where.scratch); !checked || source.count == 0) return checked;
  op.source_map = map_of(op.rule, source.element_bytes, source.rank);
  const bool stores_values = op.relation == kernels::shape_relation::equal;
  if (stores_values) op.destination_map = map_of(op.rule, op.destination.tensors.element_bytes, source.rank);
  return enqueue(which, op, where, with, launch);
}

}  // namespace tmap::ragged
