// SPDX-License-Identifier: Apache-2.0
#include <tmap/ragged.hpp>

#include "lib/batch/ragged_arguments.hpp"
#include "lib/ragged/values.hpp"
#include "lib/support/trace.hpp"

namespace tmap::ragged {
namespace {

result<void> check_cast(const tensor_batch& source, const tensor_batch& destination, const cast_values& values,
                        const run& with) {
  const support::argument name{"values"};
  support::arguments given;
  given.enumerator(values.from, value_type::f8_e5m2, name.member("from"));
  given.enumerator(values.to, value_type::f8_e5m2, name.member("to"));
  given.optional_pointer(values.scales, name.member("scales"));
  given.optional_pointer(values.shifts, name.member("shifts"));
  check_values(given, {source, "source"}, value_bytes(values.from), {destination, "destination"},
               value_bytes(values.to));
  check_call(given, with);
  return given.outcome();
}

simulator::element_bytes_t converted(const simulator::element_bytes_t& elements, const cast_values& values,
                                     std::uint64_t tensor) {
  const float scale = values.scales == nullptr ? values.scale : values.scales[tensor];
  const float shift = values.shifts == nullptr ? values.shift : values.shifts[tensor];
  const std::uint64_t from = value_bytes(values.from);
  const std::uint64_t to = value_bytes(values.to);
  simulator::element_bytes_t made(elements.size() / from * to);
  for (std::uint64_t i = 0; i < elements.size() / from; ++i) {
    const float value = simulator::load_value(values.from, elements.data() + i * from);
    simulator::store_value(values.to, simulator::multiply_add(value, scale, shift), made.data() + i * to);
  }
  return made;
}

result<void> cast_on_host(const tensor_batch& source, const tensor_batch& destination, const cast_values& values,
                          const run& with) {
  return simulator::transform(
      batch_call::ragged_cast, source, destination, kernels::shape_relation::equal, with,
      [&](const simulator::tensor_pair& pair, simulator::element_bytes_t elements, const route_options&) {
        return result<simulator::element_bytes_t>{converted(elements, values, pair.index)};
      });
}

}  // namespace

result<void> cast(const tensor_batch& source, const tensor_batch& destination, const cast_values& values,
                  const run& with) {
  const support::trace_range range{"tmap ragged cast"};
  if (const auto checked = check_cast(source, destination, values, with); !checked) return checked;
  const on_stream* const where = stream_of(with);
  if (where == nullptr) return cast_on_host(source, destination, values, with);
  const operation op{tensors_of(source), tensors_of(destination), kernels::shape_relation::equal, 0,
                     kernels::cast_pieces(values, source.rank)};
  return enqueue_values(batch_call::ragged_cast, op, *where, with, [&](const planned_operation& plan) {
    return kernels::launch_cast(plan.work, values, plan.device, where->stream.get());
  });
}

}  // namespace tmap::ragged
