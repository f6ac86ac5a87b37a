// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/ragged_operations.hpp"
#include "lib/simulator/ragged_run.hpp"
#include "lib/simulator/ragged_values.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>

namespace tmap::ragged::simulated {
namespace {

using namespace tmap::simulator;

constexpr std::uint64_t f32_bytes = sizeof(float);

float f32_at(const element_bytes_t& elements, std::uint64_t i) {
  return load_value(value_type::f32, elements.data() + i * f32_bytes);
}

void set_f32(element_bytes_t& elements, std::uint64_t i, float value) {
  store_value(value_type::f32, value, elements.data() + i * f32_bytes);
}

element_bytes_t transposed(const tensor_layout& source, const element_bytes_t& elements) {
  const std::uint64_t item = source.element_bytes;
  const std::uint64_t columns = source.dim[0];
  const std::uint64_t rows = source.dim[1];
  element_bytes_t made(elements.size());
  for (std::uint64_t begin = 0; begin < elements.size(); begin += columns * rows * item) {
    for (std::uint64_t row = 0; row < rows; ++row) {
      for (std::uint64_t column = 0; column < columns; ++column) {
        std::memcpy(made.data() + begin + (column * rows + row) * item,
                    elements.data() + begin + (row * columns + column) * item, item);
      }
    }
  }
  return made;
}

element_bytes_t converted(const element_bytes_t& elements, const cast_values& values, std::uint64_t tensor) {
  const float scale = values.scales == nullptr ? values.scale : values.scales[tensor];
  const float shift = values.shifts == nullptr ? values.shift : values.shifts[tensor];
  const std::uint64_t from = value_bytes(values.from);
  const std::uint64_t to = value_bytes(values.to);
  element_bytes_t made(elements.size() / from * to);
  for (std::uint64_t i = 0; i < elements.size() / from; ++i) {
    const float value = load_value(values.from, elements.data() + i * from);
    store_value(values.to, multiply_add(value, scale, shift), made.data() + i * to);
  }
  return made;
}

/// Sliding maximum of one row. `tops` holds the places that are still the largest of those behind them.
void pool_row(const element_bytes_t& from, std::uint64_t begin, std::uint64_t length, std::uint64_t radius,
              element_bytes_t& to) {
  std::deque<std::uint64_t> tops;
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < length; ++i) {
    for (; next < length && next <= i + radius; ++next) {
      const float value = f32_at(from, begin + next);
      const auto is_beaten = [&](std::uint64_t place) {
        const float held = f32_at(from, begin + place);
        return !std::isnan(held) &&
               std::bit_cast<std::uint32_t>(larger(held, value)) == std::bit_cast<std::uint32_t>(canonical(value));
      };
      while (!tops.empty() && is_beaten(tops.back())) tops.pop_back();
      tops.push_back(next);
    }
    while (tops.front() + radius < i) tops.pop_front();
    set_f32(to, begin + i, canonical(f32_at(from, begin + tops.front())));
  }
}

}  // namespace

result<void> transpose(const tensor_batch& source, const tensor_batch& destination, const run& with) {
  return transform(batch_call::ragged_transpose, source, destination, shape_relation::swapped, with,
                   [](const tensor_pair& pair, element_bytes_t elements, const route_options&) {
                     return result<element_bytes_t>{transposed(pair.source, elements)};
                   });
}

result<void> cast(const tensor_batch& source, const tensor_batch& destination, const cast_values& values,
                  const run& with) {
  return transform(batch_call::ragged_cast, source, destination, shape_relation::equal, with,
                   [&](const tensor_pair& pair, element_bytes_t elements, const route_options&) {
                     return result<element_bytes_t>{converted(elements, values, pair.index)};
                   });
}

result<void> saxpy(float a, const tensor_batch& x, const tensor_batch& y, const run& with) {
  const auto compute = [&](const tensor_pair& pair, element_bytes_t elements, const route_options& routes) {
    auto sums = read_elements(pair.destination, routes);
    for (std::uint64_t i = 0; sums && i < elements.size() / f32_bytes; ++i) {
      set_f32(*sums, i, multiply_add(a, f32_at(elements, i), f32_at(*sums, i)));
    }
    return sums;
  };
  return transform(batch_call::ragged_saxpy, x, y, shape_relation::equal, with, compute);
}

result<void> max_pool_1d(const tensor_batch& source, const tensor_batch& destination, std::uint32_t radius,
                         const run& with) {
  const auto compute = [&](const tensor_pair& pair, element_bytes_t elements, const route_options&) {
    element_bytes_t made(elements.size());
    const std::uint64_t length = pair.source.dim[0];
    for (std::uint64_t begin = 0; begin < elements.size() / f32_bytes; begin += length) {
      pool_row(elements, begin, length, radius, made);
    }
    return result<element_bytes_t>{std::move(made)};
  };
  return transform(batch_call::ragged_max_pool_1d, source, destination, shape_relation::equal, with, compute);
}

}  // namespace tmap::ragged::simulated
