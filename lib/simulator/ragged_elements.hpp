// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/error.hpp>
#include <tmap/ragged.hpp>
#include <tmap/route.hpp>

#include <cstddef>
#include <span>
#include <vector>

// Moves the elements of one tensor in host memory to and from a vector that holds them without
// gaps, dim 0 first. On route `tensor_map` the simulated copy engine moves them tile by tile, on
// all others plain loops do. The tensor has been judged.

namespace tmap::simulator {

using element_bytes_t = std::vector<std::byte>;

[[nodiscard]] result<element_bytes_t> read_elements(const tensor_layout& tensor, const route_options& routes);

[[nodiscard]] result<void> write_elements(const tensor_layout& tensor, std::span<const std::byte> elements,
                                          const route_options& routes);

/// Moves the elements of `source` to `destination`, which has the same dims. Without a map on
/// either side, rows go straight from one to the other.
[[nodiscard]] result<void> move_elements(const tensor_layout& source, const tensor_layout& destination,
                                         const route_options& routes);

/// The rows (dimension 0) of a tensor, in order.
class row_cursor {
 public:
  explicit row_cursor(const tensor_layout& tensor) : tensor_{tensor} {}

  std::byte* row() const {
    std::uint64_t address = tensor_.address;
    for (std::uint32_t axis = 1; axis < tensor_.rank; ++axis) address += at_[axis] * tensor_.stride_bytes[axis - 1];
    return reinterpret_cast<std::byte*>(address);
  }
  /// Returns false after the last row.
  bool advance() {
    std::uint32_t axis = 1;
    while (axis < tensor_.rank && ++at_[axis] == tensor_.dim[axis]) at_[axis++] = 0;
    return axis < tensor_.rank;
  }

 private:
  const tensor_layout& tensor_;
  std::uint64_t at_[max_rank]{};
};

/// Calls `row(index, address)` for each row (dimension 0), in order.
template <class Row>
void for_each_row(const tensor_layout& tensor, Row&& row) {
  row_cursor rows{tensor};
  std::uint64_t index = 0;
  do row(index++, rows.row());
  while (rows.advance());
}

}  // namespace tmap::simulator
