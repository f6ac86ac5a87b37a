// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of one matrix of a problem.

#include <tmap/detail/spec_arithmetic.hpp>
#include <tmap/grouped_gemm.hpp>

#include <cstdint>

#include "lib/support/arguments.hpp"

namespace tmap::gemm {

inline const support::argument problem_name{"problem"};

// Tensor maps demand these of addresses and strides.
inline constexpr std::uint64_t unit_bytes = 16;
inline constexpr std::uint64_t most_pitch = (std::uint64_t{1} << 40) - unit_bytes;

inline void check_pitch(support::arguments& given, std::uint64_t pitch, std::uint64_t least,
                        const support::argument& name) {
  given.range(pitch, least, most_pitch, name);
  given.multiple(pitch, unit_bytes, name);
}

/// A matrix must end before the last address: the device would refuse its maps and read zeros.
inline void check_reach(support::arguments& given, const matrix& of, std::uint64_t rows, std::uint64_t row_bytes,
                        const support::argument& name) {
  using tmap::detail::address_limit;
  if (tmap::detail::has_addresses(of.address, rows, of.pitch_bytes, row_bytes)) return;
  given.refuse(name.member("address"), "is {found:#x}; a matrix there reaches beyond the last address, {allowed:#x}",
               of.address, address_limit);
}

/// The rows of a matrix, or of the matrix of each group.
struct row_shape {
  std::uint64_t rows;
  std::uint64_t bytes;  ///< of a row
};

inline void check_matrix(support::arguments& given, const matrix& of, const row_shape& shape,
                         const support::argument& name) {
  given.address(of.address, unit_bytes, name.member("address"));
  check_pitch(given, of.pitch_bytes, shape.bytes, name.member("pitch_bytes"));
  if (given) check_reach(given, of, shape.rows, shape.bytes, name);
}

}  // namespace tmap::gemm
