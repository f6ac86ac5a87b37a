// SPDX-License-Identifier: Apache-2.0
#include <tmap/detail/reduction_order.hpp>
#include "lib/simulator/ragged_operations.hpp"
#include "lib/simulator/ragged_run.hpp"
#include "lib/simulator/ragged_values.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace tmap::ragged::simulated {
namespace {

using namespace tmap::simulator;

constexpr std::uint64_t f32_bytes = sizeof(float);

float combine(row_reduction reduction, float a, float b) {
  return reduction == row_reduction::sum ? canonical(a + b) : larger(a, b);
}

/// `value(i)` of one slice of a row, as detail/reduction_order.hpp says.
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

}  // namespace

result<void> reduce_rows(const tensor_batch& source, value_type type, row_reduction reduction,
                         const tensor_batch& destination, const run& with) {
  const std::uint64_t item = value_bytes(type);
  const auto compute = [&](const tensor_pair& pair, element_bytes_t elements, const route_options&) {
    const std::uint64_t length = pair.source.dim[0];
    element_bytes_t made(elements.size() / item / length * f32_bytes);
    for (std::uint64_t row = 0; row < made.size() / f32_bytes; ++row) {
      const std::byte* const first = elements.data() + row * length * item;
      const float reduced =
          reduce_row(reduction, length, [&](std::uint64_t i) { return load_value(type, first + i * item); });
      store_value(value_type::f32, reduced, made.data() + row * f32_bytes);
    }
    return result<element_bytes_t>{std::move(made)};
  };
  return transform(batch_call::ragged_reduce_rows, source, destination, shape_relation::reduced, with, compute);
}

}  // namespace tmap::ragged::simulated
