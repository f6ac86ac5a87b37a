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

/// Checks matrices whose addresses are a list in device memory.
inline void check_listed(support::arguments& given, const std::uint64_t* addresses, const matrix& of,
                         const row_shape& shape, const support::argument& list_name, const support::argument& name) {
  given.pointer(addresses, list_name);
  check_pitch(given, of.pitch_bytes, shape.bytes, name.member("pitch_bytes"));
}

struct group_places {
  std::uint32_t groups;
  std::uint64_t pitch_bytes;  ///< from one group's matrix to the next
  const support::argument& pitch_name;
};

/// Checks matrices of equal size, one for each group.
inline void check_matrices(support::arguments& given, const matrix& first, const row_shape& shape,
                           const group_places& places, const support::argument& name) {
  check_matrix(given, first, shape, name);
  if (!given || places.groups < 2) return;
  given.at_most(first.pitch_bytes, most_pitch / shape.rows, name.member("pitch_bytes"));
  if (!given) return;
  check_pitch(given, places.pitch_bytes, shape.rows * first.pitch_bytes, places.pitch_name);
  if (!given) return;
  const matrix last{first.address + (places.groups - 1) * places.pitch_bytes, first.pitch_bytes};
  check_reach(given, last, shape.rows, shape.bytes, name);
}

/// Returns how many rows A has.
inline std::uint64_t a_row_count(const row_problem& problem) {
  return problem.a_rows != nullptr ? problem.a_row_count : problem.rows;
}

}  // namespace tmap::gemm
