// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Padding of rows that have no gaps, and its inverse. Each is one launch without a workspace.
/// `ragged.hpp` pads tensors of any shape and stride. No tensor is bad here, so a run may have
/// neither statuses nor a header, and its windows and routes are ignored. Thread-safe. Work is in
/// the order of the run's stream, and a graph may capture it. All memory stays the caller's, and
/// must live until the work has run. The two matrices must not overlap.
/// @fails
/// - `invalid_argument`: sizes, a format or an address that the struct below does not allow, or
///   statuses or a header.
/// - `no_driver`, `no_device`, `no_kernel_image`, `cuda_failure`, on a stream.

#include <tmap/config.hpp>
#include <tmap/device_address.hpp>
#include <tmap/error.hpp>
#include <tmap/map_patch.hpp>
#include <tmap/ragged.hpp>

#include <cstdint>

namespace tmap::ragged {

/// Rows that belong to `count` tensors, both one after the other and with `longest` places for each
/// tensor. Neither matrix has gaps. Offsets, in device memory or in host memory with `on_host`, are
/// cut to 0 and `rows`, so that any are legal.
struct padded_rows {
  device_address values{};  ///< [rows, row_bytes], aligned to `element_bytes`
  std::uint64_t rows{};
  device_address dense{};  ///< [count, longest, row_bytes], aligned to `element_bytes`
  std::uint64_t count{};
  std::uint64_t longest{};
  std::uint64_t row_bytes{};      ///< a multiple of `element_bytes`; each matrix has at most 2^40 bytes
  std::uint32_t element_bytes{};  ///< 1, 2, 4, 8 or 16
  row_offsets offsets{};          ///< `ends` or `prefix`
};

/// Makes the dense matrix of the values. Places without a row become `fill`, and rows after the
/// first `longest` of a tensor are left out. Tensors may share rows.
[[nodiscard]] TMAP_API result<void> pad_rows(const padded_rows& rows, const fill_value& fill, const run& run);
/// Makes the values of the dense matrix. Rows of no tensor, and those after the first `longest` of
/// a tensor, become zero. Where offsets decrease, a byte is that of a tensor that has its row, or
/// zero.
[[nodiscard]] TMAP_API result<void> unpad_rows(const padded_rows& rows, const run& run);

}  // namespace tmap::ragged
