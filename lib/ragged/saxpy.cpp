// SPDX-License-Identifier: Apache-2.0
#include <tmap/ragged.hpp>

#include "lib/batch/ragged_arguments.hpp"
#include "lib/ragged/values.hpp"
#include "lib/support/trace.hpp"

namespace tmap::ragged {
namespace {

result<void> check_saxpy(const tensor_batch& x, const tensor_batch& y, const run& with) {
  support::arguments given;
  check_values(given, {x, "x"}, f32_bytes, {y, "y"}, f32_bytes);
  check_call(given, with);
  return given.outcome();
}

result<void> saxpy_on_host(float a, const tensor_batch& x, const tensor_batch& y, const run& with) {
  const auto compute = [&](const simulator::tensor_pair& pair, simulator::element_bytes_t elements,
                           const route_options& routes) {
    auto sums = simulator::read_elements(pair.destination, routes);
    for (std::uint64_t i = 0; sums && i < elements.size() / f32_bytes; ++i) {
      set_f32(*sums, i, simulator::multiply_add(a, f32_at(elements, i), f32_at(*sums, i)));
    }
    return sums;
  };
  return simulator::transform(batch_call::ragged_saxpy, x, y, kernels::shape_relation::equal, with, compute);
}

}  // namespace

result<void> saxpy(float a, const tensor_batch& x, const tensor_batch& y, const run& with) {
  const support::trace_range range{"tmap ragged saxpy"};
  if (const auto checked = check_saxpy(x, y, with); !checked) return checked;
  const on_stream* const where = stream_of(with);
  if (where == nullptr) return saxpy_on_host(a, x, y, with);
  const operation op{tensors_of(x), tensors_of(y), kernels::shape_relation::equal, 0, kernels::saxpy_pieces(x.rank)};
  return enqueue_values(batch_call::ragged_saxpy, op, *where, with, [&](const planned_operation& plan) {
    return kernels::launch_saxpy(plan.work, a, plan.device, where->stream.get());
  });
}

}  // namespace tmap::ragged
