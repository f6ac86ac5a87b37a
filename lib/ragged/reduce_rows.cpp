// SPDX-License-Identifier: Apache-2.0
#include <tmap/detail/reduction_order.hpp>
#include <tmap/ragged.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "lib/batch/ragged_arguments.hpp"
#include "lib/ragged/values.hpp"
#include "lib/support/trace.hpp"

namespace tmap::ragged {
namespace {

result<void> check_reduce_rows(const tensor_batch& source, value_type type, row_reduction reduction,
                               const tensor_batch& destination, const run& with) {
  support::arguments given;
  check_float_type(given, type, "type");
  given.enumerator(reduction, row_reduction::max, "reduction");
  check_values(given, {source, "source"}, value_bytes(type), {destination, "destination"}, f32_bytes);
  check_call(given, with);
  return given.outcome();
}

float combine(row_reduction reduction, float a, float b) {
  return reduction == row_reduction::sum ? simulator::canonical(a + b) : simulator::larger(a, b);
}

/// Reduces `value(i)` of one slice of a row, in the order of detail/reduction_order.hpp.
template <class Value>
float reduce_slice(row_reduction reduction, std::uint64_t begin, std::uint64_t end, Value&& value) {
  constexpr std::uint32_t lanes = 32;
  const float identity = reduction == row_reduction::sum ? -0.0f : -std::numeric_limits<float>::infinity();
  std::array<float, lanes> running;
  running.fill(identity);
  for (std::uint64_t i = begin; i < end; ++i) {
    running[i % lanes] = combine(reduction, running[i % lanes], value(i));
  }
  for (std::uint32_t distance = lanes / 2; distance > 0; distance /= 2) {
    const std::array<float, lanes> before = running;
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      running[lane] = combine(reduction, before[lane], before[lane ^ distance]);
    }
  }
  return running[0];
}

template <class Value>
float reduce_row(row_reduction reduction, std::uint64_t length, Value&& value) {
  const std::uint64_t step = tmap::detail::slice_elements(length);
  std::vector<float> slices;
  for (std::uint64_t begin = 0; begin < length; begin += step) {
    slices.push_back(reduce_slice(reduction, begin, std::min(begin + step, length), value));
  }
  if (slices.size() == 1) return slices.front();
  return reduce_slice(reduction, 0, slices.size(), [&](std::uint64_t i) { return slices[i]; });
}

result<void> reduce_rows_on_host(const tensor_batch& source, value_type type, row_reduction reduction,
                                 const tensor_batch& destination, const run& with) {
  const std::uint64_t item = value_bytes(type);
  const auto compute = [&](const simulator::tensor_pair& pair, simulator::element_bytes_t elements,
                           const route_options&) {
    const std::uint64_t length = pair.source.dim[0];
    simulator::element_bytes_t made(elements.size() / item / length * f32_bytes);
    for (std::uint64_t row = 0; row < made.size() / f32_bytes; ++row) {
      const std::byte* const first = elements.data() + row * length * item;
      const float reduced =
          reduce_row(reduction, length, [&](std::uint64_t i) { return simulator::load_value(type, first + i * item); });
      simulator::store_value(value_type::f32, reduced, made.data() + row * f32_bytes);
    }
    return result<simulator::element_bytes_t>{std::move(made)};
  };
  return simulator::transform(batch_call::ragged_reduce_rows, source, destination, kernels::shape_relation::reduced,
                              with, compute);
}

}  // namespace

result<void> reduce_rows(const tensor_batch& source, value_type type, row_reduction reduction,
                         const tensor_batch& destination, const run& with) {
  const support::trace_range range{"tmap ragged reduce rows"};
  if (const auto checked = check_reduce_rows(source, type, reduction, destination, with); !checked) return checked;
  const on_stream* const where = stream_of(with);
  if (where == nullptr) return reduce_rows_on_host(source, type, reduction, destination, with);
  const operation op{tensors_of(source), tensors_of(destination), kernels::shape_relation::reduced, 1,
                     kernels::reduce_pieces(type, source.rank)};
  return enqueue_values(batch_call::ragged_reduce_rows, op, *where, with, [&](const planned_operation& plan) {
    return kernels::launch_reduce_rows(plan.work, type, reduction, plan.device, where->stream.get());
  });
}

}  // namespace tmap::ragged
