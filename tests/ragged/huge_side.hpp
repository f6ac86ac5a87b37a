// SPDX-License-Identifier: Apache-2.0
#pragma once

// The places of matrices in a memory of thousands of millions of elements.

#include <tmap/config.hpp>

#include <cstdint>

namespace tmap::testing {

/// Counts elements of its side's memory.
struct huge_tensor {
  std::uint64_t begin;
  std::uint64_t columns;
  std::uint64_t rows;
  std::uint64_t pitch;

  std::uint64_t end() const { return begin + (rows - 1) * pitch + columns; }
};

/// Describes one element of a memory.
struct huge_place {
  std::uint32_t tensor;
  std::uint64_t row;
  std::uint64_t column;
  bool is_inside;  ///< whether it belongs to a tensor; the other fields are valid only then
  bool is_last;    ///< of its row
};

struct huge_side {
  static constexpr std::uint32_t most = 6;
  huge_tensor tensors[most];
  std::uint32_t count;
  std::uint64_t elements;  ///< of the memory

  TMAP_HOST_DEVICE huge_place find(std::uint64_t i) const {
    for (std::uint32_t t = 0; t < count; ++t) {
      const huge_tensor& tensor = tensors[t];
      const std::uint64_t offset = i - tensor.begin;
      if (offset >= tensor.rows * tensor.pitch) continue;
      const std::uint64_t row = tensor.rows == 1 ? 0 : offset / tensor.pitch;
      const std::uint64_t column = offset - row * tensor.pitch;
      return {t, row, column, column < tensor.columns, column + 1 == tensor.columns};
    }
    return {};
  }
  TMAP_HOST_DEVICE std::uint64_t at(const huge_place& place) const {
    return tensors[place.tensor].begin + place.row * tensors[place.tensor].pitch + place.column;
  }
};

}  // namespace tmap::testing
