// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/spec_arithmetic.hpp>
#include <tmap/grouped_gemm.hpp>

#include <cstdint>

namespace tmap::kernels {

/// Returns the faults of one matrix of a `pointer_problem`. Address and pitch may be any bits. Rows
/// and bytes of a row are at most 2^32, and 0 where they are not known. Every map of a matrix that
/// has elements and no faults is good: a map that the encoder refused would be read as zeros.
TMAP_HOST_DEVICE constexpr std::uint32_t judge_matrix(std::uint64_t address, std::uint64_t pitch, std::uint64_t rows,
                                                      std::uint64_t row_bytes) {
  constexpr std::uint64_t unit = 16;
  const bool is_pitch = pitch % unit == 0 && pitch < tmap::detail::global_stride_limit && pitch >= row_bytes;
  const bool is_address = address != 0 && address % unit == 0 &&
                          tmap::detail::has_addresses(address, is_pitch ? rows : 0, pitch, row_bytes);
  return (is_address ? 0 : static_cast<std::uint32_t>(gemm::fault::address)) |
         (is_pitch ? 0 : static_cast<std::uint32_t>(gemm::fault::pitch));
}

}  // namespace tmap::kernels
