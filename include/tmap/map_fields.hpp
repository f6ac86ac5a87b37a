// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/error.hpp>
#include <tmap/tensor_map.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace tmap {

/// Names `width` bits of one 64-bit word of a map, from bit `shift` on. A width of 0 names none.
struct map_bits {
  std::uint32_t word{};
  std::uint32_t shift{};
  std::uint32_t width{};
};

/// One field of a map, its value as text and the bits that hold it. `high` holds the upper bits of
/// a field that is split; most fields have none.
struct map_field {
  std::string name;  ///< "global_dim[1]"
  std::string value;
  map_bits low;
  map_bits high;
};

/// Lists the fields that `describe` prints, in the same order, with the bits of each. Takes any
/// bytes, also those that `decode` refuses. Fails with `out_of_memory`.
[[nodiscard]] TMAP_API result<std::vector<map_field>> fields_of(const tensor_map& map);

}  // namespace tmap
