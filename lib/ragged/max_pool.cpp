// SPDX-License-Identifier: Apache-2.0
#include <tmap/ragged.hpp>

#include <bit>
#include <cmath>
#include <deque>

#include "lib/batch/ragged_arguments.hpp"
#include "lib/ragged/values.hpp"
#include "lib/support/trace.hpp"

namespace tmap::ragged {
namespace {

result<void> check_max_pool_1d(const tensor_batch& source, const tensor_batch& destination, const run& with) {
  support::arguments given;
  check_values(given, {source, "source"}, f32_bytes, {destination, "destination"}, f32_bytes);
  check_call(given, with);
  return given.outcome();
}

/// Writes the sliding maximum of one row. `tops` holds each place with a value larger than all that
/// follow it.
void pool_row(const simulator::element_bytes_t& from, std::uint64_t begin, std::uint64_t length, std::uint64_t radius,
              simulator::element_bytes_t& to) {
  std::deque<std::uint64_t> tops;
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < length; ++i) {
    for (; next < length && next <= i + radius; ++next) {
      const float value = f32_at(from, begin + next);
      const auto is_beaten = [&](std::uint64_t place) {
        const float held = f32_at(from, begin + place);
        return !std::isnan(held) && std::bit_cast<std::uint32_t>(simulator::larger(held, value)) ==
                                        std::bit_cast<std::uint32_t>(simulator::canonical(value));
      };
      while (!tops.empty() && is_beaten(tops.back())) tops.pop_back();
      tops.push_back(next);
    }
    while (tops.front() + radius < i) tops.pop_front();
    set_f32(to, begin + i, simulator::canonical(f32_at(from, begin + tops.front())));
  }
}

result<void> max_pool_1d_on_host(const tensor_batch& source, const tensor_batch& destination, std::uint32_t radius,
                                 const run& with) {
  const auto compute = [&](const simulator::tensor_pair& pair, simulator::element_bytes_t elements,
                           const route_options&) {
    simulator::element_bytes_t made(elements.size());
    const std::uint64_t length = pair.source.dim[0];
    for (std::uint64_t begin = 0; begin < elements.size() / f32_bytes; begin += length) {
      pool_row(elements, begin, length, radius, made);
    }
    return result<simulator::element_bytes_t>{std::move(made)};
  };
  return simulator::transform(batch_call::ragged_max_pool_1d, source, destination, kernels::shape_relation::equal, with,
                              compute);
}

}  // namespace

result<void> max_pool_1d(const tensor_batch& source, const tensor_batch& destination, std::uint32_t radius,
                         const run& with) {
  const support::trace_range range{"tmap ragged max pool"};
  if (const auto checked = check_max_pool_1d(source, destination, with); !checked) return checked;
  const on_stream* const where = stream_of(with);
  if (where == nullptr) return max_pool_1d_on_host(source, destination, radius, with);
  const operation op{tensors_of(source), tensors_of(destination), kernels::shape_relation::equal, 1,
                     kernels::max_pool_pieces(radius, source.rank)};
  return enqueue_values(batch_call::ragged_max_pool_1d, op, *where, with, [&](const planned_operation& plan) {
    return kernels::launch_max_pool_1d(plan.work, radius, plan.device, where->stream.get());
  });
}

}  // namespace tmap::ragged
