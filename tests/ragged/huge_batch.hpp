// SPDX-License-Identifier: Apache-2.0
#pragma once

// Batches of huge memories in the form that the library takes.

#include <tmap/route.hpp>
#include <tmap/tensor_batch.hpp>

#include <cstdint>
#include <vector>

#include "ragged/huge_side.hpp"
#include "support/ragged_upload.hpp"

namespace tmap::testing {

struct matrix_shape {
  std::uint64_t columns;
  std::uint64_t rows;
  std::uint64_t pitch{};  ///< 0 selects a multiple of 16 plus the side's odd offset
};

inline huge_side lay_out_huge(const std::vector<matrix_shape>& shapes, std::uint64_t odd) {
  huge_side side{};
  std::uint64_t end = 256;
  for (const matrix_shape& shape : shapes) {
    const std::uint64_t apart = detail::up(shape.columns, 16) + 16 + odd;
    const std::uint64_t pitch = shape.pitch == 0 ? apart : shape.pitch;
    const std::uint64_t begin = detail::up(end + 64, 16) + odd;
    side.tensors[side.count] = {begin, shape.columns, shape.rows, pitch};
    end = side.tensors[side.count++].end();
  }
  side.elements = end + 256;
  return side;
}

/// Packs tensors one after another; gaps serve only the alignment. Counts elements; the first
/// tensor begins at one.
inline huge_side pack_huge(const std::vector<matrix_shape>& shapes, std::uint64_t alignment) {
  huge_side side{};
  std::uint64_t end = 256;
  for (const matrix_shape& shape : shapes) {
    side.tensors[side.count] = {detail::up(end, alignment), shape.columns, shape.rows, shape.columns};
    end = side.tensors[side.count++].end();
  }
  side.elements = end + 256;
  return side;
}

template <class T, class Get>
const T* column(const huge_side& side, described_arrays& arrays, const Get& get) {
  std::vector<T> values;
  for (std::uint32_t i = 0; i < side.count; ++i) values.push_back(static_cast<T>(get(side.tensors[i])));
  return arrays.keep(values);
}

inline compact_columns in_units(const huge_side& side, std::uint64_t memory, std::uint32_t bytes,
                                described_arrays& arrays) {
  using word = std::uint32_t;
  compact_columns columns{};
  columns.base_address = memory;
  columns.address_units = column<word>(side, arrays, [&](auto& t) { return t.begin * bytes / 16; });
  columns.global_dim[0] = column<word>(side, arrays, [](auto& t) { return t.columns; });
  columns.global_dim[1] = column<word>(side, arrays, [](auto& t) { return t.rows; });
  columns.global_stride_units[0] = column<word>(side, arrays, [&](auto& t) { return t.pitch * bytes / 16; });
  return columns;
}

inline patch_columns in_bytes(const huge_side& side, std::uint64_t memory, std::uint32_t bytes,
                              described_arrays& arrays) {
  using word = std::uint64_t;
  patch_columns columns{};
  columns.global_address = column<word>(side, arrays, [&](auto& t) { return memory + t.begin * bytes; });
  columns.global_dim[0] = column<word>(side, arrays, [](auto& t) { return t.columns; });
  columns.global_dim[1] = column<word>(side, arrays, [](auto& t) { return t.rows; });
  columns.global_stride_bytes[0] = column<word>(side, arrays, [&](auto& t) { return t.pitch * bytes; });
  return columns;
}

/// Returns whether all numbers are whole units and fit 32 bits.
inline bool fits_units(const huge_side& side, std::uint32_t bytes) {
  const auto fits = [](std::uint64_t value) { return value >> 32 == 0; };
  bool all = true;
  for (std::uint32_t i = 0; i < side.count; ++i) {
    const huge_tensor& t = side.tensors[i];
    all = all && fits(t.columns) && fits(t.rows) && t.begin * bytes % 16 == 0 && t.pitch * bytes % 16 == 0;
  }
  return all;
}

inline tensor_batch describe(const huge_side& side, std::uint64_t memory, std::uint32_t bytes,
                             described_arrays& arrays) {
  tensor_batch batch{};
  batch.count = side.count;
  batch.element_bytes = bytes;
  batch.rank = 2;
  if (fits_units(side, bytes)) {
    batch.tensors = in_units(side, memory, bytes, arrays);
  } else {
    batch.tensors = in_bytes(side, memory, bytes, arrays);
  }
  return batch;
}

inline tensor_layout layout_of(const huge_tensor& tensor, std::uint64_t memory, std::uint32_t bytes) {
  return {memory + tensor.begin * bytes, bytes, 2, {tensor.columns, tensor.rows}, {tensor.pitch * bytes}};
}

inline bool crosses(const huge_side& side, std::uint64_t bytes, std::uint64_t boundary) {
  for (std::uint32_t i = 0; i < side.count; ++i) {
    if (side.tensors[i].begin * bytes < boundary && side.tensors[i].end() * bytes > boundary) return true;
  }
  return false;
}

inline bool has_room(std::uint64_t bytes) {
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  return free >= bytes + (std::uint64_t{1} << 30);
}

}  // namespace tmap::testing
