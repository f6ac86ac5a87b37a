// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/ragged.hpp>
#include <tmap/route.hpp>

#include <cstddef>
#include <span>
#include <vector>

// The elements of one tensor in host memory, to and from a vector that holds them without gaps, dim 0 first. On route
// `tensor_map` the simulated copy engine moves them tile by tile, else plain loops. The tensor has been judged.

namespace tmap::simulator {

using element_bytes_t = std::vector<std::byte>;

result<element_bytes_t> read_elements(const tensor_layout& tensor, const route_options& routes);

result<void> write_elements(const tensor_layout& tensor, std::span<const std::byte> elements,
                            const route_options& routes);

/// Calls `row(index, address)` for each row (dimension 0), in order.
template <class Row>
void for_each_row(const tensor_layout& tensor, Row&& row) {
  std::uint64_t at[max_rank]{};
  for (std::uint64_t index = 0;; ++index) {
    std::uint64_t address = tensor.address;
    for (std::uint32_t axis = 1; axis < tensor.rank; ++axis) address += at[axis] * tensor.stride_bytes[axis - 1];
    row(index, reinterpret_cast<std::byte*>(address));
    std::uint32_t axis = 1;
    while (axis < tensor.rank && ++at[axis] == tensor.dim[axis]) at[axis++] = 0;
    if (axis >= tensor.rank) return;
  }
}

}  // namespace tmap::simulator
