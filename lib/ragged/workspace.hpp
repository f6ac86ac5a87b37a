// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/ragged.hpp>
#include <tmap/tensor_map.hpp>

#include <cstddef>
#include <cstdint>

#include "kernels/ragged/planned_tensor.hpp"

namespace tmap::ragged {

/// Holds the byte at which each part of an operation's workspace begins. There is room for the
/// operation that needs most: padding, with maps, all sides described by host arrays. Sides follow
/// in the order source, destination, scales.
struct workspace_layout {
  std::uint64_t tensors;
  std::uint64_t ends;
  std::uint64_t maps;
  std::uint64_t begins;         ///< of a packed side
  std::uint64_t row_begins[3];  ///< of `ragged_rows` by sizes
  std::uint64_t arrays[3];      ///< copies of host arrays
  std::uint64_t scales;         ///< their places, of `quantize`
  std::uint64_t partials;       ///< of long rows and columns that are reduced
  std::uint64_t queue;
  std::uint64_t scratch;
  std::uint64_t scratch_bytes;
  std::uint64_t bytes;
};

workspace_layout lay_out_workspace(std::uint64_t count, std::uint32_t rank);

/// Checks that the workspace has room for an operation on this batch, whose other arguments are
/// good. An empty batch needs none.
[[nodiscard]] result<void> check_workspace_of(const tensor_batch& batch, const workspace& scratch);

/// Returns the part of the workspace that begins at `offset`.
template <class T>
T* part_of(const workspace& scratch, std::uint64_t offset) {
  return reinterpret_cast<T*>(static_cast<unsigned char*>(scratch.memory) + offset);
}

}  // namespace tmap::ragged
