// SPDX-License-Identifier: Apache-2.0
#include <tmap/detail/column_order.hpp>
#include <tmap/ragged.hpp>

#include <algorithm>
#include <array>

#include "lib/batch/ragged_arguments.hpp"
#include "lib/ragged/values.hpp"
#include "lib/support/trace.hpp"

namespace tmap::ragged {
namespace {

using simulator::element_bytes_t;
using simulator::tensor_pair;

result<void> check_column_sums(const tensor_batch& source, value_type from, const tensor_batch& destination,
                               value_type to, const run& with) {
  support::arguments given;
  check_float_type(given, from, "from");
  if (to != value_type::f32) {
    given.equal(static_cast<std::uint64_t>(to), static_cast<std::uint64_t>(from), "to",
                "is {found}; it must be {allowed}, the type of the source, or f32 (3)");
  }
  check_values(given, {source, "source"}, value_bytes(from), {destination, "destination"}, value_bytes(to));
  given.range(source.rank, 2, 2, "source.rank");
  check_call(given, with);
  return given.outcome();
}

/// Adds up `value(row)` of the rows from `begin` to `end - 1`, in the order of
/// detail/column_order.hpp.
template <class Value>
float sum_slice(std::uint64_t begin, std::uint64_t end, Value&& value) {
  constexpr std::uint32_t group = tmap::detail::column_values / tmap::detail::column_groups;
  static_assert(group == 4);
  using simulator::canonical;
  std::array<float, tmap::detail::column_values> running{};
  for (std::uint64_t row = begin; row < end; ++row) {
    float& sum = running[(row - begin) % running.size()];
    sum = canonical(sum + value(row));
  }
  float all = 0;
  for (std::uint32_t k = 0; k < running.size(); k += group) {
    const float even = canonical(running[k] + running[k + 2]);
    const float odd = canonical(running[k + 1] + running[k + 3]);
    all = canonical(all + canonical(even + odd));
  }
  return all;
}

template <class Value>
float sum_column(std::uint64_t rows, Value&& value) {
  const std::uint64_t each = tmap::detail::column_slice_rows(rows);
  float all = 0;
  for (std::uint64_t begin = 0; begin < rows; begin += each) {
    all = simulator::canonical(all + sum_slice(begin, std::min(begin + each, rows), value));
  }
  return all;
}

result<void> sum_pair(const tensor_pair& pair, value_type from, value_type to, const route_options& routes) {
  const std::uint64_t columns = pair.source.dim[0];
  const std::uint64_t rows = pair.source.dim[1];
  const std::uint64_t item = value_bytes(from);
  const auto elements =
      rows == 0 ? result<element_bytes_t>{element_bytes_t{}} : simulator::read_elements(pair.source, routes);
  if (!elements) return failure{elements.error()};
  element_bytes_t made(columns * value_bytes(to));
  for (std::uint64_t column = 0; column < columns; ++column) {
    const float sum = sum_column(rows, [&](std::uint64_t row) {
      return simulator::load_value(from, elements->data() + (row * columns + column) * item);
    });
    simulator::store_value(to, sum, made.data() + column * value_bytes(to));
  }
  return simulator::write_elements(pair.destination, made, routes);
}

}  // namespace

result<void> column_sums(const tensor_batch& source, value_type from, const tensor_batch& destination, value_type to,
                         const run& with) {
  const support::trace_range range{"tmap ragged column sums"};
  if (const auto checked = check_column_sums(source, from, destination, to, with); !checked) return checked;
  constexpr batch_call which = batch_call::ragged_column_sums;
  constexpr kernels::shape_relation relation = kernels::shape_relation::summed;
  const on_stream* const where = stream_of(with);
  if (where == nullptr) {
    return simulator::for_each_good_pair(
        which, source, destination, relation, with,
        [&](const tensor_pair& pair, const route_options& routes) { return sum_pair(pair, from, to, routes); });
  }
  if (const auto checked = check_workspace_of(source, where->scratch); !checked || source.count == 0) return checked;
  const operation op{tensors_of(source), tensors_of(destination), relation, max_rank, kernels::column_sum_pieces()};
  return enqueue(which, op, *where, with, [&](const planned_operation& plan) {
    return kernels::launch_column_sums(plan.work, from, to, plan.device, where->stream.get());
  });
}

}  // namespace tmap::ragged
