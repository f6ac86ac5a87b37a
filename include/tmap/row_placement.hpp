// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/detail/standard.hpp>

namespace tmap {

/// The order of the rows that a rank receives. Rows of one rank for one group keep their order.
enum class row_placement : std::uint32_t {
  rank_major,   ///< by the rank that sent them, then by group
  group_major,  ///< by group, then by the rank that sent them
};

}  // namespace tmap
